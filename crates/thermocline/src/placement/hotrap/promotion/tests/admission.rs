//! Which records may enter the promotion cache: each equals the newest version below level f (I6).

use crate::cache::LARGE_BUFFER;
use crate::error::Error;
use crate::key::Kind;
use crate::metrics::Refusal;
use crate::placement::hotrap::promotion::FrozenPromotion;
use crate::placement::hotrap::promotion::gate::PromotionGate;
use crate::read::Superversion;
use crate::record::Record;
use crate::testing::scene::{F, KEYS, SLOW, Scene, everything, model, options};
use crate::value::Value;

/// Writes `k05` anew, or deletes it, and brings that to level f.
fn supersede(scene: &Scene, is_delete: bool) {
    if is_delete {
        scene.delete("k05");
    } else {
        scene.put("k05", "new");
    }
    scene.to_last_fast();
}

fn newest(is_delete: bool) -> Option<String> {
    (!is_delete).then(|| "new".to_owned())
}

/// A read finds the old version. Before it gets to add that, the new version goes all the way down,
/// into the very table that the read has looked at.
#[test]
fn a_version_that_was_overtaken_by_a_crossing_is_not_admitted() {
    for is_delete in [false, true] {
        let scene = Scene::with_old(&KEYS);
        let hook = scene.at("promotion.before_admission", move |scene| {
            supersede(scene, is_delete);
            scene.cross();
            Ok(())
        });
        assert_eq!(scene.get("k05").as_deref(), Some("old"), "it began before");
        drop(hook);
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.refused(Refusal::Overtaken), 1);
        assert_eq!(scene.get("k05"), newest(is_delete));
    }
}

/// As above, but the new version lands on a level where the read had found no table to look at. A
/// check of the tables that a read has consulted, as in HotRAP's §3.3, does not see it.
#[test]
fn a_version_that_was_overtaken_in_a_gap_between_tables_is_not_admitted() {
    let scene = Scene::with_old(&KEYS);
    let hook = scene.at("promotion.before_admission", |scene| {
        supersede(scene, false);
        assert!(scene.tree().pin().version.levels[5].tables.is_empty());
        scene.cross_to(5);
        Ok(())
    });
    assert_eq!(scene.get("k05").as_deref(), Some("old"));
    drop(hook);
    let levels = scene.levels_of("k05");
    assert_eq!(levels, [(5, "new".into()), (6, "old".into())]);
    assert_eq!(scene.cached("k05"), None);
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

/// The crossing runs, but is not installed yet.
#[test]
fn a_version_that_a_running_crossing_is_about_to_supersede_is_not_admitted() {
    for is_delete in [false, true] {
        let scene = Scene::with_old(&KEYS);
        let reader = scene.reader();
        supersede(&scene, is_delete);
        let hook = scene.at("compaction.before_edit", move |_| {
            assert_eq!(reader.get("k05").as_deref(), Some("old"));
            Ok(())
        });
        scene.cross();
        drop(hook);
        assert_eq!(scene.refused(Refusal::Claimed), 1);
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.get("k05"), newest(is_delete));
    }
}

/// A claim does not stand against a record if the table that goes down says nothing of its key.
#[test]
fn a_read_that_has_seen_the_table_that_goes_down_is_admitted() {
    let scene = Scene::with_old(&KEYS);
    scene.put_all(&["k00", "k09"], "new");
    scene.to_last_fast();
    let hook = scene.at("compaction.before_edit", |scene| {
        assert_eq!(scene.get("k05").as_deref(), Some("old"));
        assert_eq!(scene.tree().placed.gate.claims(), 1);
        Ok(())
    });
    scene.cross();
    drop(hook);
    assert_eq!(scene.cached("k05").as_deref(), Some("old"));
    assert_eq!(scene.get("k05").as_deref(), Some("old"));
}

/// A reader of a snapshot looks at the very table that goes down and finds nothing in it, since the
/// version there is newer than the snapshot. If the reader's record were admitted, it would hide
/// that version as soon as the crossing is installed.
#[test]
fn an_old_snapshot_that_has_seen_the_table_that_goes_down_is_not_admitted() {
    for is_delete in [false, true] {
        let scene = Scene::with_old(&KEYS);
        let snapshot = scene.db.snapshot();
        supersede(&scene, is_delete);
        let reader = scene.reader_of(&snapshot);
        let hook = scene.at("compaction.before_edit", move |_| {
            assert_eq!(reader.get("k05").as_deref(), Some("old"));
            Ok(())
        });
        scene.cross();
        drop(hook);
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.get("k05"), newest(is_delete));
        let found = snapshot.get("k05").unwrap();
        assert!(found.is_some(), "the snapshot stays as it was");
    }
}

