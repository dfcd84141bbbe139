//! Little-endian integers, varints and length-prefixed bytes, read without panicking.

/// Appends `value` in LEB128.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A cursor over bytes from disk: every read says whether there was enough.
#[derive(Debug, Clone)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes consumed so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        let bytes = self.take(16)?.try_into().ok()?;
        Some(u128::from_le_bytes(bytes))
    }

    /// All integers up to the end.
    pub(crate) fn varints(&mut self) -> Option<Vec<u64>> {
        let mut values = Vec::new();
        while !self.is_empty() {
            values.push(self.varint()?);
        }
        Some(values)
    }

    /// A LEB128 integer; more than ten bytes or a value over 64 bits is refused.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A varint that fits the platform's `usize`.
    #[inline]
    pub(crate) fn varint_usize(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// Bytes behind a varint length.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.varint_usize()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_and_bytes_come_back(value: u64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_bytes(&mut out, &bytes);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(decoder.varint(), Some(value));
            prop_assert_eq!(decoder.bytes(), Some(&bytes[..]));
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut decoder = Decoder::new(&bytes);
            while decoder.bytes().is_some() && !decoder.is_empty() {}
            prop_assert!(decoder.position() <= bytes.len());
        }
    }

    #[test]
    fn an_overlong_varint_is_refused() {
        assert_eq!(Decoder::new(&[0xff; 11]).varint(), None);
        assert_eq!(Decoder::new(&[0x80; 3]).varint(), None);
    }
}
