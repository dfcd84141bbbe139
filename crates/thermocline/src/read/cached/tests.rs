//! Races of the record cache, each played with explicit schedule points, and what it must not
//! change.

use std::sync::mpsc::channel;

use crate::api::Keyspace;
use crate::cache::RecordCache;
use crate::error::{Error, Result};
use crate::key::MAX_SEQ;
use crate::metrics::RecordCacheMetrics;
use crate::options::{HotRapOptions, Options, Placement};
use crate::testing::scene::{
    F, KEYS, SLOW, Scene, VALUE, everything, model, options, value, version,
};

const KEY: &str = "k05";

fn with_cache() -> Options {
    let mut options = options();
    options.record_cache = Some(256 << 10);
    options
}

/// All keys at the version `old`, in a table of L0.
fn scene() -> Scene {
    let scene = Scene::with(with_cache());
    scene.put_all(&KEYS, "old");
    scene.db.flush().unwrap();
    scene
}

/// As [`scene`], with the record of [`KEY`] in the cache.
fn filled() -> Scene {
    let scene = scene();
    ask_often(&scene);
    assert_eq!(cached(&scene).as_deref(), Some("old"));
    scene
}

/// Reads [`KEY`] so often that it is filled, if it may be.
fn ask_often(scene: &Scene) {
    for _ in 0..3 {
        scene.get(KEY);
    }
}

/// The version of [`KEY`] that the cache holds.
fn cached(scene: &Scene) -> Option<String> {
    let engine = scene.engine();
    let cache = engine.caches.records.as_ref().unwrap();
    let sought = cache.sought(scene.tree().id, KEY.as_bytes());
    let hit = cache.get(&sought, MAX_SEQ, || None);
    hit.and_then(|hit| version(Some(hit.record.value)))
}

fn metrics(scene: &Scene) -> RecordCacheMetrics {
    scene.db.metrics().record_cache.unwrap()
}

/// Writes [`KEY`] anew, or deletes it.
fn supersede(scene: &Scene, is_delete: bool) {
    if is_delete {
        scene.delete(KEY);
    } else {
        scene.put(KEY, "new");
    }
}

fn newest(is_delete: bool) -> Option<String> {
    (!is_delete).then(|| "new".to_owned())
}

/// Checks that the store gives the new version, in whatever way it is read, once the cache has had
/// its chances.
fn check_superseded(scene: &Scene, is_delete: bool, at: &str) {
    let mut wanted = model(&KEYS, "old");
    match newest(is_delete) {
        Some(new) => wanted.insert(KEY.to_owned(), new),
        None => wanted.remove(KEY),
    };
    for _ in 0..3 {
        scene.check(&wanted, &KEYS, at);
    }
    assert_eq!(cached(scene), newest(is_delete), "{at}");
}

#[test]
fn a_record_that_is_asked_for_twice_is_answered_by_the_cache_from_then_on() {
    let scene = scene();
    scene.get(KEY);
    assert_eq!(cached(&scene), None, "once is not often");
    scene.get(KEY);
    assert_eq!(cached(&scene).as_deref(), Some("old"));
    let before = metrics(&scene);
    assert_eq!((before.fills, before.hits, before.misses), (1, 0, 2));
    assert_eq!(scene.get(KEY).as_deref(), Some("old"));
    let many = scene.db.multi_get(&[KEY, "k06"]).unwrap();
    assert_eq!(many.len(), 2);
    let snapshot = scene.db.snapshot();
    assert!(snapshot.get(KEY).unwrap().is_some());
    let after = metrics(&scene);
    assert_eq!((after.hits, after.misses, after.entries), (3, 3, 1));
    scene.check(&model(&KEYS, "old"), &KEYS, "in the end");
}

