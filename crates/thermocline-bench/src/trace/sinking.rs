//! Reads of sunk and of hot records, as the HotRAP paper defines them (§4.3).
//!
//! A read is of a *sunk* record if more than the threshold has been written since the last write of
//! this record, so that its latest version has probably sunk to the slow disk. It is of a *hot*
//! record if less than the threshold has been read since the last read of it, so that it is
//! probably found hot. The paper's threshold is 5 % of the data.
//!
//! A record that was not written yet is sunk, because it was loaded before the first access. A
//! record that was not read yet is not hot.

/// Counts the reads of sunk and hot records.
#[derive(Debug)]
pub(crate) struct Sinking {
    threshold: u64,
    /// Bytes read so far.
    read: u64,
    /// Bytes written so far.
    written: u64,
    records: Vec<Last>,
    /// What was found.
    pub(crate) found: Shares,
}

/// What had been read and written after the last read and write of a record.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    read: Option<u64>,
    written: Option<u64>,
}

/// How many reads were of which records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    reads: u64,
    sunk: u64,
    hot: u64,
    both: u64,
}

impl Sinking {
    /// For `records` records, none of which has been read or written yet.
    pub(crate) fn new(records: usize, threshold: u64) -> Self {
        Self {
            threshold,
            read: 0,
            written: 0,
            records: vec![Last::default(); records],
            found: Shares::default(),
        }
    }

    /// A read of `bytes` from the record.
    pub(crate) fn read(&mut self, record: usize, bytes: u64) {
        let Some(last) = self.records.get_mut(record) else {
            return;
        };
        let sunk = last
            .written
            .is_none_or(|then| self.written - then > self.threshold);
        let hot = last
            .read
            .is_some_and(|then| self.read - then < self.threshold);
        self.found.reads += 1;
        self.found.sunk += u64::from(sunk);
        self.found.hot += u64::from(hot);
        self.found.both += u64::from(sunk && hot);
        self.read += bytes;
        last.read = Some(self.read);
    }

    /// A write of `bytes` to the record. A deletion writes its key.
    pub(crate) fn write(&mut self, record: usize, bytes: u64) {
        if let Some(last) = self.records.get_mut(record) {
            self.written += bytes;
            last.written = Some(self.written);
        }
    }
}

impl Shares {
    /// Share of reads of sunk records. None if there are no reads.
    pub(crate) fn sunk(&self) -> Option<f64> {
        self.of(self.sunk)
    }

    /// Share of reads of hot records.
    pub(crate) fn hot(&self) -> Option<f64> {
        self.of(self.hot)
    }

    /// Share of reads of records that are both.
    pub(crate) fn both(&self) -> Option<f64> {
        self.of(self.both)
    }

    fn of(&self, part: u64) -> Option<f64> {
        (self.reads > 0).then(|| part as f64 / self.reads as f64)
    }
}
