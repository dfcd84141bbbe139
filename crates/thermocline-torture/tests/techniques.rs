//! The same answers with any technique of placement by hotness turned off, and from a flash cache: what only a build with
//! these features can be asked.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::process::Command;

#[test]
fn stores_without_a_technique_and_with_a_flash_cache_answer_like_an_ordered_map() {
    let output = Command::new(env!("CARGO_BIN_EXE_thermocline-torture"))
        .args(["metamorphic", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(output.status.success(), "{verdict} {said}");
    let count = |what: &str| verdict["counted"][what].as_u64().unwrap_or(0);
    assert!(count("scripts under an option set") >= 18 * 6, "{verdict}");
    assert!(count("reads from flash") > 0, "{verdict}");
}
