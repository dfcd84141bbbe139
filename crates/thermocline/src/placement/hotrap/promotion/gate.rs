//! Which records may enter the promotion cache, and when. This keeps I6.

use bytes::Bytes;

use super::cache::{Entering, Promoted, PromotionCache};
use crate::cache::LARGE_BUFFER;
use crate::ids::FileId;
use crate::key::{KeyRange, SeqNo};
use crate::metrics::Refusal;
use crate::placement::Brought;
use crate::read::{PromotionView, Superversion};
use crate::record::Record;
use crate::sync::{Arc, Mutex};
use crate::version::TableHandle;

/// The part of the cache that a large value may take is one of so many.
const LARGEST_PART: u64 = 8;

/// A crossing that is under way: between its start and its installation, newer versions of the
/// keys in its inputs are about to appear below level f.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// The compaction's number.
    pub(crate) job: u64,
    /// The keys that it may bring down: the hull of `inputs`.
    pub(crate) range: KeyRange,
    /// The level that the inputs come from: f, the one above (a bypass), or L0.
    pub(crate) level: usize,
    /// The tables that it brings down.
    pub(crate) inputs: Vec<FileId>,
}

impl Claim {
    /// Whether the crossing may bring down a version of `key` that the reader at `seq` over `seen`
    /// does not know. It cannot if the reader saw the very table that goes down, and nothing in
    /// that is newer than the reader's moment: the reader has found no version of the key there,
    /// and nothing newer can come.
    fn concerns(&self, key: &[u8], seen: &Superversion, seq: SeqNo) -> bool {
        if !self.range.contains(key) {
            return false;
        }
        if self.level == 0 {
            // Any of many tables may have it.
            return true;
        }
        let table = seen.version.levels[self.level].find(key);
        let has_seen_all =
            |table: &TableHandle| self.inputs.contains(&table.meta.id) && table.meta.max_seq <= seq;
        !table.is_some_and(|table| has_seen_all(table))
    }
}

/// Records that were taken out of the caches.
pub(crate) type Taken = Vec<(Bytes, Arc<Promoted>)>;

/// The promotion caches of a keyspace, and the rule of who may add to them.
///
/// A read may find a record below level f, and a crossing may supersede it there before the read
/// gets to add it. So before a crossing reads, it takes a claim on its keys, and takes their
/// records out of every cache. Its claim ends in the same step in which it counts as installed. A
/// read adds its record only if no claim stands against it and no crossing was installed since its
/// superversion (I6).
#[derive(Debug)]
pub(crate) struct PromotionGate {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    mutable: Arc<PromotionCache>,
    /// Newest first; kept until their table of L0 is installed.
    frozen: Vec<Arc<PromotionCache>>,
    claims: Vec<Claim>,
    /// Crossings installed so far.
    installed: u64,
}

impl Default for PromotionGate {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                mutable: Arc::default(),
                frozen: Vec::new(),
                claims: Vec::new(),
                installed: 0,
            }),
        }
    }
}

impl State {
    /// Takes the `wanted` records of `range` out of all caches, newest cache first.
    fn take(&self, range: &KeyRange, wanted: impl Fn(&[u8]) -> bool) -> Taken {
        let caches = std::iter::once(&self.mutable).chain(&self.frozen);
        let taken = caches.flat_map(|cache| cache.take(range, &wanted));
        taken.collect()
    }

    fn view(&self) -> PromotionView {
        let caches = std::iter::once(&self.mutable).chain(&self.frozen);
        PromotionView {
            caches: caches.cloned().collect(),
            crossings: self.installed,
        }
    }
}

impl PromotionGate {
    /// What readers see of it now. The caller publishes it in a superversion, under the tree's
    /// lock.
    pub(crate) fn view(&self) -> PromotionView {
        self.state.lock().view()
    }

