//! Traces of the cache2k benchmarks: one little-endian 32-bit integer per access, a read.

use anyhow::Result;

use super::access::Access;
use super::input::{Input, Records};

/// The accesses of `input`.
pub(super) fn read(input: Input) -> impl Iterator<Item = Result<Access>> {
    let mut records = Records::<4>::new(input);
    std::iter::from_fn(move || {
        let key = records.next().transpose()?;
        Some(key.map(|key| Access::read(u64::from(u32::from_le_bytes(key)))))
    })
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::{decode, refusal};
    use crate::trace::{Access, Format::Cache2k};

    /// `[131208, 16777456, 131208]`, packed by xz.
    const PACKED: &[u8] = include_bytes!("fixtures/cache2k.trace.xz");

    #[test]
    fn plain_and_packed_traces_are_the_same() {
        let keys = [131_208u32, 16_777_456, 131_208];
        let plain: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        let expected = keys.map(|key| Access::read(u64::from(key)));
        assert_eq!(decode(Cache2k, &plain), expected);
        assert_eq!(decode(Cache2k, PACKED), expected);
    }

    #[test]
    fn bad_files_are_refused() {
        let error = refusal(Cache2k, &[1, 0, 0, 0, 2]);
        assert!(error.contains("1 bytes at offset 4"), "{error}");
        refusal(Cache2k, &PACKED[..PACKED.len() - 20]);
        let mut damaged = PACKED.to_vec();
        damaged[30] ^= 0x10;
        refusal(Cache2k, &damaged);
    }
}
