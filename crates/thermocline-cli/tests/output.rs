//! Output that somebody else reads: pipes that close early, completions, help.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Run, Store, run};

#[test]
fn a_pipe_that_closes_early_is_no_error() {
    // Far more than a pipe holds, so that the command meets the closed end.
    let store = Store::filled(4000, 200);
    let mut child = store
        .command("scan", &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut first).expect("a line");
    drop(out);
    assert!(first.starts_with("key0000\t"));
    let run = Run::new(child.wait_with_output().expect("ends"));
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn completions_know_the_subcommands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).ok();
        assert!(script.contains("checkpoint"), "{shell}");
    }
    run(&["completions", "dos"]).fails(2, &["bash"]);
}

#[test]
fn help_lists_exit_codes_and_shows_what_each_subcommand_does() {
    let help = run(&["--help"]).ok();
    assert!(help.contains("Exit codes:") && help.contains("  4  bytes on disk are damaged"));
    for (command, about) in [
        ("get", "Print the value of a key"),
        ("put", "Write a value under a key"),
        ("verify", "Read every block of every file"),
        ("bench", "Measure"),
        ("demo", "Show"),
        ("hot", "Print the hottest keys"),
    ] {
        let help = run(&[command, "--help"]).ok();
        assert!(help.starts_with(about), "{help}");
        assert!(help.contains("Examples:"), "{help}");
    }
}
