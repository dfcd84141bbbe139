//! Which keys a command works on, if they are not named one by one.

use std::ops::Bound;

use clap::Args;

use crate::failure::Failure;
use crate::store::DataArgs;

/// The flags that name a range of keys.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Only this key and those after it
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    from: Option<String>,

    /// Only keys before this one
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    to: Option<String>,
}

/// The flags that name a range of keys, or the keys with a common beginning.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Only keys that start with this
    #[arg(
        long,
        value_name = "PREFIX",
        allow_negative_numbers = true,
        conflicts_with_all = ["from", "to", "range"]
    )]
    prefix: Option<String>,

    #[command(flatten)]
    bounds: RangeArgs,

    /// Short for --from and --to
    #[arg(
        long,
        num_args = 2,
        value_names = ["FROM", "TO"],
        allow_negative_numbers = true,
        conflicts_with_all = ["from", "to"]
    )]
    range: Option<Vec<String>>,
}

/// Where a range of keys begins and ends.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl RangeArgs {
    /// The bounds that the flags name, in the notation of `data`.
    pub(crate) fn bounds(&self, data: &DataArgs) -> Result<KeyBounds, Failure> {
        bounds(data, self.from.as_deref(), self.to.as_deref())
    }
}

impl SelectionArgs {
    /// Whether any flag is given.
    pub(crate) fn is_given(&self) -> bool {
        let RangeArgs { from, to } = &self.bounds;
        [&self.prefix, from, to].into_iter().any(Option::is_some) || self.range.is_some()
    }

    /// The keys that the flags name, in the notation of `data`.
    pub(crate) fn bounds(&self, data: &DataArgs) -> Result<KeyBounds, Failure> {
        if let Some(prefix) = &self.prefix {
            return Ok(with_prefix(data.read("prefix", prefix)?));
        }
        match self.range.as_deref() {
            Some([from, to]) => bounds(data, Some(from), Some(to)),
            _ => self.bounds.bounds(data),
        }
    }
}

fn bounds(data: &DataArgs, from: Option<&str>, to: Option<&str>) -> Result<KeyBounds, Failure> {
    let read = |key: Option<&str>| key.map(|key| data.read("key", key)).transpose();
    let (from, to) = (read(from)?, read(to)?);
    if let (Some(from), Some(to)) = (&from, &to)
        && from > to
    {
        return Err(Failure::usage(
            "--from is after --to, so no key is between them; for the opposite order there is `scan --reverse`",
        ));
    }
    Ok((
        from.map_or(Bound::Unbounded, Bound::Included),
        to.map_or(Bound::Unbounded, Bound::Excluded),
    ))
}

/// All keys that start with `prefix`.
fn with_prefix(prefix: Vec<u8>) -> KeyBounds {
    let mut end = prefix.clone();
    // The first key behind them. There is none if all bytes are the highest.
    while end.pop_if(|byte| *byte == u8::MAX).is_some() {}
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_key_that_does_not_begin_so() {
        let end = |prefix: &[u8]| with_prefix(prefix.to_vec()).1;
        let before = |key: &[u8]| Bound::Excluded(key.to_vec());
        assert_eq!(end(b"ab"), before(b"ac"));
        assert_eq!(end(b"a\xff\xff"), before(b"b"));
        assert_eq!(end(b"\xff"), Bound::Unbounded);
        assert_eq!(end(b""), Bound::Unbounded);
    }
}