/// The version that hides the snapshot's is below level f already.
#[test]
fn what_an_old_snapshot_finds_is_not_admitted() {
    let scene = Scene::with_old(&KEYS);
    let snapshot = scene.db.snapshot();
    supersede(&scene, false);
    scene.cross();
    let old = scene.reader_of(&snapshot).get("k05");
    assert_eq!(old.as_deref(), Some("old"));
    let found = snapshot.multi_get_in(&scene.db, &["k05"]).unwrap();
    assert!(found[0].is_some());
    assert_eq!(scene.refused(Refusal::OldSnapshot), 2);
    assert_eq!(scene.cached("k05"), None);
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

#[test]
fn a_crossing_takes_the_records_of_its_keys_out_of_the_cache_before_it_reads() {
    for is_delete in [false, true] {
        let scene = Scene::with_old(&KEYS);
        scene.read_into_cache(&KEYS);
        supersede(&scene, is_delete);
        let hook = scene.at("compaction.claimed", |scene| {
            assert_eq!(scene.cached("k05"), None);
            assert!(scene.cached("k04").is_some(), "not of its keys");
            Ok(())
        });
        scene.cross();
        drop(hook);
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.get("k05"), newest(is_delete));
    }
}

#[test]
fn a_crossing_takes_records_out_of_a_frozen_cache_too() {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&KEYS);
    let frozen = FrozenPromotion::freeze(scene.tree());
    assert!(
        scene.cached("k05").is_some(),
        "a frozen cache stays readable"
    );
    supersede(&scene, false);
    scene.cross();
    assert_eq!(scene.cached("k05"), None);
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
    frozen.abandon(scene.tree());
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

/// A move reads nothing, but it is a crossing all the same: a table of level f that lies on the
/// slow tier only changes its level.
#[test]
fn a_table_that_moves_across_supersedes_what_is_cached() {
    for is_admitted_before in [true, false] {
        let scene = Scene::with_old(&KEYS);
        let reader = scene.reader();
        scene.put("k05", "new");
        scene.db.flush().unwrap();
        scene.lower(0);
        let mut plan = scene.pick(1, &everything(), true).unwrap();
        (plan.outputs[0].tier, plan.is_move) = (1, false);
        scene.start(plan);
        scene.without_compactions(|| scene.drain());
        if is_admitted_before {
            reader.get("k05");
            assert_eq!(scene.cached("k05").as_deref(), Some("old"));
            scene.cross_to_level_5_by_a_move();
        } else {
            let hook = scene.at("move.before_edit", move |_| {
                reader.get("k05");
                Ok(())
            });
            scene.cross_to_level_5_by_a_move();
            drop(hook);
            assert_eq!(scene.refused(Refusal::Claimed), 1);
        }
        assert_eq!(scene.levels_of("k05")[0], (5, "new".into()));
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.get("k05").as_deref(), Some("new"));
    }
}

impl Scene {
    fn cross_to_level_5_by_a_move(&self) {
        let mut plan = self.crossing();
        assert_eq!(plan.upper.tables()[0].meta.tier, 1);
        (plan.to, plan.is_move) = (5, true);
        plan.outputs[0].level = 5;
        plan.lower.clear();
        let before = self.tree().pin().waiting.crossings;
        self.start(plan);
        while self.tree().pin().waiting.crossings == before {
            assert!(self.stepped.step(), "the move has failed");
        }
    }
}

