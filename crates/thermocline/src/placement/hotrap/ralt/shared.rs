//! What readers, writers and the background work of RALT share.

use std::collections::BTreeSet;

use arc_swap::ArcSwap;

use super::buffer::Buffers;
use super::files::Files;
use super::scoring::{Model, Moment};
use super::sizes::Sizes;
use super::state::Clock;
use super::version::{Tracked, Version};
use super::worker::Worker;
use super::{RaltParts, open};
use crate::error::{Damaged, Error};
use crate::ids::KeyspaceId;
use crate::metrics::{IoMetrics, Purpose, RaltMetrics};
use crate::options::HotRapOptions;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// The insides of [`super::Ralt`].
#[derive(Debug)]
pub(super) struct Shared {
    /// Missing when its directory could not be had.
    pub(super) files: Option<Files>,
    pub(super) options: HotRapOptions,
    pub(super) model: Model,
    pub(super) sizes: Sizes,
    /// Stored only by [`Shared::put_in_force`].
    pub(super) version: ArcSwap<Version>,
    /// How often a version was put in force, counting the opening.
    pub(super) changes: AtomicU64,
    /// The keyspaces that there are: what tables and buffers hold of others counts for nothing.
    pub(super) keyspaces: ArcSwap<BTreeSet<KeyspaceId>>,
    /// How often a keyspace was dropped. Until the next merge of all tables the keyspace's records
    /// are in them, and part of all sums.
    pub(super) drops: AtomicU64,
    pub(super) buffers: Buffers,
    /// The time slice when the store was opened.
    first_tick: u64,
    /// A limit of the hot set from outside.
    pub(super) room: AtomicU64,
    /// Bytes of all records of the store, about; 0 while they are not known.
    pub(super) data: AtomicU64,
    /// A hotspot is being learnt.
    pub(super) learning: AtomicBool,
    /// As far as records that were read once tell, nothing is read more than the rest.
    pub(super) flat: AtomicBool,
    /// A step of work was found due.
    pub(super) pending: AtomicBool,
    /// Nothing is written any more.
    pub(super) stopped: AtomicBool,
    /// A reader came upon damage: the next step begins anew.
    pub(super) damaged: AtomicBool,
    /// Bytes of the state on disk; 0 if there is none. Whoever asks holds the manifest's lock, and
    /// must not wait for the worker's.
    pub(super) state_len: AtomicU64,
    trouble: Mutex<Option<String>>,
    pub(super) worker: Mutex<Worker>,
    /// Tables that no version names, whose files are still there.
    pub(super) retired: Mutex<Vec<Arc<Tracked>>>,
    pub(super) evictions: AtomicU64,
}

impl Shared {
    /// Opens what an earlier process left, or begins with nothing.
    pub(super) fn open(parts: RaltParts) -> Self {
        let sizes = Sizes::new(
            &parts.options,
            parts.fast.capacity(),
            parts.fast.planned_bytes(),
        );
        Self::with_sizes(parts, sizes)
    }

    /// As [`Shared::open`], with sizes that need not follow from the tier's.
    pub(super) fn with_sizes(parts: RaltParts, sizes: Sizes) -> Self {
        let model = Model::new(&parts.options);
        let opened = open::open(&parts, &sizes, &model);
        // Keyspaces may have been dropped before: no state says so.
        let is_sound = |table: &Arc<Tracked>| table.holds_only(&parts.keyspaces);
        let drops = u64::from(!opened.version.tables().all(is_sound));
        let shared = Self {
            options: parts.options,
            model,
            buffers: Buffers::new(&sizes, opened.clock.accessed(sizes.slice)),
            sizes,
            version: ArcSwap::from_pointee(opened.version),
            changes: AtomicU64::new(1),
            keyspaces: ArcSwap::from_pointee(parts.keyspaces),
            drops: AtomicU64::new(drops),
            first_tick: opened.clock.tick,
            room: AtomicU64::new(u64::MAX),
            data: AtomicU64::new(0),
            learning: AtomicBool::new(false),
            flat: AtomicBool::new(false),
            pending: AtomicBool::new(false),
            stopped: AtomicBool::new(opened.files.is_none()),
            files: opened.files,
            damaged: AtomicBool::new(false),
            state_len: AtomicU64::new(opened.log.len()),
            trouble: Mutex::new(opened.trouble),
            worker: Mutex::new(Worker::new(opened.log)),
            retired: Mutex::default(),
            evictions: AtomicU64::new(0),
        };
        // If the capacity is less than it was, there may be more than the limits allow, and writes
        // may find no space until that is seen to. Or there may be more tables than a process that
        // was killed could merge. There may never be a read that makes this work due.
        let version = shared.version.load_full();
        let is_due = shared.is_over(&version) || version.has_full_level0();
        shared.pending.store(is_due, Ordering::Relaxed);
        shared
    }

