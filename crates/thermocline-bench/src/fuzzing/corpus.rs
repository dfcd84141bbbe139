//! The corpora as tests on stable, with mutations of them.

use std::path::PathBuf;

use thermocline_corpus::run;

use super::{TARGETS, fuzz_command_line, fuzz_suite, fuzz_trace, text};

fn dir(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

macro_rules! corpora {
    ($($target:ident: $mutations:expr,)*) => {
        $(
            #[test]
            fn $target() {
                run(&dir(stringify!($target)), $mutations, super::$target);
            }
        )*

        #[test]
        fn every_target_runs_here_and_has_a_file_in_fuzz() {
            let names = [$(stringify!($target)),*];
            assert!(TARGETS.iter().map(|(name, _)| *name).eq(names));
            for name in names {
                let path = dir("../fuzz_targets").join(format!("{name}.rs"));
                let text = std::fs::read_to_string(path).unwrap();
                assert!(text.contains(&format!("fuzzing::{name}(")), "{name}");
            }
        }
    };
}

corpora! {
    command_line: 300,
    settings: 3000,
    suite: 150,
    trace: 3000,
}

/// If a corpus were refused at the door, all this would be worthless.
#[test]
fn what_is_intact_in_the_corpora_is_accepted() {
    let intact = |target: &str| {
        let mut paths: Vec<_> = std::fs::read_dir(dir(target))
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("intact-"))
            .collect();
        paths.sort();
        assert!(!paths.is_empty(), "{target}");
        paths.into_iter().map(|path| std::fs::read(path).unwrap())
    };
    for bytes in intact("trace") {
        assert!(fuzz_trace(&bytes).unwrap() > 4);
    }
    for bytes in intact("suite") {
        fuzz_suite(text(&bytes).unwrap()).unwrap();
    }
    for bytes in intact("command_line") {
        let words: Vec<String> = text(&bytes).unwrap().lines().map(str::to_owned).collect();
        fuzz_command_line(&words).unwrap();
    }
}