/// A cached value must not keep a block in memory, and readers share the one copy.
#[test]
fn readers_share_a_copy_that_is_the_records_own() {
    let scene = scene();
    let of_block = scene.db.get(KEY).unwrap().unwrap();
    ask_often(&scene);
    let [first, second] = [0, 1].map(|_| scene.db.get(KEY).unwrap().unwrap());
    assert_eq!(first.as_ptr(), second.as_ptr());
    assert_ne!(first.as_ptr(), of_block.as_ptr());
    let first = first.into_bytes();
    drop(second);
    // The cache's reference and this one: the memory is that of one value.
    assert_eq!(first.len(), VALUE);
}

/// A fill that has read the old version comes late: the new one is in a table by now. That may
/// happen at each of the steps of a fill, for an overwrite as for a delete.
#[test]
fn a_fill_that_a_flush_overtook_fails() {
    for point in [
        "record_cache.found",
        "record_cache.reserved",
        "record_cache.checked",
    ] {
        for is_delete in [false, true] {
            let scene = scene();
            scene.get(KEY);
            let hook = scene.at(point, move |scene| {
                supersede(scene, is_delete);
                scene.db.flush()
            });
            assert_eq!(scene.get(KEY).as_deref(), Some("old"), "it began before");
            drop(hook);
            assert_eq!(cached(&scene), None, "{point}");
            assert_eq!(metrics(&scene).refused_fills, 1, "{point}");
            check_superseded(&scene, is_delete, point);
        }
    }
}

/// The new version is in the memtable that was active when the fill pinned it: the fill may
/// succeed, as readers find the memtable first, and the flush replaces it or takes it out.
#[test]
fn a_fill_beside_a_write_is_hidden_by_the_memtable_and_ends_with_its_flush() {
    for is_delete in [false, true] {
        let scene = scene();
        scene.get(KEY);
        let hook = scene.at("record_cache.found", move |scene| {
            supersede(scene, is_delete);
            Ok(())
        });
        assert_eq!(scene.get(KEY).as_deref(), Some("old"));
        drop(hook);
        assert_eq!(cached(&scene).as_deref(), Some("old"));
        assert_eq!(scene.get(KEY), newest(is_delete));
        scene.freeze();
        assert_eq!(scene.get(KEY), newest(is_delete), "frozen");
        scene.drain();
        assert_eq!(cached(&scene), newest(is_delete));
        check_superseded(&scene, is_delete, "flushed");
    }
}

/// Before the publication, a reader of an older superversion neither finds what was refreshed just
/// now, nor brings back what went.
#[test]
fn a_reader_of_old_finds_and_fills_nothing_between_refreshing_and_publication() {
    for is_delete in [false, true] {
        let scene = filled();
        let reader = scene.reader();
        supersede(&scene, is_delete);
        let hook = scene.at("flush.refreshed", move |scene| {
            assert_eq!(cached(scene), newest(is_delete), "refreshed");
            for _ in 0..3 {
                assert_eq!(reader.get(KEY).as_deref(), Some("old"), "its moment");
                assert_eq!(scene.get(KEY), newest(is_delete), "the memtable's");
            }
            assert_eq!(cached(scene), newest(is_delete));
            Ok(())
        });
        scene.db.flush().unwrap();
        drop(hook);
        check_superseded(&scene, is_delete, "flushed");
    }
}

