//! libCacheSim's oracleGeneral: 24 bytes per access, little-endian. They hold the time (u32), the
//! object (u64), its size (u32), and the number of the next access to it (i64; -1 or the greatest
//! for none). All accesses are reads.

use anyhow::{Result, ensure};

use super::access::Access;
use super::input::{Input, Records};

/// The accesses of `input`. The object's size is taken as that of its value. 0 means that there is
/// none.
pub(super) fn read(input: Input) -> impl Iterator<Item = Result<Access>> {
    let mut records = Records::<24>::new(input);
    std::iter::from_fn(move || {
        let offset = records.offset();
        let record = records.next().transpose()?;
        Some(record.and_then(|record| parse(&record, offset)))
    })
}

fn parse(record: &[u8; 24], offset: u64) -> Result<Access> {
    let [_, _, _, _, object @ .., a, b, c, d, e, f, g, h] = *record;
    let [i0, i1, i2, i3, i4, i5, i6, i7, s0, s1, s2, s3] = object;
    let next = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
    ensure!(
        next >= -1,
        "offset {offset}: the next access is {next}; expected its number, or -1 for none: is this \
         a file of 24 bytes per access?"
    );
    let size = u32::from_le_bytes([s0, s1, s2, s3]);
    Ok(Access {
        value_len: (size > 0).then_some(size),
        ..Access::read(u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]))
    })
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::{decode, refusal};
    use crate::trace::{Access, Format::OracleGeneral};

    const FIXTURE: &[u8] = include_bytes!("fixtures/oracle-general.bin");
    const PACKED: &[u8] = include_bytes!("fixtures/oracle-general.bin.zst");

    #[test]
    fn objects_and_their_sizes_are_read() {
        let read = |key, value_len| Access {
            value_len,
            ..Access::read(key)
        };
        let expected = [
            read(7, Some(100)),
            read((1 << 63) + 1, Some(5000)),
            read(7, Some(100)),
            read(9, None),
            read(7, Some(100)),
        ];
        assert_eq!(decode(OracleGeneral, FIXTURE), expected);
        assert_eq!(decode(OracleGeneral, PACKED), expected);
        // Several frames in a row are one file.
        assert_eq!(decode(OracleGeneral, &[PACKED, PACKED].concat()).len(), 10);
    }

    #[test]
    fn bad_files_are_refused() {
        let error = refusal(OracleGeneral, &FIXTURE[..50]);
        assert!(error.contains("2 bytes at offset 48"), "{error}");
        let error = refusal(OracleGeneral, &[0xf0; 48]);
        assert!(error.contains("offset 0: the next access is -"), "{error}");
        refusal(OracleGeneral, &PACKED[..PACKED.len() - 3]);
    }
}
