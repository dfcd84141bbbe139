//! Overlapped reads: a few threads of the process help callers that read many ranges.
//!
//! A disk answers several reads in little more time than one. The caller and the helper threads
//! claim ranges from a shared batch until none is left. So a batch gets done even when every helper
//! is busy or none could be started.

// Real threads, outside any model checker's run: hence the standard atomic.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use crossbeam_channel::unbounded;

use super::helpers::{HELPERS, Helpers};
use super::{IoBuf, ReadRequest};
use crate::error::{Error, Result};

static READERS: LazyLock<Helpers> = LazyLock::new(|| Helpers::start("thermocline-read"));

/// Ranges to read. Whoever raises `next` past a range reads it.
struct Batch {
    requests: Vec<ReadRequest>,
    next: AtomicUsize,
}

impl Batch {
    fn claim(&self) -> Option<(usize, &ReadRequest)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        Some((index, self.requests.get(index)?))
    }
}

/// Reads all `requests`, overlapped; results are in the order of the requests.
pub(super) fn read_overlapped(requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
    if let [] | [_] = requests {
        return requests
            .iter()
            .map(|r| r.file.read(r.offset, r.len))
            .collect();
    }
    let batch = Arc::new(Batch {
        requests: requests.to_vec(),
        next: AtomicUsize::new(0),
    });
    let (results, finished) = unbounded();
    for _ in 1..requests.len().min(HELPERS + 1) {
        let (batch, results) = (Arc::clone(&batch), results.clone());
        let is_called = READERS.call(move || {
            while let Some((index, request)) = batch.claim() {
                let result = request.file.read(request.offset, request.len);
                if results.send((index, result)).is_err() {
                    return;
                }
            }
        });
        if !is_called {
            break;
        }
    }
    // The channel must end once every helper is done.
    drop(results);

    let mut read: Vec<Option<Result<IoBuf>>> = requests.iter().map(|_| None).collect();
    let mut missing = requests.len();
    while let Some((index, request)) = batch.claim() {
        read[index] = Some(request.file.read(request.offset, request.len));
        missing -= 1;
    }
    while missing > 0 {
        let Ok((index, result)) = finished.recv() else {
            break;
        };
        read[index] = Some(result);
        missing -= 1;
    }
    read.into_iter()
        .zip(requests)
        .map(|(result, request)| {
            result.unwrap_or_else(|| {
                let cause = std::io::Error::other("the reading thread panicked");
                Err(Error::io("read", request.file.path(), cause))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::storage::TableFile;

    /// Returns its offset as content; each read waits a moment for `together` reads to be under
    /// way.
    #[derive(Debug)]
    struct Meeting {
        together: usize,
        under_way: Mutex<usize>,
        came: Condvar,
    }

    impl Meeting {
        fn have_met(&self) -> bool {
            *self.under_way.lock().unwrap() >= self.together
        }
    }

    impl TableFile for Meeting {
        fn path(&self) -> &Path {
            Path::new("meeting")
        }

        fn len(&self) -> u64 {
            u64::MAX
        }

        fn read(&self, offset: u64, _len: usize) -> Result<IoBuf> {
            let mut under_way = self.under_way.lock().unwrap();
            *under_way += 1;
            self.came.notify_all();
            let patience = Duration::from_millis(100);
            let alone = |under_way: &mut usize| *under_way < self.together;
            let (mut under_way, waited) = self
                .came
                .wait_timeout_while(under_way, patience, alone)
                .unwrap();
            // Readers that have met stay counted, so that none waits for one that has left.
            if waited.timed_out() {
                *under_way -= 1;
            }
            drop(under_way);
            Ok(IoBuf::copy_from(&offset.to_le_bytes()))
        }
    }

    /// Fails or panics at chosen offsets.
    #[derive(Debug)]
    struct Broken;

    impl TableFile for Broken {
        fn path(&self) -> &Path {
            Path::new("broken")
        }

        fn len(&self) -> u64 {
            u64::MAX
        }

        fn read(&self, offset: u64, _len: usize) -> Result<IoBuf> {
            match offset % 3 {
                0 => Ok(IoBuf::copy_from(&offset.to_le_bytes())),
                1 => Err(Error::corruption("broken", offset, "planted")),
                // The caller's own reads would panic in the caller, so only helpers panic.
                _ if std::thread::current()
                    .name()
                    .is_some_and(|n| n.starts_with("thermocline-read")) =>
                {
                    panic!("planted")
                }
                _ => Err(Error::Closed),
            }
        }
    }

    fn requests(file: &Arc<dyn TableFile>, count: u64) -> Vec<ReadRequest> {
        (0..count)
            .map(|offset| ReadRequest {
                file: Arc::clone(file),
                offset,
                len: 8,
            })
            .collect()
    }

    /// The helpers belong to the process. Other tests may keep all of them busy, and the caller
    /// then reads alone. The first version of this test waited for two helpers for ever.
    #[test]
    fn reads_overlap_and_keep_their_order() {
        let have_met = (0..100).any(|_| {
            let meeting = Arc::new(Meeting {
                together: 3,
                under_way: Mutex::new(0),
                came: Condvar::new(),
            });
            let file: Arc<dyn TableFile> = Arc::clone(&meeting) as Arc<_>;
            let read = read_overlapped(&requests(&file, 3));
            for (offset, result) in read.iter().enumerate() {
                assert_eq!(
                    result.as_ref().unwrap()[..],
                    (offset as u64).to_le_bytes()[..]
                );
            }
            meeting.have_met()
        });
        assert!(have_met, "three reads were never under way at once");
    }

    #[test]
    fn one_request_is_read_by_the_caller_and_none_is_fine() {
        let file: Arc<dyn TableFile> = Arc::new(Broken);
        let mut one = requests(&file, 1);
        one[0].offset = 2; // panics in a helper
        assert!(matches!(read_overlapped(&one)[..], [Err(Error::Closed)]));
        assert!(read_overlapped(&[]).is_empty());
    }

    #[test]
    fn errors_stay_with_their_request_and_a_panic_becomes_one() {
        let file: Arc<dyn TableFile> = Arc::new(Broken);
        for _ in 0..3 * HELPERS {
            let read = read_overlapped(&requests(&file, 30));
            assert_eq!(read.len(), 30);
            for (offset, result) in read.iter().enumerate() {
                match offset % 3 {
                    0 => assert!(result.is_ok()),
                    1 => assert!(result.as_ref().is_err_and(|e| e.is_corruption())),
                    _ => assert!(missing(result) || matches!(result, Err(Error::Closed))),
                }
            }
        }
    }

    fn missing(result: &Result<IoBuf>) -> bool {
        matches!(result, Err(Error::Io { source, .. }) if source.to_string().contains("panicked"))
    }
}