/// Regression: the room of what a flush had invalidated came back only when the next flushes on the
/// same thread had taken out some dozens more. Two dozen large records, all deleted, left a cache
/// that took in next to nothing any more.
#[test]
fn what_a_flush_invalidates_makes_room_though_its_thread_does_nothing_more() {
    let mut options = with_cache();
    options.record_cache = Some(64 << 10);
    let scene = Scene::with(options);
    let keys = || (0..22).map(|i| format!("large{i:02}"));
    let put_all = |byte| {
        for key in keys() {
            scene.db.put(key, vec![byte; 2_000]).unwrap();
        }
    };
    // Other tests' threads may keep memory from being freed for a while; then fills are refused.
    let fill_all = || {
        let mut rounds = 0;
        while metrics(&scene).entries < 22 {
            rounds += 1;
            assert!(rounds < 20_000, "{:?}", metrics(&scene));
            for key in keys() {
                scene.db.get(key).unwrap();
            }
            std::thread::yield_now();
        }
    };
    put_all(1);
    scene.db.flush().unwrap();
    fill_all();
    for key in keys() {
        scene.db.delete(key).unwrap();
    }
    std::thread::scope(|scope| {
        let (has_flushed, flushed) = channel();
        let (_stay, is_over) = channel::<()>();
        let scene = &scene;
        scope.spawn(move || {
            scene.db.flush().unwrap();
            has_flushed.send(()).unwrap();
            // Fails when the other end is gone.
            let _ = is_over.recv();
        });
        flushed.recv().unwrap();
        assert_eq!(metrics(scene).entries, 0);
        put_all(2);
        scene.db.flush().unwrap();
        fill_all();
    });
}

/// The hot records of a store that updates them left the cache with every flush, and had to be
/// missed twice again.
#[test]
fn a_flush_brings_the_newest_version_of_a_record_into_the_cache() {
    let scene = filled();
    for version in ["first", "second"] {
        scene.put(KEY, "hidden");
        scene.delete(KEY);
        scene.put(KEY, version);
        let snapshot = scene.db.snapshot();
        scene.put("k06", version);
        scene.db.flush().unwrap();
        assert_eq!(cached(&scene).as_deref(), Some(version));
        let before = metrics(&scene);
        let found = scene.reader_of(&snapshot).get(KEY);
        assert_eq!([found, scene.get(KEY)].map(|v| v.unwrap()), [version; 2]);
        assert_eq!(metrics(&scene).hits, before.hits + 2, "both from the cache");
    }
    let metrics = metrics(&scene);
    assert_eq!(
        (metrics.fills, metrics.entries),
        (1, 1),
        "only what was there"
    );
    assert_eq!((metrics.refreshes, metrics.invalidations), (2, 0));
}

/// The newest version counts, of however many the memtable has.
#[test]
fn what_a_flush_brings_into_the_cache_is_no_older_version_and_no_deleted_one() {
    let scene = filled();
    scene.put(KEY, "new");
    scene.delete(KEY);
    scene.db.flush().unwrap();
    assert_eq!(cached(&scene), None);
    check_superseded(&scene, true, "deleted");
}

#[test]
fn a_record_whose_next_version_is_too_large_leaves_the_cache() {
    const LARGEST: usize = 4000;
    let mut options = options();
    options.record_cache = Some(RecordCache::least_capacity(KEY.len(), LARGEST));
    let scene = Scene::with(options);
    for (len, entries) in [(1, 1), (LARGEST, 1), (LARGEST + 1, 0)] {
        let value = vec![1; len];
        scene.db.put(KEY, &value).unwrap();
        scene.db.flush().unwrap();
        let get = || scene.db.get(KEY).unwrap().unwrap();
        if len == 1 {
            assert_eq!([get(), get()].map(|value| value.len()), [1, 1]);
        }
        assert_eq!(metrics(&scene).entries, entries, "{len}");
        assert_eq!(get()[..], value);
    }
    let metrics = metrics(&scene);
    assert_eq!((metrics.refreshes, metrics.invalidations), (1, 1));
}