    /// Whether there is such a keyspace.
    pub(super) fn has_keyspace(&self, keyspace: KeyspaceId) -> bool {
        self.keyspaces.load().contains(&keyspace)
    }

    /// From now on `version` says what is hot.
    pub(super) fn put_in_force(&self, version: Version) {
        self.version.store(Arc::new(version));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Takes note of a new keyspace.
    pub(super) fn track(&self, keyspace: KeyspaceId) {
        self.keyspaces.rcu(|before| {
            let mut keyspaces = (**before).clone();
            keyspaces.insert(keyspace);
            keyspaces
        });
    }

    /// Makes a keyspace's records count for nothing.
    pub(super) fn forget(&self, keyspace: KeyspaceId) {
        self.keyspaces.rcu(|before| {
            let mut keyspaces = (**before).clone();
            keyspaces.remove(&keyspace);
            keyspaces
        });
        // Whoever sees the new number leaves the keyspace's records out.
        self.drops.fetch_add(1, Ordering::Release);
    }

    /// RALT's time once `accessed` bytes were accessed since the beginning of the slice in which it
    /// was opened.
    pub(super) fn moment(&self, accessed: u64, generation: u64) -> Moment {
        let slice = self.sizes.slice;
        Moment {
            tick: self.first_tick + accessed / slice,
            fraction: (accessed % slice) as f32 / slice as f32,
            generation,
        }
    }

    /// The current time slice.
    pub(super) fn slice(&self) -> u64 {
        self.first_tick + self.buffers.accessed() / self.sizes.slice
    }

    /// RALT's time now.
    pub(super) fn now(&self) -> Moment {
        let generation = self.version.load().limits.generation;
        self.moment(self.buffers.accessed(), generation)
    }

    /// RALT's time now, for a state.
    pub(super) fn clock(&self) -> Clock {
        let (accessed, slice) = (self.buffers.accessed(), self.sizes.slice);
        Clock {
            tick: self.first_tick + accessed / slice,
            begun: (accessed % slice) as f64 / slice as f64,
        }
    }

    /// What the hot set is kept below.
    pub(super) fn hot_set_limit(&self, version: &Version) -> u64 {
        version
            .limits
            .hot_set
            .min(self.room.load(Ordering::Relaxed))
    }

    /// Remembers what went wrong, the first thing of all.
    pub(super) fn note_trouble(&self, error: &Error) {
        let in_words = || error.clone().of(Damaged::AccessRecords).to_string();
        self.trouble.lock().get_or_insert_with(in_words);
    }

    /// What a reader does about an error: hotness is advice (I7), so nothing more is hot.
    pub(super) fn note_damage(&self, error: &Error) {
        self.note_trouble(error);
        if error.is_corruption() {
            self.damaged.store(true, Ordering::Relaxed);
            self.pending.store(true, Ordering::Release);
        }
    }

    /// The first thing that went wrong.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// What was read and written, for whatever purpose: all of it is for access records.
    pub(super) fn io(&self) -> IoMetrics {
        let mut sum = IoMetrics::none(Purpose::Hotness);
        if let Some(files) = &self.files {
            for purpose in Purpose::ALL {
                sum.add(&files.tier.io(*purpose));
            }
        }
        sum
    }

    /// Whether everything that is read counts as hot, by what is known in `version`. Not once
    /// nothing is learnt any more: it would be so for good.
    pub(super) fn is_generous(&self, version: &Version) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        let may_be_hot = || !self.flat.load(Ordering::Relaxed);
        version.is_young() && may_be_hot() || self.learning.load(Ordering::Relaxed)
    }

    /// What is counted, as of now.
    pub(super) fn metrics(&self) -> RaltMetrics {
        let version = self.version.load();
        let now = self.now();
        let (accesses, dropped_accesses) = self.buffers.counts();
        let io = self.io();
        let histograms = version.bins().count() * size_of::<super::histogram::Bin>();
        let boundary = version.limits.hot.boundary(version.bins());
        let pinned = self.files.as_ref().map_or(0, Files::pinned_bytes);
        RaltMetrics {
            hot_set_bytes: version.hot_set(),
            hot_set_limit_bytes: self.hot_set_limit(&version),
            physical_bytes: version.physical(),
            physical_limit_bytes: version.limits.physical,
            memory_bytes: pinned + histograms as u64 + self.buffers.memory(),
            records: version.tables().map(|table| table.meta.entries).sum(),
            hot_threshold: self.model.score_at(boundary, now),
            evicted_threshold: self.model.score_at(version.limits.evicted, now),
            is_young: version.is_young(),
            is_generous: self.is_generous(&version),
            tick: now.tick,
            accesses,
            dropped_accesses,
            evictions: self.evictions.load(Ordering::Relaxed),
            read_bytes: io.read_bytes,
            write_bytes: io.write_bytes,
            trouble: self.trouble(),
            has_stopped: self.stopped.load(Ordering::Relaxed),
            // Counted where the work is queued.
            cpu_seconds: 0.0,
        }
    }
}
