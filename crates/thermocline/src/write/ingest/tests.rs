//! Ingestion: whole or not at all, in its place among the writes, and no read is stale.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::levels::{Plan, Upper};
use crate::metrics::Refusal;
use crate::options::{Durability, Options};
use crate::storage::{CrashStyle, Fault, Faulty, Medium, Memory, Operation};
use crate::sync::{Arc, Mutex};
use crate::testing::scene::{F, KEYS, Model, SLOW, Scene, model, options, value};
use crate::version::manifest_file_name;
use crate::{Db, Ingested};

/// Ingests `keys` at `version`.
fn ingest(scene: &Scene, keys: &[&str], version: &str) -> Result<Ingested> {
    scene
        .db
        .ingest(keys.iter().map(|key| (key, value(version))))
}

/// `count` records that do not compress.
fn noise(count: usize) -> impl Iterator<Item = (String, [u8; 500])> {
    (0..count).map(|key| (format!("{key:05}"), rand::random()))
}

/// Table files on all tiers of a scene.
fn table_files(scene: &Scene) -> usize {
    let tiers = scene.engine().tiers.clone();
    let files = tiers.iter().flat_map(|tier| tier.tables.list().unwrap());
    files.filter(|file| file.name.ends_with(".sst")).count()
}

fn levels(scene: &Scene, key: &str) -> Vec<u8> {
    let levels = scene.levels_of(key).into_iter();
    levels.map(|(level, _)| level).collect()
}

#[test]
fn what_meets_nothing_comes_to_the_last_level_and_stays_over_a_reopening() {
    let scene = Scene::new();
    let before = scene.db.snapshot();
    let ingested = ingest(&scene, &KEYS, "new").unwrap();
    let found = (ingested.records, ingested.tables, ingested.level);
    assert_eq!(found, (10, 1, SLOW as u8));
    assert_eq!(ingested.seq, scene.db.snapshot().seq());
    let wanted = model(&KEYS, "new");
    scene.check(&wanted, &KEYS, "at once");
    scene.check_snapshot(&before, &Model::new(), &KEYS, "of before");
    scene.check_snapshot(&scene.db.snapshot(), &wanted, &KEYS, "of after");
    drop(before);
    assert!(scene.db.verify(&mut |_| ()).unwrap().problems.is_empty());
    let scene = scene.reopen(options());
    scene.check(&wanted, &KEYS, "after a reopening");
    assert_eq!(scene.db.snapshot().seq(), ingested.seq);
    assert_eq!(scene.put_seq("k05"), ingested.seq + 1);
}

impl Scene {
    fn put_seq(&self, key: &str) -> u64 {
        self.db.put(key, value("later")).unwrap()
    }
}

/// What is written before is older and what is written after is newer, wherever it lies.
#[test]
fn it_has_its_place_among_the_writes() {
    for place in ["memtable", "frozen memtable", "L0", "level f", "slow tier"] {
        for deletes in [false, true] {
            let scene = Scene::new();
            scene.put_all(&KEYS, "old");
            if deletes {
                scene.delete("k04");
            }
            match place {
                "memtable" => {}
                "frozen memtable" => scene.freeze(),
                "L0" => scene.db.flush().unwrap(),
                "level f" => scene.to_last_fast(),
                _ => scene.to_slow(),
            }
            let before = scene.db.snapshot();
            let mut old = model(&KEYS, "old");
            if deletes {
                old.remove("k04");
            }
            let keys = ["k02", "k04", "k06"];
            ingest(&scene, &keys, "ingested").unwrap();
            let mut wanted = old.clone();
            wanted.extend(model(&keys, "ingested"));
            scene.check(&wanted, &KEYS, place);
            scene.check_snapshot(&before, &old, &KEYS, place);
            scene.put("k02", "newest");
            scene.delete("k06");
            wanted.insert("k02".into(), "newest".into());
            wanted.remove("k06");
            scene.check(&wanted, &KEYS, place);
            scene.check_snapshot(&before, &old, &KEYS, place);
            drop(before);
            // The compactions that follow have the numbers right.
            let scene = scene.reopen(options());
            scene.check(&wanted, &KEYS, place);
            scene.db.compact_range::<&[u8]>(..).unwrap();
            scene.check(&wanted, &KEYS, place);
            assert!(scene.db.verify(&mut |_| ()).unwrap().problems.is_empty());
            let tables = scene.tree().version();
            assert!(tables.tables().all(|table| !table.meta.ingested), "{place}");
        }
    }
}

