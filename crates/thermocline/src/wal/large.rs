//! A record of large batches. It goes to the file without being copied into the buffer (I8).

use bytes::Bytes;

use super::log::{Shared, State};
use super::record::GroupHeader;
use crate::coding::put_varint;
use crate::error::Result;
use crate::log_format::{RECORD_HEADER_LEN, record_header};
use crate::metrics::Purpose;
use crate::points::point;

/// A record whose batches have at least this many bytes is not buffered.
pub(super) const LARGE_RECORD: usize = 1 << 20;

impl Shared {
    /// Hands the record of a group to the file, after what the buffer holds. From then on, the
    /// record cannot be withdrawn.
    ///
    /// # Errors
    /// As [`Shared::flush`]; the group is then not part of the log.
    pub(super) fn write_large(
        &self,
        state: &mut State,
        header: &GroupHeader,
        batches: &[Bytes],
    ) -> Result<()> {
        self.flush(state)?;
        let extent = state.current.extent;
        // In front of each batch goes its length, and in front of the first also the headers of
        // record and group.
        let mut front = vec![0; RECORD_HEADER_LEN];
        header.encode(&[], &mut front);
        let mut pieces = Vec::with_capacity(2 * batches.len());
        for batch in batches {
            put_varint(&mut front, batch.len() as u64);
            pieces.push(Bytes::from(std::mem::take(&mut front)));
            pieces.push(batch.clone());
        }
        let Some(first) = pieces.first_mut() else {
            return Ok(());
        };
        let mut begin = first.to_vec();
        let payload: Vec<&[u8]> = std::iter::once(&begin[RECORD_HEADER_LEN..])
            .chain(pieces[1..].iter().map(|piece| &piece[..]))
            .collect();
        let own = record_header(extent.number, extent.len, &payload)?;
        begin[..RECORD_HEADER_LEN].copy_from_slice(&own);
        pieces[0] = Bytes::from(begin);
        self.tier.with_room(|| {
            let written = point!(self.points, "wal.before_hand_over").and_then(|()| {
                let mut rest = pieces.iter();
                rest.try_for_each(|piece| state.current_file.append(piece))
            });
            written.map_err(|error| self.undo_append(state, error))
        })?;
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.tier.count_write(Purpose::Wal, len);
        self.tier.add_file_bytes(len);
        state.current.mark(header.first_seq, extent.len);
        state.next_seq += header.count;
        state.current.extent.len += len;
        state.current.extent.last_seq = state.next_seq - 1;
        // The record is in the file: an error must no longer mean "not written".
        point!(self.points, "wal.after_hand_over").map_err(|error| self.poison(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_format::put_record;

    /// What is written in pieces reads like what is written at once.
    #[test]
    fn the_header_of_pieces_is_that_of_the_whole() {
        let mut whole = Vec::new();
        put_record(&mut whole, 7, 4096, |out| {
            out.extend_from_slice(b"some words")
        })
        .unwrap();
        let pieces: [&[u8]; 3] = [b"some", b" ", b"words"];
        let header = record_header(7, 4096, &pieces).unwrap();
        assert_eq!(header, whole[..RECORD_HEADER_LEN]);
    }
}