/// A record that was found is gone when it should be replaced: evicted, or with its keyspace. The
/// new version does not come in, as a fill's pending place may stand there by now.
#[test]
fn a_record_that_leaves_while_it_is_refreshed_stays_out() {
    let scene = filled();
    scene.put(KEY, "new");
    let hook = scene.at("record_cache.refreshing", |scene| {
        assert_eq!(cached(scene).as_deref(), Some("old"));
        assert_eq!(scene.get(KEY).as_deref(), Some("new"), "the memtable's");
        let engine = scene.engine();
        let cache = engine.caches.records.as_ref().unwrap();
        let sought = cache.sought(scene.tree().id, KEY.as_bytes());
        assert!(cache.invalidate(&sought).is_some());
        Ok(())
    });
    scene.db.flush().unwrap();
    drop(hook);
    assert_eq!(cached(&scene), None);
    check_superseded(&scene, false, "flushed");

    let side = side(&scene);
    for _ in 0..2 {
        assert!(side.get(KEY).unwrap().is_some());
    }
    side.put(KEY, value("new")).unwrap();
    let before = metrics(&scene).entries;
    let hook = scene.at("record_cache.refreshing", |scene| {
        scene.db.drop_keyspace("side")
    });
    // What it was to flush is gone.
    let _: Result<()> = scene.db.flush();
    drop(hook);
    assert_eq!(metrics(&scene).entries, before - 1);
    check_superseded(&scene, false, "the other keyspace is gone");
}

/// A flush that fails behind the cache leaves versions there that no table has yet. Readers find
/// them in the memtable.
#[test]
fn a_flush_that_fails_after_refreshing_leaves_the_cache_right() {
    for is_delete in [false, true] {
        let scene = filled();
        let reader = scene.reader();
        supersede(&scene, is_delete);
        let hook = scene.at("flush.refreshed", |_| {
            Err(Error::NoSpace {
                operation: "append",
                path: "/fast".into(),
            })
        });
        assert!(scene.db.flush().is_err());
        drop(hook);
        assert_eq!(cached(&scene), newest(is_delete), "and in no table");
        assert_eq!(reader.get(KEY).as_deref(), Some("old"), "its moment");
        assert_eq!(scene.get(KEY), newest(is_delete), "the memtable's");
        scene.put("k06", "old");
        scene.db.flush().unwrap();
        let refreshed = metrics(&scene).refreshes;
        assert_eq!(refreshed, u64::from(!is_delete), "not again");
        check_superseded(&scene, is_delete, "flushed");
    }
}

/// As soon as the table is published, nothing that it supersedes is found, and the old reader comes
/// too late to fill.
#[test]
fn nothing_superseded_is_found_once_the_table_is_published() {
    for is_delete in [false, true] {
        let scene = filled();
        let reader = scene.reader();
        supersede(&scene, is_delete);
        let hook = scene.at("flush.installed", move |scene| {
            assert_eq!(scene.get(KEY), newest(is_delete));
            assert_eq!(reader.get(KEY).as_deref(), Some("old"));
            Ok(())
        });
        scene.db.flush().unwrap();
        drop(hook);
        check_superseded(&scene, is_delete, "flushed");
    }
}

/// Two frozen memtables hold the key: the second one hides what the first one's flush refreshes.
#[test]
fn frozen_memtables_hide_the_cache_until_each_is_flushed() {
    let scene = filled();
    scene.put(KEY, "newer");
    scene.freeze();
    assert_eq!(
        cached(&scene).as_deref(),
        Some("old"),
        "nothing left the memtables"
    );
    assert_eq!(scene.get(KEY).as_deref(), Some("newer"));
    scene.put(KEY, "newest");
    scene.freeze();
    let hook = scene.at("flush.installed", |scene| {
        assert_eq!(scene.tree().pin().immutables.len(), 1);
        assert_eq!(cached(scene).as_deref(), Some("newer"));
        assert_eq!(scene.get(KEY).as_deref(), Some("newest"));
        Ok(())
    });
    scene.drain();
    drop(hook);
    assert_eq!(cached(&scene).as_deref(), Some("newest"));
    assert_eq!(scene.get(KEY).as_deref(), Some("newest"));
}