#[test]
fn it_comes_to_the_lowest_level_above_all_that_it_meets() {
    let scene = Scene::with_old(&KEYS);
    let keys = ["k02", "k03"];
    assert_eq!(ingest(&scene, &keys, "1").unwrap().level, SLOW as u8 - 1);
    assert_eq!(ingest(&scene, &keys, "2").unwrap().level, SLOW as u8 - 2);
    // Beside what was there, and over it.
    assert_eq!(ingest(&scene, &["k04"], "3").unwrap().level, SLOW as u8 - 1);
    assert_eq!(ingest(&scene, &["l"], "3").unwrap().level, SLOW as u8);
    scene.put("k00", "4");
    scene.put("k09", "4");
    scene.db.flush().unwrap();
    let ingested = ingest(&scene, &keys, "5").unwrap();
    assert_eq!(ingested.level, 0, "it lies within a table of L0");
    assert_eq!(levels(&scene, "k02")[0], 0);
    assert_eq!(scene.get("k02").as_deref(), Some("5"));
    // Two of L0 have an order.
    assert_eq!(ingest(&scene, &keys, "6").unwrap().level, 0);
    assert_eq!(scene.get("k02").as_deref(), Some("6"));
    let scene = scene.reopen(options());
    assert_eq!(scene.get("k02").as_deref(), Some("6"));
    scene.to_slow();
    assert_eq!(scene.get("k02").as_deref(), Some("6"));
    assert_eq!(scene.get("k04").as_deref(), Some("3"));
}

#[test]
fn keys_that_do_not_rise_are_named_and_leave_nothing_behind() {
    let scene = Scene::new();
    let records = |keys: &'static [&str]| keys.iter().map(|key| (key, value("1")));
    for (keys, index, is_duplicate) in
        [(&["a", "c", "b"][..], 2, false), (&["a", "a"][..], 1, true)]
    {
        let refused = scene.db.ingest(records(keys)).unwrap_err();
        match refused {
            Error::NotSorted {
                index: found,
                is_duplicate: is,
            } => assert_eq!((found, is), (index, is_duplicate)),
            other => panic!("{other:?}"),
        }
        assert_eq!((table_files(&scene), scene.db.iter().count()), (0, 0));
    }
    let mut ingestion = scene.db.ingestion().unwrap();
    ingestion.put("b", "1").unwrap();
    assert!(ingestion.put("a", "1").is_err());
    let again = ingestion.put("c", "1").unwrap_err();
    assert!(matches!(again, Error::NotSorted { .. }), "{again:?}");
    assert!(ingestion.commit().is_err());
    let free = scene.engine().tiers[1].reserved_bytes();
    assert_eq!((free, scene.engine().tiers[1].in_flight()), (0, 0));
}

#[test]
fn nothing_is_ingested_of_nothing_and_by_nobody_who_may_not_write() {
    let memory: Arc<dyn Medium> = Arc::new(Memory::new());
    let scene = Scene::on(Arc::clone(&memory), options());
    let before = scene.db.snapshot().seq();
    let nothing = scene.db.ingest::<&str, &str>([]).unwrap();
    assert_eq!(
        (nothing.records, nothing.tables, nothing.seq),
        (0, 0, before)
    );
    let side = scene.db.create_keyspace("side").unwrap();
    let mut begun = side.ingestion().unwrap();
    begun.put("key", "value").unwrap();
    scene.db.drop_keyspace("side").unwrap();
    let dropped = begun.commit().unwrap_err();
    assert!(
        matches!(dropped, Error::UnknownKeyspace { .. }),
        "{dropped:?}"
    );
    let dropped = side.ingest([("key", "value")]).unwrap_err();
    assert!(
        matches!(dropped, Error::UnknownKeyspace { .. }),
        "{dropped:?}"
    );
    assert_eq!(table_files(&scene), 0);
    scene.db.close().unwrap();
    let builder = Db::builder(options()).medium(0, Arc::clone(&memory));
    let db = builder.medium(1, memory).reads_only().open().unwrap();
    let refused = db.ingest([("key", "value")]).unwrap_err();
    assert!(matches!(refused, Error::ReadOnly), "{refused:?}");
}