    /// Takes in `record`, which a reader at `seq` over `seen` found below level f, unless the cache
    /// holds `most` bytes or the record may be out of date by now. A large value that alone is more
    /// than an eighth of that does not enter either: a few of them would be all that the cache
    /// holds (I8), and each is copied. It comes up by compactions. Returns the cache's bytes.
    pub(crate) fn admit(
        &self,
        seen: &Superversion,
        seq: SeqNo,
        (key, record): (&[u8], &Record),
        most: u64,
    ) -> Result<u64, Refusal> {
        // A newer version may lie below level f already, and the reader's moment be too early to
        // see it.
        if seq < seen.newest_below {
            return Err(Refusal::OldSnapshot);
        }
        let len = record.value.len();
        if len >= LARGE_BUFFER && len as u64 > most / LARGEST_PART {
            return Err(Refusal::Full);
        }
        // The lock is held for as long as it takes to look and to link: no copy is made under it.
        if let Some(cache) = seen.waiting.caches.first() {
            if cache.count_read(key) {
                return Ok(cache.bytes());
            }
            if cache.bytes() >= most {
                return Err(Refusal::Full);
            }
        }
        let entering = Entering::copy_of(key, record.seq, &record.value);
        let state = self.state.lock();
        if state.installed != seen.waiting.crossings {
            return Err(Refusal::Overtaken);
        }
        if state.claims.iter().any(|c| c.concerns(key, seen, seq)) {
            return Err(Refusal::Claimed);
        }
        if state.mutable.bytes() >= most {
            return Err(Refusal::Full);
        }
        state.mutable.insert(entering);
        Ok(state.mutable.bytes())
    }

    /// Starts a crossing: claims its keys and takes their records out of every cache, newest cache
    /// first.
    pub(crate) fn claim(&self, claim: Claim) -> Taken {
        let mut state = self.state.lock();
        let taken = state.take(&claim.range, |_| true);
        state.claims.push(claim);
        taken
    }

    /// Ends the claim of `job`, which came to nothing.
    pub(crate) fn release(&self, job: u64) {
        self.state.lock().claims.retain(|claim| claim.job != job);
    }

    /// Ends the claim of `job`, which is being installed: from here on readers of an earlier
    /// superversion are refused. `publish` stores the new superversion before anyone can be
    /// admitted.
    ///
    /// Records that were admitted meanwhile and that were `brought` up to level f are taken out of
    /// every cache and returned. A record left there would have no copy below. A deletion that
    /// reaches level f would find nothing to delete there, be dropped, and leave the record to be
    /// found (I1, I6).
    #[must_use]
    pub(crate) fn install(
        &self,
        job: u64,
        brought: &Brought,
        publish: impl FnOnce(PromotionView),
    ) -> Taken {
        let mut state = self.state.lock();
        let ended = state.claims.iter().position(|claim| claim.job == job);
        let ended = ended.map(|at| state.claims.swap_remove(at));
        let ended = ended.filter(|_| !brought.is_empty());
        let taken = ended.map(|claim| state.take(&claim.range, |key| brought.may_contain(key)));
        let taken = taken.unwrap_or_default();
        state.installed += 1;
        publish(state.view());
        taken
    }

    /// Ends the claims of `jobs`, by which tables that nothing was brought up for come to lie below
    /// level f: from here on readers of an earlier superversion are refused. `publish` is as for
    /// [`PromotionGate::install`].
    pub(crate) fn install_ingested(&self, jobs: &[u64], publish: impl FnOnce(PromotionView)) {
        let mut state = self.state.lock();
        state.claims.retain(|claim| !jobs.contains(&claim.job));
        state.installed += u64::from(!jobs.is_empty());
        publish(state.view());
    }

    /// Freezes the mutable cache, begins an empty one, and returns the frozen one. `publish` is as
    /// for [`PromotionGate::install`].
    pub(crate) fn freeze(&self, publish: impl FnOnce(PromotionView)) -> Arc<PromotionCache> {
        let mut state = self.state.lock();
        let frozen = std::mem::take(&mut state.mutable);
        state.frozen.insert(0, Arc::clone(&frozen));
        publish(state.view());
        frozen
    }

    /// Lets go of a frozen cache: its table is being installed, or it came to nothing. The caller
    /// publishes the view.
    pub(crate) fn drop_frozen(&self, frozen: &Arc<PromotionCache>) {
        let mut state = self.state.lock();
        state.frozen.retain(|cache| !Arc::ptr_eq(cache, frozen));
    }

    /// Lets go of everything, for a keyspace that was dropped. `publish` is as for
    /// [`PromotionGate::install`], and readers of an earlier superversion are refused as there.
    pub(crate) fn empty(&self, publish: impl FnOnce(PromotionView)) {
        let mut state = self.state.lock();
        state.mutable = Arc::default();
        state.frozen.clear();
        state.installed += 1;
        publish(state.view());
    }

    /// The cache that records enter now.
    pub(crate) fn mutable(&self) -> Arc<PromotionCache> {
        Arc::clone(&self.state.lock().mutable)
    }

    /// Memory of all caches, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        let frozen: u64 = state.frozen.iter().map(|cache| cache.bytes()).sum();
        frozen + state.mutable.bytes()
    }

    /// Crossings that hold a claim.
    pub(crate) fn claims(&self) -> usize {
        self.state.lock().claims.len()
    }
}
