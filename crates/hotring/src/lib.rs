//! A concurrent in-memory hash map that bends toward its hotspots.
//!
//! In a chained table, the time to find a hot item depends on its place in the chain. Here every
//! bucket's items form a *ring* with a movable *head*. The head goes where the accesses are, so
//! that the item that is asked for most is found first. The idea is that of the paper *HotRing: A
//! Hotspot-Aware In-Memory Key-Value Store* (FAST 2020); the structure underneath is another one,
//! see below.
//!
//! ```text
//!      bucket: 16 bytes
//!     ┌──────────────┐
//!     │ anchor  head │
//!     └───┬───────┼──┘
//!         │       └───────────────┐         the hottest item
//!         ▼                       ▼
//!       ┌────┐     ┌────┐       ┌────┐     ┌────┐
//!       │ 17 ├────►│ 23 ├──────►│ 42 ├────►│ 58 ├───► the next bucket's anchor
//!       └────┘     └────┘       └────┘     └────┘
//!         ▲                                   │
//!         └── the ring closes at the anchor ──┘
//! ```
//!
//! Items stand in the order of their hashes. A search for 42 is a hit at once. One for 50 ends at
//! 58. One for 20 sees at the head that 20 has to be before it, and goes on at the anchor, which
//! lies beside the head in memory; it ends at 23. The ring never needs to be walked round.
//!
//! # Examples
//!
//! ```
//! use hotring::HotRing;
//!
//! let map = HotRing::new();
//! let ring = map.pin();
//! ring.insert("Ada".to_string(), 1815);
//! ring.insert("Grace".to_string(), 1906);
//! assert_eq!(ring.get("Ada"), Some(&1815));
//! assert_eq!(ring.remove("Grace"), Some(&1906));
//! assert_eq!(ring.iter().count(), 1);
//! ```
//!
//! [`HotRing`] holds keys and values of any type, and changes values of up to eight bytes in place
//! if they are atomics ([`InPlace`]). [`BytesRing`] holds byte strings without a second
//! indirection, [`RecordRing`] records whose values readers may keep. All use is through a handle
//! ([`HotRing::pin`]), and values are seen by reference as long as it lives.
//!
//! # How it works
//!
//! - **One list.** All items of the map form one list in the order of their hashes, a bucket's
//!   *anchor* before its items (split-ordered lists, Shalev and Shavit 2006). Items are deleted by
//!   marking them and then unlinking them (Harris 2001, Michael 2002), and replaced by one exchange
//!   that deletes the old item and links the new one behind it in the same instant.
//! - **Heads are hints.** A head may point to an item that is deleted, never to memory that is
//!   freed: an item counts the heads that point to it. So a head moves by one exchange, whatever
//!   else goes on.
//! - **First heads.** A ring gets its head when its second item comes, at the second of the two in
//!   the order of the ring. So in a ring of two items each is found at the first step.
//! - **Movement.** Every fifth request of a thread looks whether the head served it. If not, either
//!   a round of sampling finds the cheapest place for the head ([`Movement::Sampling`]), or the
//!   head goes to the item at once ([`Movement::Random`]).
//! - **Growth by cost.** The table doubles when accesses visit too many items, not when there are
//!   too many items: skewed accesses need a smaller table. Items do not move; the requests
//!   themselves put new anchors among them, a few at a time. Shrinking is by
//!   [`HotRing::shrink_to`].
//! - **Reclamation** by epochs (`crossbeam-epoch`).
//!
//! # Progress
//!
//! - `get`, `contains_key`, `read`, `iter` and `entries` are lock-free: a search takes another step
//!   only because another thread has completed a write. They are not wait-free, because a stream of
//!   new items before the sought one delays the search. `iter` and `entries` write nothing. The
//!   others write samples while a round runs, and take a stale head off. One that ends a period
//!   does more: it moves a head, or begins a round, or begins to grow and allocates a table. While
//!   the table changes, it puts up to 64 anchors into the list or takes up to 64 out, and may free
//!   what was removed from any map. So see to it that no destructor of a key or value blocks or
//!   panics where a lookup must not.
//! - `insert`, `update`, `remove`, their variants and `clear` are lock-free: an exchange fails only
//!   because another one succeeded. So are in-place changes, which are one atomic operation after a
//!   search. A closure or an `Eq` that a caller passes in may of course take as long as it likes.
//! - `len`, `is_empty`, `memory_used`, `mean_visits` and `is_resizing` are wait-free.
//! - Growth is not lock-free, but no request waits for it. A thread that stops in the middle of a
//!   chunk of this work keeps the table from changing, and all operations go on with the present
//!   table. `reserve` and `shrink_to` do wait for another thread that is in the middle of a chunk.
//!   They do not wait for handles.
//! - Memory is given back when handles go: a handle that is held keeps everything that anyone
//!   removes meanwhile. What no handle keeps is freed by the threads that remove entries, as they
//!   take or renew handles ([`HotRing::pin`]). An old table is freed by the thread whose request
//!   ends the change. When a handle has kept something, those threads may take or renew some
//!   hundred handles before it begins to come back. What a thread leaves when it ends comes back as
//!   others free theirs.
//! - All of this is as lock-free as the allocator is, which most are not quite.
//!
//! No operation is only obstruction-free.
//!
//! # Platforms
//!
//! Systems of 64 bits, as pointers have room for more than an address only there.
//!
//! # Memory
//!
//! A bucket takes 16 bytes; from 8 MiB on a table is a mapping of its own, in huge pages where the
//! system has any. An entry takes one allocation of 24 bytes, the key and the value; for byte
//! strings 32 bytes and both strings, for records 40 bytes, header, key and value. A lookup that
//! finds its key at the head touches one line of the table and the entry.
//!
//! Running out of memory for an entry aborts the process for [`HotRing`], as `std`'s collections
//! do, and is an error for [`BytesRing`] and [`RecordRing`]. A table that cannot be allocated is an
//! error; automatic growth is then put off.
//!
//! # Adversaries
//!
//! The default hasher has a random seed for each map. Someone who knows it, or can measure time
//! well enough to find out, can choose keys of equal hash; each access to those costs time
//! proportional to their number. Where keys come from such people, pass a keyed hash like SipHash
//! ([`HotRing::with_options_and_hasher`]).

mod anchor;
mod buckets;
mod bytes;
mod calm;
mod core;
mod draft;
mod error;
mod head;
mod income;
mod link;
mod map;
mod movement;
mod options;
mod period;
mod reclaim;
mod records;
mod rehash;
mod search;
mod sync;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod walk;
mod write;

pub use bytes::{BytesEntries, BytesEntry, BytesIter, BytesRing, PinnedBytes};
pub use error::{StoreError, TableError};
pub use map::{CompareAndSwap, Entries, EntryRef, HotRing, InPlace, Iter, Pinned};
pub use options::{Movement, Options};
pub use records::{
    Exchanged, Held, NewRecord, PinnedRecords, RecordEntries, RecordRef, RecordRing,
};