/// A store that was closed with an ingestion under way left its files to whoever came next, and
/// the ingestion removed files of theirs.
#[test]
fn a_store_that_closes_ends_what_is_being_ingested() {
    let scene = Scene::new();
    let mut begun = scene.db.ingestion().unwrap();
    for (key, value) in noise(100) {
        begun.put(key, value).unwrap();
    }
    assert!(table_files(&scene) > 1);
    scene.db.close().unwrap();
    assert_eq!(table_files(&scene), 0);
    let refused = begun.put("101", "1").unwrap_err();
    assert!(matches!(refused, Error::Closed), "{refused:?}");
    assert!(matches!(begun.commit(), Err(Error::Closed)));
    let closed = scene.db.ingestion().map(|_| ());
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
}

#[test]
fn many_tables_become_visible_together() {
    let scene = Scene::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let hook = scene.at("ingest.before_edit", move |scene| {
        notes.lock().push(scene.db.iter().count());
        Ok(())
    });
    let ingested = scene.db.ingest(noise(400)).unwrap();
    drop(hook);
    assert_eq!(*seen.lock(), [0]);
    assert!(ingested.tables > 5, "{ingested:?}");
    assert_eq!(scene.db.iter().count(), 400);
    assert_eq!(scene.db.iter().rev().count(), 400);
    // One number for all of them.
    let pinned = scene.tree().version();
    let seqs = pinned
        .tables()
        .map(|table| (table.meta.min_seq, table.meta.max_seq));
    assert!(
        seqs.into_iter()
            .all(|seqs| seqs == (ingested.seq, ingested.seq))
    );
}

/// The cursor of a reader whose moment is before the ingestion goes past its records both ways.
#[test]
fn a_snapshot_scans_past_ingested_records_both_ways() {
    let scene = Scene::with_old(&["k01", "k03", "k05"]);
    let before = scene.db.snapshot();
    ingest(&scene, &["k00", "k01", "k02", "k05", "k06"], "new").unwrap();
    let old = model(&["k01", "k03", "k05"], "old");
    scene.check_snapshot(&before, &old, &KEYS, "both ways");
    let from = before.range_in(&scene.db, "k01".."k05");
    let keys: Vec<_> = from.rev().map(|record| record.unwrap().0).collect();
    assert_eq!(keys, ["k03", "k01"]);
}

/// A promoted record of before may not come to lie above what was ingested meanwhile (I1, I6).
#[test]
fn what_waits_for_its_promotion_does_not_hide_what_is_ingested() {
    for point in [
        "promotion.frozen",
        "promotion.written",
        "promotion.before_edit",
    ] {
        for above in [false, true] {
            // So many that their promotion is worth a table.
            let names: Vec<String> = (0..40).map(|n| format!("k{n:02}")).collect();
            let keys: Vec<&str> = names.iter().map(String::as_str).collect();
            let scene = Scene::with_old(&keys);
            if above {
                // It has to come to L0 itself.
                scene.put("k00", "mid");
                scene.put("k39", "mid");
                scene.db.flush().unwrap();
            }
            scene.read_into_cache(&keys[1..11]);
            scene.heat(&keys[1..11]);
            let hook = scene.at(point, |scene| {
                ingest(scene, &["k04", "k05"], "new").map(|_| ())
            });
            scene.promote().unwrap();
            drop(hook);
            assert_eq!(scene.get("k05").as_deref(), Some("new"), "{point}");
            scene.drain();
            assert_eq!(scene.get("k05").as_deref(), Some("new"), "{point}");
            scene.to_slow();
            assert_eq!(scene.get("k05").as_deref(), Some("new"), "{point}");
        }
    }
}

#[test]
fn an_ingestion_takes_what_it_supersedes_out_of_the_promotion_cache() {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&["k01", "k05"]);
    assert_eq!(ingest(&scene, &["k04", "k05"], "new").unwrap().level, 5);
    assert_eq!(scene.cached("k05"), None);
    assert_eq!(scene.cached("k01").as_deref(), Some("old"), "not its key");
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
    assert_eq!(scene.tree().placed.gate.claims(), 0);
}

