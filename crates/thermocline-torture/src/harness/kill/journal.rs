//! What was asked of a store, written outside of the store: the expected state that outlives a
//! kill.
//!
//! The journal is a file of records of one length. Records are appended before and after each call.
//! The length divides a page, so a kill cannot leave half of a record: the system looks for signals
//! between pages only.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use thermocline::Durability;

/// Bytes of a record.
const LEN: usize = 32;

/// Something asked of the store, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A client is about to write.
    Began {
        client: u8,
        durability: Durability,
        number: u64,
    },
    /// The write was acknowledged, with this sequence number.
    Acknowledged { client: u8, number: u64, seq: u64 },
    /// The write was refused: it never was.
    Refused { client: u8, number: u64 },
    /// A call began that keeps all that was acknowledged before it.
    KeepBegan,
    /// It was answered.
    Kept,
    /// A store was opened and held this many of the client's writes, and no others.
    Found { client: u8, number: u64 },
    /// All clients' numbers were found.
    Opened,
    /// The clients' keyspaces were created.
    KeyspacesMade,
    /// The keyspace that comes and goes is about to be created, for the lifetime of this number.
    ScratchBegan { number: u64 },
    /// It was.
    ScratchMade { number: u64 },
    /// It is about to be dropped.
    ScratchGoes { number: u64 },
    /// It was.
    ScratchGone { number: u64 },
    /// A checkpoint was begun.
    CopyBegan,
    /// It was acknowledged.
    Copied,
    /// Its directories are about to be removed.
    CopyGone,
}

impl Event {
    fn encode(self) -> [u8; LEN] {
        let (kind, client, durability, number, seq) = match self {
            Event::Began {
                client,
                durability,
                number,
            } => (1, client, durability as u8, number, 0),
            Event::Acknowledged {
                client,
                number,
                seq,
            } => (2, client, 0, number, seq),
            Event::Refused { client, number } => (3, client, 0, number, 0),
            Event::KeepBegan => (4, 0, 0, 0, 0),
            Event::Kept => (5, 0, 0, 0, 0),
            Event::Found { client, number } => (6, client, 0, number, 0),
            Event::Opened => (7, 0, 0, 0, 0),
            Event::KeyspacesMade => (8, 0, 0, 0, 0),
            Event::ScratchBegan { number } => (9, 0, 0, number, 0),
            Event::ScratchMade { number } => (10, 0, 0, number, 0),
            Event::ScratchGoes { number } => (11, 0, 0, number, 0),
            Event::ScratchGone { number } => (12, 0, 0, number, 0),
            Event::CopyBegan => (13, 0, 0, 0, 0),
            Event::Copied => (14, 0, 0, 0, 0),
            Event::CopyGone => (15, 0, 0, 0, 0),
        };
        let mut record = [0; LEN];
        record[..3].copy_from_slice(&[kind, client, durability]);
        record[8..16].copy_from_slice(&u64::to_le_bytes(number));
        record[16..24].copy_from_slice(&u64::to_le_bytes(seq));
        record
    }

    fn decode(record: &[u8; LEN]) -> Option<Self> {
        let [kind, client, durability, ..] = *record;
        let word = |at: usize| {
            let bytes = record.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let (number, seq) = (word(8)?, word(16)?);
        Some(match kind {
            1 => Event::Began {
                client,
                durability: match durability {
                    0 => Durability::None,
                    1 => Durability::Buffered,
                    _ => Durability::Sync,
                },
                number,
            },
            2 => Event::Acknowledged {
                client,
                number,
                seq,
            },
            3 => Event::Refused { client, number },
            4 => Event::KeepBegan,
            5 => Event::Kept,
            6 => Event::Found { client, number },
            7 => Event::Opened,
            8 => Event::KeyspacesMade,
            9 => Event::ScratchBegan { number },
            10 => Event::ScratchMade { number },
            11 => Event::ScratchGoes { number },
            12 => Event::ScratchGone { number },
            13 => Event::CopyBegan,
            14 => Event::Copied,
            15 => Event::CopyGone,
            _ => return None,
        })
    }
}

/// The journal, open for appending by several threads.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    /// Opens the journal at `path`, created where it is missing.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Self(file))
    }

    /// Hands `event` to the system, as one piece.
    pub(super) fn note(&self, event: Event) -> Result<(), String> {
        let written = (&self.0).write_all(&event.encode());
        written.map_err(|error| format!("the journal: {error}"))
    }

    /// All events of the journal at `path`.
    pub(super) fn read(path: &Path) -> Result<Vec<Event>, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("the journal: {error}"))?;
        let (records, rest) = bytes.as_chunks::<LEN>();
        let events: Option<Vec<Event>> = records.iter().map(Event::decode).collect();
        match (events, rest) {
            (Some(events), []) => Ok(events),
            _ => Err("the journal is torn, and proves nothing".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_in_order() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("journal");
        let events = [
            Event::Began {
                client: 2,
                durability: Durability::Sync,
                number: 1 << 40,
            },
            Event::Acknowledged {
                client: 2,
                number: 1 << 40,
                seq: 77,
            },
            Event::KeepBegan,
            Event::ScratchGone { number: 3 },
            Event::CopyGone,
        ];
        for event in events {
            Journal::open(&path).unwrap().note(event).unwrap();
        }
        assert_eq!(Journal::read(&path).unwrap(), events);
        std::fs::write(&path, [0; LEN + 1]).unwrap();
        assert!(Journal::read(&path).is_err());
    }
}
