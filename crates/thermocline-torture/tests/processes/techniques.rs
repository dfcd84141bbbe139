//! The same answers with any technique of placement by hotness turned off, and from a flash cache: what only a build with
//! these features can be asked.

use super::{counted, torture};

#[test]
fn stores_without_a_technique_and_with_a_flash_cache_answer_like_an_ordered_map() {
    let verdict = torture(&["metamorphic"]);
    let scripts = counted(&verdict, "scripts under an option set");
    assert!(scripts >= 18 * 6, "{verdict}");
    assert!(counted(&verdict, "reads from flash") > 0, "{verdict}");
}

/// The seeds draw what is off: among so few of them each technique is, once at least, and on in others.
#[test]
fn readers_beside_writers_see_nothing_stale_whichever_techniques_are_off() {
    let verdict = torture(&["threads", "--seed", "1", "--cases", "5"]);
    for technique in [
        "retention",
        "the hotness check",
        "promotion by compaction",
        "promotion by flush",
        "bypasses",
        "copies",
        "auto-tuning",
    ] {
        let off = counted(&verdict, &format!("stores without {technique}"));
        assert!((1..5).contains(&off), "{technique}: {verdict}");
    }
}