/// The reader has found the old version, and adds it once the new one lies below.
#[test]
fn a_version_that_was_overtaken_by_an_ingestion_is_not_admitted() {
    for point in ["promotion.before_admission", "ingest.before_edit"] {
        let scene = Scene::with_old(&KEYS);
        match point {
            "promotion.before_admission" => {
                let hook = scene.at(point, |scene| ingest(scene, &["k05"], "new").map(|_| ()));
                assert_eq!(scene.get("k05").as_deref(), Some("old"), "it began before");
                drop(hook);
                assert_eq!(scene.refused(Refusal::Overtaken), 1);
            }
            _ => {
                let hook = scene.at(point, |scene| {
                    assert_eq!(scene.get("k05").as_deref(), Some("old"));
                    Ok(())
                });
                ingest(&scene, &["k05"], "new").unwrap();
                drop(hook);
                assert_eq!(scene.refused(Refusal::Claimed), 1);
            }
        }
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.get("k05").as_deref(), Some("new"));
    }
}

/// A crossing passes the levels above the slow one with the keys of its hull, between which its
/// tables have none: what comes to lie there must not be overtaken (I11).
#[test]
fn it_stays_above_what_a_running_job_passes() {
    let scene = Scene::with_old(&["k00", "k05", "k09"]);
    let plan = over_a_gap(&scene);
    let hook = scene.at("compaction.before_edit", |scene| {
        let ingested = ingest(scene, &["k05"], "new")?;
        assert!(usize::from(ingested.level) <= F, "{ingested:?}");
        Ok(())
    });
    scene.start(plan);
    scene.drain();
    drop(hook);
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
    assert_eq!(scene.get("k09").as_deref(), Some("mid"));
    assert_eq!(ingest(&scene, &["m"], "new").unwrap().level, SLOW as u8);
}