#[test]
fn a_crossing_that_fails_lets_go_of_its_claim() {
    let scene = Scene::with_old(&KEYS);
    let reader = scene.reader();
    supersede(&scene, false);
    let hook = scene.at("compaction.before_edit", |_| Err(Error::Closed));
    scene.start(scene.crossing());
    scene.stepped.step();
    drop(hook);
    assert_eq!(scene.tree().placed.gate.claims(), 0);
    assert_eq!(scene.levels_of("k05")[0], (F as u8, "new".into()));
    // Nothing newer has come below level f.
    reader.get("k05");
    assert_eq!(scene.cached("k05").as_deref(), Some("old"));
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
    scene.cross();
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

/// A reader that has pinned the state before a crossing shares the cache with those after it.
#[test]
fn a_reader_of_an_old_state_never_takes_a_record_for_older_than_it_is() {
    let scene = Scene::with_old(&KEYS);
    let snapshot = scene.db.snapshot();
    let before = scene.reader_of(&snapshot);
    supersede(&scene, false);
    scene.cross();
    scene.read_into_cache(&["k05"]);
    assert_eq!(before.get("k05").as_deref(), Some("old"));
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

#[test]
fn a_cached_record_hides_nothing_of_what_is_above_it() {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&KEYS);
    let mut wanted = model(&KEYS, "old");
    for (level, key) in [(F, "k01"), (1, "k03"), (0, "k05")] {
        scene.put(key, "new");
        wanted.insert(key.into(), "new".into());
        scene.db.flush().unwrap();
        (0..level).for_each(|from| scene.lower(from));
        assert_eq!(scene.levels_of(key)[0], (level as u8, "new".into()));
    }
    scene.delete("k07");
    wanted.remove("k07");
    scene.check(&wanted, &KEYS, "a cached record under each level");
    assert_eq!(scene.levels_of("k05").last().unwrap().0, SLOW as u8);
}

/// A crossing may bring up the very record that a read admits while it runs. Afterwards the cache
/// held a record that lies nowhere below level f. When the record was deleted and the deletion came
/// to level f, nothing was left below to delete: both were dropped, and reads found the record in
/// the cache again. A promotion then made that last.
#[test]
fn a_record_that_a_crossing_brings_up_is_not_left_in_the_cache() {
    let scene = Scene::with_old(&["k05"]);
    scene.put_all(&["k00", "k01", "k02", "k08", "k09"], "old");
    scene.to_last_fast();
    scene.heat(&["k05", "k08", "k09"]);
    let hook = scene.at("compaction.before_edit", |scene| {
        scene.read_into_cache(&["k05"]);
        Ok(())
    });
    scene.cross();
    drop(hook);
    assert_eq!(scene.levels_of("k05"), [(F as u8, "old".into())]);
    assert_eq!(scene.cached("k05"), None);
    scene.delete("k05");
    scene.to_last_fast();
    assert_eq!(scene.levels_of("k05"), [], "nothing is left to delete");
    assert_eq!(scene.get("k05"), None);
}

/// What a record in the cache is good for: until it goes up, it is read without the slow device,
/// whichever way one asks for it.
#[test]
fn what_is_admitted_is_read_again_without_the_slow_device() {
    let mut options = options();
    // Nothing else answers from memory.
    (options.block_cache, options.record_cache) = (Some(0), Some(0));
    let scene = Scene::with(options);
    scene.put_all(&KEYS, "old");
    scene.to_slow();
    let before = scene.db.metrics();
    assert_eq!(scene.get("k05").as_deref(), Some("old"));
    let first = scene.db.metrics();
    assert!(first.tiers[1].read_ops() > before.tiers[1].read_ops());
    assert_eq!(first.hits.promotion_cache, 0);
    assert_eq!(first.hits.tier, [0, 1]);
    assert_eq!(scene.get("k05").as_deref(), Some("old"));
    let many = scene.db.multi_get(&["k05"]).unwrap();
    assert!(many[0].is_some());
    let snapshot = scene.db.snapshot();
    assert!(snapshot.get("k05").unwrap().is_some());
    let again = scene.db.metrics();
    assert_eq!(again.hits.promotion_cache, 3);
    assert_eq!(again.hits.tier, [0, 1]);
    assert_eq!(again.hits.without_slow_device, 3);
    assert_eq!(again.tiers[1].read_ops(), first.tiers[1].read_ops());
}

/// A value as long as all of the cache was copied into it, under the lock that every read of the
/// slow tier takes, and nothing else had room there.
#[test]
fn a_large_value_may_take_an_eighth_of_the_cache() {
    let scene = Scene::with_old(&KEYS);
    let (seen, seq) = (scene.tree().pin(), scene.engine().visible());
    let most = 8 << 20;
    let admit = |key: &str, len: usize| {
        let record = Record {
            seq: 1,
            kind: Kind::Put,
            value: Value::new(vec![0; len].into()),
        };
        let gate = &scene.tree().placed.gate;
        gate.admit(&seen, seq, (key.as_bytes(), &record), most)
    };
    assert!(admit("an eighth", 1 << 20).is_ok());
    assert_eq!(admit("more", (1 << 20) + 1), Err(Refusal::Full));
    // Of a small cache, values take all that is not called large.
    let most = 64 << 10;
    let record = Record {
        seq: 1,
        kind: Kind::Put,
        value: Value::new(vec![0; LARGE_BUFFER - 1].into()),
    };
    let gate = PromotionGate::default();
    let mut unseen = Superversion::clone(&seen);
    unseen.waiting = gate.view();
    assert!(gate.admit(&unseen, seq, (b"k", &record), most).is_ok());
}
