//! What a read returns: a window of pooled, aligned memory.

use std::fmt;
use std::ops::Deref;

use super::buffer_pool::AlignedBuf;

/// Bytes read from a medium, in a buffer that goes back to its pool when it is dropped.
///
/// It dereferences to exactly the bytes that were asked for.
pub struct IoBuf {
    memory: AlignedBuf,
    start: usize,
    len: usize,
    device_bytes: u64,
}

impl IoBuf {
    /// A buffer holding a copy of `bytes`.
    ///
    /// ```
    /// use thermocline::storage::IoBuf;
    /// let buffer = IoBuf::copy_from(b"water");
    /// assert_eq!(&buffer[..], b"water");
    /// assert_eq!(buffer.device_bytes(), 5);
    /// ```
    pub fn copy_from(bytes: &[u8]) -> Self {
        let mut memory = AlignedBuf::take(bytes.len());
        memory[..bytes.len()].copy_from_slice(bytes);
        Self::window(memory, 0, bytes.len(), bytes.len() as u64)
    }

    /// `len` bytes of `memory` from `start` on; the device moved `device_bytes` for them.
    pub(super) fn window(memory: AlignedBuf, start: usize, len: usize, device_bytes: u64) -> Self {
        debug_assert!(start + len <= memory.len(), "window outside of its buffer");
        Self {
            memory,
            start,
            len,
            device_bytes,
        }
    }

    /// Bytes that the device moved for this read: more than the length where reads are aligned.
    pub fn device_bytes(&self) -> u64 {
        self.device_bytes
    }
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoBuf")
            .field("len", &self.len)
            .field("device_bytes", &self.device_bytes)
            .finish()
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for IoBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_window_is_exactly_what_was_asked_for() {
        let mut memory = AlignedBuf::take(8192);
        for (position, byte) in memory.iter_mut().enumerate() {
            *byte = position as u8;
        }
        let buffer = IoBuf::window(memory, 3, 4, 512);
        assert_eq!(&buffer[..], &[3, 4, 5, 6]);
        assert_eq!(buffer.device_bytes(), 512);
    }

    proptest! {
        #[test]
        fn a_copy_hides_what_a_reused_buffer_held(
            first in proptest::collection::vec(any::<u8>(), 0..9000),
            second in proptest::collection::vec(any::<u8>(), 0..9000),
        ) {
            drop(IoBuf::copy_from(&first));
            prop_assert_eq!(&IoBuf::copy_from(&second)[..], &second[..]);
        }
    }
}