/// No job begins that would pass it between the choice of its level and its installation (I11).
#[test]
fn no_job_passes_it_before_it_is_installed() {
    let scene = Scene::with_old(&["k00", "k05", "k09"]);
    let plan = Mutex::new(Some(over_a_gap(&scene)));
    let hook = scene.at("ingest.before_edit", move |scene| {
        scene.start(plan.lock().take().expect("a plan"));
        assert!(!scene.engine().is_compacting(), "it meets the ingestion");
        Ok(())
    });
    assert_eq!(
        ingest(&scene, &["k05"], "new").unwrap().level,
        SLOW as u8 - 1
    );
    drop(hook);
    scene.drain();
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
    scene.to_slow();
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

/// A crossing of two tables of level f, with k05 between them.
fn over_a_gap(scene: &Scene) -> Plan {
    scene.put_all(&["k00", "k01"], "mid");
    scene.to_last_fast();
    scene.put_all(&["k08", "k09"], "mid");
    scene.to_last_fast();
    let tables = scene.tree().version().levels[F].tables.to_vec();
    assert_eq!(tables.len(), 2);
    let mut plan = scene.crossing();
    plan.upper = Upper::Tables(tables);
    plan
}

#[test]
fn the_record_cache_gives_nothing_that_an_ingestion_supersedes() {
    let mut options = options();
    options.record_cache = Some(256 << 10);
    for point in [
        "ingest.before_edit",
        "ingest.logged",
        "record_cache.reserved",
        "record_cache.checked",
    ] {
        let scene = Scene::with(options.clone());
        scene.put_all(&KEYS, "old");
        scene.db.flush().unwrap();
        let ask = |scene: &Scene| (0..4).for_each(|_| drop(scene.get("k05")));
        let hook = if point.starts_with("ingest") {
            ask(&scene);
            let hook = scene.at(point, move |scene| {
                // It would be filled again.
                (0..4).for_each(|_| assert_eq!(scene.get("k05").as_deref(), Some("old")));
                Ok(())
            });
            ingest(&scene, &["k05"], "new").unwrap();
            hook
        } else {
            let hook = scene.at(point, |scene| ingest(scene, &["k05"], "new").map(|_| ()));
            ask(&scene);
            hook
        };
        drop(hook);
        assert_eq!(scene.get("k05").as_deref(), Some("new"), "{point}");
        assert!(!scene.tree().pin().shuns_record_cache);
        // From then on it is used again.
        ask(&scene);
        let hits = scene.db.metrics().hits.record_cache;
        ask(&scene);
        assert!(scene.db.metrics().hits.record_cache > hits, "{point}");
    }
}

/// The points of an ingestion, in their order.
const POINTS: [&str; 9] = [
    "ingest.table_written",
    "ingest.flushed",
    "wal.before_sync",
    "ingest.logged",
    "ingest.before_edit",
    "manifest.before_append",
    "manifest.before_sync",
    "manifest.after_sync",
    "ingest.installed",
];

fn durable() -> Options {
    let mut options = options();
    options.durability = Durability::Sync;
    options
}

#[test]
fn after_a_loss_of_power_it_is_there_as_a_whole_or_not_at_all() {
    let keys: Vec<String> = (0..100).map(|key| format!("k{key:02}")).collect();
    let disk = Faulty::new(1);
    let scene = Scene::on(Arc::new(disk.clone()), durable());
    scene.put_all(&KEYS, "old");
    scene.db.flush().unwrap();
    let left = Arc::new(Mutex::new(Vec::new()));
    let hooks: Vec<_> = POINTS
        .iter()
        .map(|&point| {
            let (disk, left) = (disk.clone(), Arc::clone(&left));
            scene.at(point, move |_| {
                for is_kept in [false, true] {
                    left.lock().push((point, is_kept, disk.image(|_| is_kept)));
                }
                Ok(())
            })
        })
        .collect();
    scene
        .db
        .ingest(keys.iter().map(|key| (key, value("new"))))
        .unwrap();
    drop(hooks);
    let mut outcomes = BTreeMap::new();
    for (point, is_kept, image) in std::mem::take(&mut *left.lock()) {
        let at = format!("at {point}, what is not synced is kept: {is_kept}");
        let scene = Scene::on(Arc::new(image), durable());
        let new = scene.db.iter().filter(|record| {
            let (_, found) = record.as_ref().unwrap();
            found[..] == value("new")
        });
        let (new, all) = (new.count(), scene.db.iter().count());
        assert!(
            (new, all) == (0, 10) || (new, all) == (100, 100),
            "{at}: {new} of {all}"
        );
        outcomes.insert((point, is_kept), new > 0);
        if new == 0 {
            let named = scene.tree().version().tables().count();
            assert_eq!(table_files(&scene), named, "{at}: files are left");
        }
        // Its number is not given out again.
        let last = scene.db.snapshot().seq();
        assert_eq!(scene.put_seq("later"), last + 1, "{at}");
        let new = if new > 0 { "new" } else { "old" };
        scene.to_slow();
        assert_eq!(scene.get("k05").as_deref(), Some(new), "{at}");
    }
    assert!(!outcomes[&("ingest.before_edit", true)] && outcomes[&("ingest.installed", false)]);
}

#[test]
fn one_that_fails_on_the_way_leaves_nothing_and_keeps_nobody_from_writing() {
    for point in [
        "ingest.table_written",
        "ingest.flushed",
        "ingest.logged",
        "ingest.before_edit",
        "manifest.before_append",
    ] {
        let memory: Arc<dyn Medium> = Arc::new(Memory::new());
        let scene = Scene::on(memory, options());
        scene.put_all(&KEYS, "old");
        scene.db.flush().unwrap();
        let tables = table_files(&scene);
        let hook = scene.at(point, |_| {
            let planted = std::io::Error::other("planted");
            Err(Error::io("write", "/fast", planted))
        });
        let failed = ingest(&scene, &["k04", "k05"], "new").unwrap_err();
        drop(hook);
        assert!(matches!(failed, Error::Io { .. }), "{point}: {failed:?}");
        assert_eq!(table_files(&scene), tables, "{point}");
        assert_eq!(scene.tree().placed.gate.claims(), 0, "{point}");
        scene.check(&model(&KEYS, "old"), &KEYS, point);
        scene.put("k04", "later");
        assert_eq!(scene.engine().tiers[1].in_flight(), 0, "{point}");
        // With later writes in the log, its tables are not taken for lost ones.
        let scene = scene.reopen(options());
        assert_eq!(scene.get("k04").as_deref(), Some("later"));
        assert_eq!(scene.get("k05").as_deref(), Some("old"));
        assert_eq!(ingest(&scene, &["k05"], "new").unwrap().records, 1);
        assert_eq!(scene.get("k05").as_deref(), Some("new"));
    }
}

#[test]
fn a_failed_sync_ends_it_and_all_writing() {
    for end in [".wal", "MANIFEST", ".sst"] {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), options());
        scene.put_all(&KEYS, "old");
        scene.db.flush().unwrap();
        let is_it = move |operation, name: &str| {
            operation == Operation::Sync && (name.ends_with(end) || name.starts_with(end))
        };
        disk.fail_where(is_it, Fault::SyncFails);
        let failed = ingest(&scene, &["k04", "k05"], "new").unwrap_err();
        assert!(
            matches!(failed, Error::Poisoned { .. }),
            "{end}: {failed:?}"
        );
        scene.check(&model(&KEYS, "old"), &KEYS, end);
        let refused = scene.db.put("key", "value").unwrap_err();
        assert!(
            matches!(refused, Error::Poisoned { .. }),
            "{end}: {refused:?}"
        );
        let scene = Scene::on(Arc::new(disk.crash(CrashStyle::LoseAll)), options());
        let found = scene.get("k05");
        assert_eq!(found.as_deref(), Some("old"), "{end}");
    }
}

