//! Values of up to eight bytes, changed in place.
//!
//! A value that is an atomic can be changed where it stands, without a new node. An operation finds
//! the node unmarked, then uses the value once, and does not look whether the node has been marked
//! meanwhile. It takes effect when it accesses the value. If the node was marked before that, it
//! takes effect in the instant before the mark. This is a legal order of all operations:
//!
//! - The late operations of a node are those that access the value after the mark. All of them
//!   began before the mark, since they saw the node unmarked. So the instant before the mark lies
//!   within each of them. They take effect there in the order in which they access the value. Each
//!   sees what the ones before it left, as it does in the memory.
//! - An operation that accesses the value before the mark takes effect before all late ones, in
//!   both orders.
//! - An operation that begins after the mark does not find the node, and takes effect after all of
//!   these.
//!
//! No order explains a removal that returns the value: it could not know the late operations. So
//! only one thing counts about what [`Pinned::remove`] returns: whether it is something. The atomic
//! itself may still be written to.
//!
//! Nor does any order explain a removal or replacement that depends on the value,
//! [`Pinned::remove_if`] and [`Pinned::update_if`]. It looks at the value, and then marks the node
//! if no other has taken its place. A change in place leaves the node where it is. So a change
//! between the two steps, or a late one, goes with the node. There are two ways to make sure that
//! the value is still what was looked at. Either values are only ever stored anew, and never
//! changed in place; then another value is another node. Or the value is first changed in place to
//! one that says *closed*, which nobody changes any more, and is removed as that. Then those who
//! count use [`Pinned::exchange`], which cannot overwrite it, and not [`Pinned::put`].

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use equivalent::Equivalent;

use super::Pinned;

/// An atomic of up to eight bytes, as the value of a map that changes it in place.
///
/// [`Pinned::read`], [`Pinned::put`] and [`Pinned::exchange`] are linearizable, with one another
/// and with removals and replacements that do not look at the value. [`Pinned::remove_if`] and
/// [`Pinned::update_if`] are not: see there.
pub trait InPlace {
    /// What it holds.
    type Value: Copy;

    /// One that holds `value`.
    fn holding(value: Self::Value) -> Self;

    /// Its value.
    fn read(&self) -> Self::Value;

    /// Stores a value and returns the one before.
    fn replace(&self, value: Self::Value) -> Self::Value;

    /// Stores `value` if `expected` is there, and returns what was there.
    ///
    /// # Errors
    ///
    /// What is there instead.
    fn exchange(
        &self,
        expected: Self::Value,
        value: Self::Value,
    ) -> Result<Self::Value, Self::Value>;
}

macro_rules! in_place {
    ($($atomic:ty => $value:ty),* $(,)?) => {$(
        impl InPlace for $atomic {
            type Value = $value;

            fn holding(value: $value) -> Self {
                Self::new(value)
            }

            #[inline]
            fn read(&self) -> $value {
                self.load(Ordering::Acquire)
            }

            #[inline]
            fn replace(&self, value: $value) -> $value {
                self.swap(value, Ordering::AcqRel)
            }

            #[inline]
            fn exchange(&self, expected: $value, value: $value) -> Result<$value, $value> {
                self.compare_exchange(expected, value, Ordering::AcqRel, Ordering::Acquire)
            }
        }
    )*};
}

in_place! {
    AtomicBool => bool,
    AtomicU8 => u8, AtomicU16 => u16, AtomicU32 => u32, AtomicU64 => u64, AtomicUsize => usize,
    AtomicI8 => i8, AtomicI16 => i16, AtomicI32 => i32, AtomicI64 => i64, AtomicIsize => isize,
}

impl<K, V, S> Pinned<'_, K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: InPlace + Send + Sync + 'static,
    S: BuildHasher,
{
    /// The value of `key`, copied.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::AtomicU64;
    /// use hotring::HotRing;
    ///
    /// let hits: HotRing<&str, AtomicU64> = HotRing::new();
    /// let ring = hits.pin();
    /// assert_eq!(ring.put("/", 1), None);
    /// assert_eq!(ring.put("/", 2), Some(1));
    /// assert_eq!(ring.exchange("/", 2, 3), Some(Ok(2)));
    /// assert_eq!(ring.read("/"), Some(3));
    /// ```
    #[inline]
    pub fn read<Q>(&self, key: &Q) -> Option<V::Value>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get(key).map(V::read)
    }

    /// Stores a value, in place if `key` is there, and returns the value it had.
    pub fn put(&self, key: K, value: V::Value) -> Option<V::Value> {
        if let Some(present) = self.get(&key) {
            return Some(present.replace(value));
        }
        match self.try_insert(key, V::holding(value)) {
            Ok(_) => None,
            Err((present, ..)) => Some(present.replace(value)),
        }
    }

    /// Stores `value` if `key` is there with `expected`, and returns what was there.
    ///
    /// # Errors
    ///
    /// What is there instead; nothing at all if `key` is absent.
    pub fn exchange<Q>(
        &self,
        key: &Q,
        expected: V::Value,
        value: V::Value,
    ) -> Option<Result<V::Value, V::Value>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get(key)
            .map(|present| present.exchange(expected, value))
    }
}
