//! How much a device does at once.

/// Most bytes that a device moves in one operation; writers gather this much. Twice as much would
/// be no faster where one operation is under way while the next is prepared, and would take twice
/// the memory.
pub(crate) const MAX_OPERATION: u64 = 512 << 10;

/// Number of operations that it takes to move `bytes` at once.
pub(crate) fn operations(bytes: u64) -> u64 {
    bytes.div_ceil(MAX_OPERATION).max(1)
}

/// Bytes written that are not part of an operation yet.
#[derive(Debug, Default)]
pub(crate) struct Gathered(u64);

impl Gathered {
    /// Adds `bytes`; takes and returns as many as make up whole operations.
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