#[test]
fn without_room_on_the_last_tier_nothing_is_ingested() {
    let mut options = options();
    options.tiers[1].capacity = 1 << 20;
    let scene = Scene::with(options);
    let refused = scene.db.ingest(noise(4000)).unwrap_err();
    assert!(refused.is_no_space(), "{refused:?}");
    assert_eq!(table_files(&scene), 0);
    let slow = &scene.engine().tiers[1];
    assert_eq!((slow.reserved_bytes(), slow.file_bytes()), (0, 0));
    assert_eq!(scene.db.ingest(noise(200)).unwrap().records, 200);
    assert!(slow.file_bytes() <= slow.capacity());
}

/// Large values, and keys that take more than their values, stay within what was reserved.
#[test]
fn tables_stay_within_their_reservations() {
    let scene = Scene::new();
    let sizes = [0usize, 10, 70_000, 5, 1 << 20, 3, 40_000, 40_000, 1];
    let key = |n: usize| format!("{n:04}{}", "k".repeat(n * 37 % 3000));
    let records = (0..200).map(|n| (key(n), vec![n as u8; sizes[n % sizes.len()]]));
    scene.points.set("ingest.table_written", {
        let tier = Arc::clone(&scene.engine().tiers[1]);
        move || {
            assert!(
                tier.unfinished_bytes() >= tier.file_bytes(),
                "more than was reserved"
            );
            Ok(())
        }
    });
    let ingested = scene.db.ingest(records).unwrap();
    assert_eq!(ingested.records, 200);
    for n in 0..200 {
        let found = scene.db.get(key(n)).unwrap().unwrap();
        assert_eq!(found.len(), sizes[n % sizes.len()]);
    }
}

#[test]
fn a_follower_comes_upon_a_gap_where_tables_were_ingested() {
    let mut options = options();
    options.log_retention = 1 << 20;
    let scene = Scene::with(options);
    scene.put("k00", "1");
    let ingested = ingest(&scene, &["k05"], "new").unwrap();
    scene.put("k01", "2");
    let mut log = scene.db.log_since(1).unwrap();
    assert_eq!(log.next().unwrap().unwrap().ops[0].key, "k00");
    match log.next() {
        Some(Err(Error::LogIngested { seq, keyspace })) => {
            assert_eq!((seq, keyspace), (ingested.seq, 0));
        }
        other => panic!("{other:?}"),
    }
    assert!(log.next().is_none());
    // From behind it, the log goes on.
    let mut log = scene.db.log_since(ingested.seq + 1).unwrap();
    assert_eq!(log.next().unwrap().unwrap().ops[0].key, "k01");
}

