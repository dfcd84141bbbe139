//! What a device does at once.

/// A device moves at most this much in one operation; the writers gather as much. Twice that would
/// be no faster where the next operation is under way during the last, and takes twice the memory.
pub(crate) const MAX_OPERATION: u64 = 512 << 10;

/// Operations that moving `bytes` at once takes.
pub(crate) fn operations(bytes: u64) -> u64 {
    bytes.div_ceil(MAX_OPERATION).max(1)
}

/// Bytes written that were not made an operation yet.
#[derive(Debug, Default)]
pub(crate) struct Gathered(u64);

impl Gathered {
    /// Adds `bytes` and takes what makes whole operations.
    pub(crate) fn add(&mut self, bytes: usize) -> u64 {
        self.0 += bytes as u64;
        let whole = self.0 - self.0 % MAX_OPERATION;
        self.0 -= whole;
        whole
    }

    /// Takes what is left.
    pub(crate) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_bytes_are_taken_as_whole_operations() {
        let mut gathered = Gathered::default();
        assert_eq!(gathered.add(MAX_OPERATION as usize - 1), 0);
        assert_eq!(gathered.add(2), MAX_OPERATION);
        assert_eq!(gathered.take(), 1);
        assert_eq!(gathered.take(), 0);
    }

    #[test]
    fn what_is_longer_than_an_operation_takes_several() {
        let moved = [0, 1, MAX_OPERATION, MAX_OPERATION + 1];
        assert_eq!(moved.map(operations), [1, 1, 1, 2]);
    }
}