/// A snapshot uses an entry only if its sequence number allows, and never makes one.
#[test]
fn a_snapshot_neither_finds_what_is_newer_nor_fills_what_is_older() {
    for is_delete in [false, true] {
        let scene = filled();
        let snapshot = scene.db.snapshot();
        let before = model(&KEYS, "old");
        scene.check_snapshot(&snapshot, &before, &KEYS, "cached");
        supersede(&scene, is_delete);
        scene.check_snapshot(&snapshot, &before, &KEYS, "written");
        scene.db.flush().unwrap();
        for _ in 0..3 {
            scene.check_snapshot(&snapshot, &before, &KEYS, "flushed");
        }
        // Nothing that a snapshot has found.
        assert_eq!(cached(&scene), newest(is_delete));
        check_superseded(&scene, is_delete, "flushed");
        scene.check_snapshot(&snapshot, &before, &KEYS, "filled anew");
    }
}

/// What moves versions without changing the newest leaves the cache as it is, and right.
#[test]
fn compactions_crossings_and_promotions_leave_the_cache_right() {
    let scene = filled();
    scene.to_slow();
    assert_eq!(cached(&scene).as_deref(), Some("old"));
    scene.check(&model(&KEYS, "old"), &KEYS, "on the slow tier");
    scene.heat(&KEYS);
    let others: Vec<_> = KEYS.into_iter().filter(|key| *key != KEY).collect();
    scene.read_into_cache(&others);
    scene.promote().unwrap();
    scene.check(&model(&KEYS, "old"), &KEYS, "promoted");
    scene.delete(KEY);
    scene.db.flush().unwrap();
    assert_eq!(cached(&scene), None);
    // Down to where nothing older lies: the delete itself goes.
    scene.to_slow();
    scene.cross();
    check_superseded(&scene, true, "deleted for good");
}

/// A fill that a compaction overtakes is refused, without need, and made by the next read.
#[test]
fn a_fill_that_a_compaction_overtook_is_made_later() {
    let scene = scene();
    scene.get(KEY);
    let hook = scene.at("record_cache.found", |scene| {
        scene.lower(0);
        Ok(())
    });
    scene.get(KEY);
    drop(hook);
    assert_eq!(metrics(&scene).refused_fills, 1);
    scene.get(KEY);
    assert_eq!(cached(&scene).as_deref(), Some("old"));
}

fn side(scene: &Scene) -> Keyspace {
    let side = scene.db.create_keyspace("side").unwrap();
    side.put(KEY, value("old")).unwrap();
    scene.db.flush().unwrap();
    side
}

/// Keyspaces share the cache, and no keys.
#[test]
fn a_key_of_another_keyspace_is_another_key() {
    let scene = filled();
    let side = side(&scene);
    scene.db.delete(KEY).unwrap();
    scene.db.flush().unwrap();
    for _ in 0..3 {
        assert!(side.get(KEY).unwrap().is_some());
        assert_eq!(scene.get(KEY), None);
    }
    assert_eq!(metrics(&scene).entries, 1);
}

/// At whatever moment of a fill its keyspace is dropped, handles to the keyspace find nothing from
/// then on. Nor does the keyspace that is created under its name.
#[test]
fn a_dropped_keyspace_leaves_nothing_in_the_cache() {
    for point in [
        "none",
        "record_cache.found",
        "record_cache.reserved",
        "record_cache.checked",
    ] {
        let scene = scene();
        let side = side(&scene);
        let get = || version(side.get(KEY).unwrap());
        get();
        if point == "none" {
            get();
            assert_eq!(metrics(&scene).entries, 1);
            scene.db.drop_keyspace("side").unwrap();
        } else {
            let hook = scene.at(point, |scene| scene.db.drop_keyspace("side"));
            assert_eq!(get().as_deref(), Some("old"), "it began before");
            drop(hook);
        }
        assert_eq!([get(), get()], [None, None], "{point}");
        assert_eq!(metrics(&scene).entries, 0, "{point}");
        let again = scene.db.create_keyspace("side").unwrap();
        assert!(again.get(KEY).unwrap().is_none());
    }
}