/// A checkpoint is of one moment: what is ingested behind that is not in it.
#[test]
fn a_checkpoint_holds_it_or_is_of_a_moment_before() {
    let memory: Arc<dyn Medium> = Arc::new(Memory::new());
    let scene = Scene::on(Arc::clone(&memory), options());
    scene.put("k00", "1");
    ingest(&scene, &["k05"], "new").unwrap();
    scene.put("k01", "2");
    scene
        .db
        .checkpoint(&["/copy".into(), "/copy-slow".into()])
        .unwrap();
    ingest(&scene, &["k06"], "new").unwrap();
    let mut copied = options();
    copied.tiers[0].path = "/copy".into();
    copied.tiers[1].path = "/copy-slow".into();
    let copy = Scene::on(memory, copied);
    let mut wanted = model(&["k05"], "new");
    wanted.insert("k00".into(), "1".into());
    wanted.insert("k01".into(), "2".into());
    copy.check(&wanted, &KEYS, "the copy");
    assert!(copy.db.verify(&mut |_| ()).unwrap().problems.is_empty());
}

/// Removes `CURRENT` and the manifest of a closed store.
fn lose_manifest(medium: &Arc<dyn Medium>) {
    let store = medium.log_store("/fast".as_ref(), false).unwrap();
    for file in store.list().unwrap() {
        if file.name == "CURRENT" || file.name.starts_with("MANIFEST") {
            store.remove(&file.name).unwrap();
        }
    }
}

/// The number of ingested records is in the manifest, and in the log while that is there.
#[test]
fn a_repair_gives_ingested_records_their_number_or_says_that_it_is_lost() {
    for is_logged in [true, false] {
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let mut with_log = options();
        with_log.log_retention = if is_logged { 1 << 20 } else { 0 };
        let scene = Scene::on(Arc::clone(&medium), with_log.clone());
        scene.put_all(&KEYS, "old");
        // It is begun before the second version of k05, and installed behind it.
        let mut ingestion = scene.db.ingestion().unwrap();
        ingestion.put("k04", value("new")).unwrap();
        scene.put("k05", "between");
        ingestion.put("k05", value("new")).unwrap();
        ingestion.commit().unwrap();
        scene.put("k09", "newest");
        scene.db.close().unwrap();
        lose_manifest(&medium);
        let builder = || {
            let builder = Db::builder(with_log.clone()).medium(0, Arc::clone(&medium));
            builder.medium(1, Arc::clone(&medium))
        };
        let report = builder().repair(false).unwrap();
        let says = report
            .losses
            .iter()
            .any(|loss| loss.what.contains("ingested"));
        assert_eq!(says, !is_logged, "{report:?}");
        let scene = Scene::on(Arc::clone(&medium), with_log);
        assert_eq!(scene.get("k04").as_deref(), Some("new"));
        assert_eq!(scene.get("k09").as_deref(), Some("newest"));
        assert_eq!(scene.get("k00").as_deref(), Some("old"));
        if is_logged {
            assert_eq!(scene.get("k05").as_deref(), Some("new"));
        }
        scene.to_slow();
        assert_eq!(scene.get("k04").as_deref(), Some("new"));
    }
}

/// The manifest ends before the edit of an ingestion, as if a crash had cut it short. But the log
/// goes on behind the ingestion, so the edit was durable once: the tables are no orphans.
#[test]
fn a_lost_edit_of_an_ingestion_is_no_torn_end() {
    let disk = Faulty::new(1);
    let scene = Scene::on(Arc::new(disk.clone()), durable());
    scene.put("k00", "1");
    scene.db.flush().unwrap();
    let (before, number) = {
        let engine = scene.engine();
        let manifest = engine.files.manifest.lock();
        (manifest.len(), manifest.number())
    };
    ingest(&scene, &["k05"], "new").unwrap();
    scene.put("k01", "2");
    let left = disk.image(|_| true);
    left.truncate_raw("/fast".as_ref(), &manifest_file_name(number), before)
        .unwrap();
    let medium: Arc<dyn Medium> = Arc::new(left);
    let builder = || {
        let builder = Db::builder(durable()).medium(0, Arc::clone(&medium));
        builder.medium(1, Arc::clone(&medium))
    };
    let refused = builder().open().map(|_| ()).unwrap_err();
    assert!(refused.is_corruption(), "{refused:?}");
    builder().repair(false).unwrap();
    let db = builder().open().unwrap();
    for key in ["k00", "k01", "k05"] {
        assert!(db.get(key).unwrap().is_some(), "{key}");
    }
}
