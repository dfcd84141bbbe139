//! The same answers with any technique of placement by hotness turned off, and from a flash cache: what only a build with
//! these features can be asked.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::process::Command;

/// Runs a harness, which finds nothing wrong, and gives back its line of JSON.
fn torture(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_thermocline-torture"))
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(output.status.success(), "{verdict} {said}");
    verdict
}

fn counted(verdict: &serde_json::Value, what: &str) -> u64 {
    verdict["counted"][what].as_u64().unwrap_or(0)
}

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