/// Once the keyspace is empty for readers, what the cache still holds of it is not found.
#[test]
fn a_keyspace_that_is_empty_does_not_ask_the_cache() {
    let scene = scene();
    let side = side(&scene);
    for _ in 0..2 {
        assert!(side.get(KEY).unwrap().is_some());
    }
    let hook = scene.at("keyspace.emptied", move |scene| {
        assert_eq!(metrics(scene).entries, 1);
        assert!(side.get(KEY).unwrap().is_none());
        assert!(side.multi_get(&[KEY]).unwrap()[0].is_none());
        Ok(())
    });
    scene.db.drop_keyspace("side").unwrap();
    drop(hook);
}

/// To forget a dropped keyspace, the whole index is walked. Writers and flushes waited for that.
#[test]
fn nobody_waits_for_the_cache_to_forget_a_keyspace() {
    let scene = scene();
    side(&scene);
    let hook = scene.at("keyspace.emptied", |scene| {
        let (told, hears) = channel();
        let other = scene.db.clone();
        std::thread::spawn(move || {
            // One needs the log's lock, the other the manifest's.
            let written = other
                .put(KEY, "new")
                .and_then(|_| other.create_keyspace("other"));
            let _ = told.send(written.map(|_| ()));
        });
        let written = hears.recv_timeout(std::time::Duration::from_secs(10));
        written.expect("who writes waits for the cache").unwrap();
        Ok(())
    });
    scene.db.drop_keyspace("side").unwrap();
    drop(hook);
}

#[test]
fn half_of_the_block_cache_is_for_records_unless_it_is_told_or_too_little() {
    for (block_cache, told, wanted) in [
        (512 << 10, None, Some(256 << 10)),
        (512 << 10, Some(100 << 10), Some(100 << 10)),
        (512 << 10, Some(0), None),
        (100 << 10, None, None),
    ] {
        let mut options = options();
        options.block_cache = Some(block_cache);
        options.record_cache = told;
        let scene = Scene::with(options);
        let cache = scene.db.metrics().record_cache;
        let capacity = cache.map(|cache| cache.capacity_bytes);
        assert_eq!(capacity, wanted, "{told:?} of {block_cache}");
        let blocks = scene.engine().sizes.block_cache;
        assert_eq!(blocks + wanted.unwrap_or(0), block_cache);
    }
}

/// A cache that takes nothing in changes no answer.
#[test]
fn a_cache_a_byte_short_of_a_record_stays_empty_and_reads_are_right() {
    const LEN: usize = 4000;
    let enough = RecordCache::least_capacity(KEY.len(), LEN);
    for (capacity, comes_in) in [(enough - 1, false), (enough, true)] {
        let mut options = options();
        options.record_cache = Some(capacity);
        let scene = Scene::with(options);
        for version in [1, 2] {
            let value = vec![version; LEN];
            scene.db.put(KEY, &value).unwrap();
            scene.db.flush().unwrap();
            for _ in 0..4 {
                assert_eq!(scene.db.get(KEY).unwrap().unwrap()[..], value);
            }
            let metrics = metrics(&scene);
            assert_eq!(metrics.entries, u64::from(comes_in), "{capacity}");
            assert_eq!(metrics.hits > 0, comes_in);
            assert_eq!(metrics.refused_fills > 0, !comes_in);
            assert!(metrics.bytes <= capacity);
        }
    }
}

/// Memory only: an opening begins with nothing, and the records of the log are in memtables.
#[test]
fn after_a_reopening_the_cache_is_empty_and_right() {
    let scene = filled();
    supersede(&scene, false);
    let scene = scene.reopen(with_cache());
    assert_eq!(metrics(&scene).entries, 0);
    check_superseded(&scene, false, "reopened");
}

/// Accesses that waited to be logged with the first one of the next slice were lost, and RALT's
/// clock with them.
#[test]
fn what_the_cache_answered_is_logged_when_the_store_is_closed() {
    let scene = filled();
    for _ in 0..20 {
        scene.get(KEY);
    }
    let engine = scene.engine();
    let accesses = || engine.hotrap().ralt.metrics().accesses;
    assert_eq!(accesses(), 2, "of those that went by the cache");
    scene.db.close().unwrap();
    assert_eq!(accesses(), 3 + 20);
}

