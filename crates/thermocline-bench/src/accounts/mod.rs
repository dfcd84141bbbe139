//! What processor time and I/O are spent on.

mod cpu;
mod series;

use serde::ser::{Serialize, SerializeMap, Serializer};

pub(crate) use cpu::{Clock, split};
pub(crate) use series::Spent;
pub use series::{ActivitySeries, IoSeries};

/// What a run spends processor time and I/O on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// Clients that read.
    Read,
    /// Clients that write, and the log.
    Write,
    /// Memtables that become tables.
    Flush,
    /// Merging levels.
    Compaction,
    /// Records that come back to the fast disk in tables of their own.
    Promotion,
    /// Access records.
    Ralt,
    /// Working out which table belongs on which tier, and bringing it there.
    Placement,
    /// The threads of an engine that does not say what they do, and those of a flash cache.
    Background,
    /// The I/O of an engine that does not say what it is for.
    Unattributed,
    /// What is left.
    Other,
}

impl Activity {
    /// Every activity.
    pub const ALL: [Activity; 10] = [
        Activity::Read,
        Activity::Write,
        Activity::Flush,
        Activity::Compaction,
        Activity::Promotion,
        Activity::Ralt,
        Activity::Placement,
        Activity::Background,
        Activity::Unattributed,
        Activity::Other,
    ];

    /// Its name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Read => "read",
            Activity::Write => "write",
            Activity::Flush => "flush",
            Activity::Compaction => "compaction",
            Activity::Promotion => "promotion",
            Activity::Ralt => "ralt",
            Activity::Placement => "placement",
            Activity::Background => "background",
            Activity::Unattributed => "unattributed",
            Activity::Other => "other",
        }
    }
}

/// What can be counted by activity.
pub trait Amount: Copy + Default {
    /// Both together.
    #[must_use]
    fn plus(self, more: Self) -> Self;
    /// What came since `earlier`. It is never less than nothing.
    #[must_use]
    fn since(self, earlier: Self) -> Self;
    /// The smaller of both, number by number.
    #[must_use]
    fn least(self, other: Self) -> Self;
}

impl Amount for f64 {
    fn plus(self, more: Self) -> Self {
        self + more
    }

    fn since(self, earlier: Self) -> Self {
        (self - earlier).max(0.0)
    }

    fn least(self, other: Self) -> Self {
        self.min(other)
    }
}

/// Operations and bytes on one disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Io {
    /// Read operations.
    pub read_ops: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write operations.
    pub write_ops: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl Amount for Io {
    fn plus(self, more: Self) -> Self {
        Self {
            read_ops: self.read_ops + more.read_ops,
            read_bytes: self.read_bytes + more.read_bytes,
            write_ops: self.write_ops + more.write_ops,
            write_bytes: self.write_bytes + more.write_bytes,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            read_ops: self.read_ops.saturating_sub(earlier.read_ops),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_ops: self.write_ops.saturating_sub(earlier.write_ops),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            read_ops: self.read_ops.min(other.read_ops),
            read_bytes: self.read_bytes.min(other.read_bytes),
            write_ops: self.write_ops.min(other.write_ops),
            write_bytes: self.write_bytes.min(other.write_bytes),
        }
    }
}

/// An amount for each activity that can be told from the others. In the JSON it is an object by
/// name.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ByActivity<T>([Option<T>; Activity::ALL.len()]);

impl<T: Amount> ByActivity<T> {
    /// What `activity` took; none if that cannot be told.
    pub fn get(&self, activity: Activity) -> Option<T> {
        self.0[activity as usize]
    }

    /// The activities that can be told, with what each took.
    pub fn iter(&self) -> impl Iterator<Item = (Activity, T)> {
        let each = Activity::ALL.into_iter().zip(self.0);
        each.filter_map(|(activity, amount)| Some((activity, amount?)))
    }

    /// What all of them took.
    pub fn sum(&self) -> T {
        self.iter()
            .fold(T::default(), |sum, (_, amount)| sum.plus(amount))
    }

    /// Counts `amount` for `activity`.
    pub(crate) fn add(&mut self, activity: Activity, amount: T) {
        let sum = self.get(activity).unwrap_or_default().plus(amount);
        self.0[activity as usize] = Some(sum);
    }

    /// What was counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (now, then) in since.0.iter_mut().zip(&earlier.0) {
            *now = now.map(|now| now.since(then.unwrap_or_default()));
        }
        since
    }

    /// The smaller of both, activity by activity.
    pub(crate) fn least(&self, other: &Self) -> Self {
        let mut least = *self;
        for (one, other) in least.0.iter_mut().zip(&other.0) {
            *one = one.zip(*other).map(|(one, other)| one.least(other));
        }
        least
    }
}

impl<T: Amount + Serialize> Serialize for ByActivity<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (activity, amount) in self.iter() {
            map.serialize_entry(activity.name(), &amount)?;
        }
        map.end()
    }
}

/// One of each disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct ByDisk<T> {
    /// Of the fast disk.
    pub fast: T,
    /// Of the slow disk.
    pub slow: T,
}

impl<T: Amount> ByDisk<ByActivity<T>> {
    /// What was counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            fast: self.fast.since(&earlier.fast),
            slow: self.slow.since(&earlier.slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_what_can_be_told_and_nothing_else() {
        let mut spent = ByActivity::<f64>::default();
        spent.add(Activity::Flush, 0.5);
        spent.add(Activity::Flush, 0.25);
        spent.add(Activity::Other, 0.0);
        let json = serde_json::to_value(spent).unwrap();
        assert_eq!(json, serde_json::json!({"flush": 0.75, "other": 0.0}));
        assert_eq!((spent.sum(), spent.get(Activity::Read)), (0.75, None));
    }

    #[test]
    fn what_came_since_is_never_less_than_nothing() {
        let io = |bytes| Io {
            read_ops: 1,
            read_bytes: bytes,
            ..Io::default()
        };
        let (mut before, mut after) = (ByActivity::default(), ByActivity::default());
        before.add(Activity::Read, io(100));
        before.add(Activity::Write, io(100));
        after.add(Activity::Read, io(130));
        after.add(Activity::Write, io(70));
        after.add(Activity::Flush, io(7));
        let since = after.since(&before);
        let bytes = |activity| since.get(activity).map(|io| io.read_bytes);
        assert_eq!(bytes(Activity::Read), Some(30));
        assert_eq!(bytes(Activity::Write), Some(0));
        assert_eq!(bytes(Activity::Flush), Some(7));
        assert_eq!(since.get(Activity::Flush).unwrap().read_ops, 1);
        assert_eq!(since.sum().read_bytes, 37);
    }
}
