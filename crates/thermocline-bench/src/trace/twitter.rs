//! Twitter's cache traces: CSV without a header, with one access a line: time, key, key size, value
//! size, client, operation, time to live.

use anyhow::{Context, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::access::{Access, Action, Operations, number, operation, shown};
use super::input::{Input, Lines};

const OPERATIONS: &Operations = &[
    ("get", Action::Read),
    ("gets", Action::Read),
    ("set", Action::Write),
    ("add", Action::Write),
    ("replace", Action::Write),
    ("cas", Action::Write),
    ("append", Action::Write),
    ("prepend", Action::Write),
    ("incr", Action::Write),
    ("decr", Action::Write),
    ("delete", Action::Delete),
];

/// The accesses of `input`.
pub(super) fn read(input: Input) -> impl Iterator<Item = Result<Access>> {
    let mut lines = Lines::new(input);
    std::iter::from_fn(move || {
        let access = lines.next().map(|line| line.map(parse)).transpose()?;
        let access = access.and_then(|access| access);
        Some(access.with_context(|| format!("line {}", lines.number())))
    })
}

fn parse(line: &[u8]) -> Result<Access> {
    fields(line)
        .with_context(|| {
            format!(
                "`{}` is not time,key,key size,value size,client,operation,time to live",
                shown(line)
            )
        })
        .and_then(|[key, key_len, value_len, operation_name]| {
            let (operation, action) = operation(OPERATIONS, operation_name)?;
            let value_len = number(value_len, "value size")?;
            Ok(Access {
                key: xxh3_64(key),
                action,
                operation,
                key_len: Some(number(key_len, "key size")?),
                // A miss or a deletion has no value.
                value_len: (value_len > 0).then_some(value_len),
                repeats: 1,
            })
        })
}

/// Key, its size, the value's size, and the operation. Commas between the first field and the last
/// five are part of the key.
fn fields(line: &[u8]) -> Option<[&[u8]; 4]> {
    let comma = line.iter().position(|&byte| byte == b',')?;
    let mut fields = line.get(comma + 1..)?.rsplitn(6, |&byte| byte == b',');
    let _time_to_live = fields.next()?;
    let operation = fields.next()?;
    let _client = fields.next()?;
    let value_len = fields.next()?;
    let key_len = fields.next()?;
    Some([fields.next()?, key_len, value_len, operation])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Format::Twitter;
    use crate::trace::tests::{decode, refusal};

    const FIXTURE: &[u8] = include_bytes!("fixtures/twitter.csv");

    #[test]
    fn every_line_is_an_access() {
        let expected: [(&str, &str, Action, u32, Option<u32>); 7] = [
            (
                "nz:u:eeW511W3dcH3de3d15ec",
                "get",
                Action::Read,
                22,
                Some(304),
            ),
            ("nz:u:eeW5", "get", Action::Read, 14, None),
            ("nz:u:eeW5", "set", Action::Write, 14, Some(120)),
            ("key,with,commas", "gets", Action::Read, 16, Some(90)),
            ("nz:u:eeW5", "cas", Action::Write, 14, Some(130)),
            (
                "nz:u:eeW511W3dcH3de3d15ec",
                "delete",
                Action::Delete,
                22,
                None,
            ),
            (
                "nz:u:eeW511W3dcH3de3d15ec",
                "add",
                Action::Write,
                22,
                Some(304),
            ),
        ];
        let expected = expected.map(|(key, operation, action, key_len, value_len)| Access {
            key: xxh3_64(key.as_bytes()),
            action,
            operation,
            key_len: Some(key_len),
            value_len,
            repeats: 1,
        });
        assert_eq!(decode(Twitter, FIXTURE), expected);
    }

    #[test]
    fn bad_lines_are_explained() {
        let good = "0,key,3,10,1,get,0\n\n";
        for (line, expected) in [
            ("0,key,3,10,1,get", "is not time,key,key size"),
            (
                "0,key,3,10,1,fetch,0",
                "`fetch` is no operation; there are get, gets",
            ),
            ("0,key,3,much,1,get,0", "the value size is `much`"),
            ("0,key,-3,10,1,get,0", "the key size is `-3`"),
        ] {
            let error = refusal(Twitter, format!("{good}{line}\n").as_bytes());
            assert!(error.contains("line 3: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        let error = refusal(Twitter, &[b'x'; 70_000]);
        assert!(error.contains("line 1: it is longer than 65536"), "{error}");
    }
}