/// When the store is closed, background work has ended, and nobody flushed what was logged. What
/// was more than RALT's buffers hold was dropped: of a large cache nearly all of it.
#[test]
fn all_that_a_large_cache_answered_is_logged_when_the_store_is_closed() {
    const RECORDS: u64 = 2000;
    let mut options = options();
    options.record_cache = Some(2 << 20);
    let scene = Scene::with(options);
    let keys: Vec<_> = (0..RECORDS).map(|i| format!("{i:08}")).collect();
    for key in &keys {
        scene.db.put(key, "short").unwrap();
    }
    scene.db.flush().unwrap();
    for key in &keys {
        // Two go past the cache, of which the second fills it, and two wait to be logged.
        for _ in 0..4 {
            scene.db.get(key).unwrap();
        }
        scene.drain();
    }
    assert_eq!(metrics(&scene).entries, RECORDS);
    let engine = scene.engine();
    let counted = || {
        let ralt = engine.hotrap().ralt.metrics();
        (ralt.accesses, ralt.dropped_accesses)
    };
    let (logged, dropped) = counted();
    assert!(logged <= 2 * RECORDS && dropped == 0, "{logged}, {dropped}");
    scene.db.close().unwrap();
    assert_eq!(counted(), (4 * RECORDS, 0));
}

/// Reads [`KEY`], which lies on level f, three times in each of many time slices, in which much
/// else is accessed too. Returns its score by RALT afterwards, and the scene.
fn read_for_long(record_cache: u64) -> (f64, Scene) {
    let mut options = options();
    options.record_cache = Some(record_cache);
    options.placement = Placement::HotRap(HotRapOptions {
        slice: 0.01,
        decay: 0.9,
        ..HotRapOptions::default()
    });
    let scene = Scene::with(options);
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    let engine = scene.engine();
    let ralt = &engine.hotrap().ralt;
    for turn in 0..40 {
        for _ in 0..3 {
            scene.get(KEY);
        }
        // About a slice of 1 % of 4 MiB.
        for other in 0..84 {
            let other = format!("z{turn}/{other}");
            if ralt.log(scene.tree().id, other.as_bytes(), VALUE, 1) {
                while ralt.work() {}
            }
        }
    }
    let last = scene.levels_of(KEY);
    assert_eq!(last, [(F as u8, "old".into())]);
    // Accesses wait in buffers until these are full.
    while !ralt.log(scene.tree().id, b"zzz", 1, 1) {}
    while ralt.work() {}
    let heat = scene.db.heat(2000).unwrap();
    let found = heat.hottest.iter().find(|hot| hot.key == KEY.as_bytes());
    (found.map_or(0.0, |hot| hot.score), scene)
}

/// Otherwise the hottest records of all would be the first to lose their place on the fast tier.
#[test]
fn a_record_read_from_the_cache_only_stays_hot_and_on_the_fast_tier() {
    let (wanted, _) = read_for_long(0);
    let (score, scene) = read_for_long(256 << 10);
    let cache = metrics(&scene);
    assert_eq!((cache.hits, cache.misses), (118, 2));
    assert!(
        (score - wanted).abs() < wanted / 10.0,
        "{score} with the cache, {wanted} without"
    );
    // Its next version takes its place, and goes through a crossing.
    scene.put_all(&KEYS, "new");
    scene.to_last_fast();
    assert_eq!(cached(&scene).as_deref(), Some("new"));
    let plan = scene.pick(F, &everything(), true);
    scene.start(plan.unwrap());
    scene.drain();
    assert_eq!(scene.levels_of(KEY)[0], (F as u8, "new".into()));
    assert_eq!(scene.levels_of("k06")[0].0, SLOW as u8, "never read");
}
