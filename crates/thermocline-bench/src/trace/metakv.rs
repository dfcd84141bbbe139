//! Meta's key-value traces, as CacheBench replays them: CSV with a header that names the columns.
//! `key`, `op` and `size` (of the value) must be there. `op_count` and `key_size` are used if they
//! are there. Everything else is skipped.

use anyhow::{Context, Result, bail, ensure};
use xxhash_rust::xxh3::xxh3_64;

use super::access::{Access, Action, Operations, number, operation, shown};
use super::input::{Input, Lines};

const OPERATIONS: &Operations = &[
    ("GET", Action::Read),
    ("GET_LEASE", Action::Read),
    ("SET", Action::Write),
    ("SET_LEASE", Action::Write),
    ("DELETE", Action::Delete),
];

/// Most accesses that one line may stand for, because a damaged count must not fill the memory.
const MOST_REPEATS: u32 = 1_000_000;

/// Where the columns are.
struct Columns {
    key: usize,
    op: usize,
    size: usize,
    op_count: Option<usize>,
    key_size: Option<usize>,
    /// How many columns there are.
    all: usize,
}

/// The accesses of `input`.
///
/// # Errors
/// It has no such header.
pub(super) fn read(input: Input) -> Result<impl Iterator<Item = Result<Access>>> {
    let mut lines = Lines::new(input);
    let header = lines.next().context("line 1")?;
    let header = header.context("there are no accesses in it")?;
    let columns = Columns::of(header).context("line 1")?;
    Ok(std::iter::from_fn(move || {
        let access = lines
            .next()
            .map(|line| line.map(|line| columns.parse(line)));
        let access = access.transpose()?.and_then(|access| access);
        Some(access.with_context(|| format!("line {}", lines.number())))
    }))
}

impl Columns {
    fn of(header: &[u8]) -> Result<Self> {
        let names: Vec<&[u8]> = split(header).collect();
        let find = |name: &str| names.iter().position(|found| *found == name.as_bytes());
        let needed = |name: &str| {
            find(name).with_context(|| {
                format!(
                    "`{}` is no header with the columns key, op and size: `{name}` is missing",
                    shown(header)
                )
            })
        };
        Ok(Self {
            key: needed("key")?,
            op: needed("op")?,
            size: needed("size")?,
            op_count: find("op_count"),
            key_size: find("key_size"),
            all: names.len(),
        })
    }

    fn parse(&self, line: &[u8]) -> Result<Access> {
        let fields: Vec<&[u8]> = split(line).collect();
        ensure!(
            fields.len() == self.all,
            "`{}` has {} fields, the header {}",
            shown(line),
            fields.len(),
            self.all
        );
        let field = |place: usize| fields.get(place).copied().unwrap_or_default();
        let (operation, action) = operation(OPERATIONS, field(self.op))?;
        let value_len = number(field(self.size), "size")?;
        let repeats = match self.op_count {
            Some(place) => number(field(place), "op_count")?,
            None => 1,
        };
        if !(1..=MOST_REPEATS).contains(&repeats) {
            bail!("the op_count is {repeats}; expected 1 to {MOST_REPEATS}");
        }
        let key_size = self.key_size.map(|place| number(field(place), "key_size"));
        Ok(Access {
            key: xxh3_64(field(self.key)),
            action,
            operation,
            key_len: key_size.transpose()?,
            // A miss or a deletion has no value.
            value_len: (value_len > 0).then_some(value_len),
            repeats,
        })
    }
}

fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Format::Metakv;
    use crate::trace::tests::{decode, refusal};

    /// Key, operation, what it does, the lengths of key and value, and repeats.
    type Line = (&'static str, &'static str, Action, u32, Option<u32>, u32);

    const FIXTURE: &[u8] = include_bytes!("fixtures/metakv.csv");

    #[test]
    fn columns_are_found_by_their_names() {
        let expected = [
            ("1001", "GET", Action::Read, 20, Some(300), 2),
            ("1002", "GET_LEASE", Action::Read, 30, None, 1),
            ("1002", "SET_LEASE", Action::Write, 30, Some(500), 1),
            ("1001", "DELETE", Action::Delete, 20, None, 1),
            ("1003", "SET", Action::Write, 25, Some(80), 1),
        ];
        let expected = expected.map(
            |(key, operation, action, key_len, value_len, repeats): Line| Access {
                key: xxh3_64(key.as_bytes()),
                action,
                operation,
                key_len: Some(key_len),
                value_len,
                repeats,
            },
        );
        assert_eq!(decode(Metakv, FIXTURE), expected);
        let [few] = decode(Metakv, b"size,op,key\r\n5,GET,k\r\n")[..] else {
            panic!("one access");
        };
        assert_eq!((few.key, few.repeats), (xxh3_64(b"k"), 1));
        assert_eq!((few.key_len, few.value_len), (None, Some(5)));
    }

    #[test]
    fn bad_lines_are_explained() {
        let error = refusal(Metakv, b"1001,GET,300,1\n");
        assert!(
            error.contains("line 1: `1001,GET,300,1` is no header"),
            "{error}"
        );
        for (line, expected) in [
            ("k,GET,5", "has 3 fields, the header 4"),
            ("k,PEEK,5,1", "`PEEK` is no operation; there are GET"),
            ("k,GET,big,1", "the size is `big`"),
            ("k,GET,5,0", "the op_count is 0; expected 1"),
            ("k,GET,5,4000000000", "expected 1 to 1000000"),
        ] {
            let text = format!("key,op,size,op_count\nk,GET,5,1\n{line}\n");
            let error = refusal(Metakv, text.as_bytes());
            assert!(error.contains("line 3: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
