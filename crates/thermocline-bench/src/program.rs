//! The program that measures, and how it was called.

use std::env;

#[cfg(feature = "lab")]
use git_version::git_version;

/// The commit of the repository in which its sources lay when it was built, followed by "-modified"
/// if files were modified. None outside of a repository.
#[cfg(feature = "lab")]
pub(crate) fn commit() -> Option<&'static str> {
    // Never a tag, because the version is given beside it.
    let commit = git_version!(
        args = ["--always", "--exclude=*", "--dirty=-modified"],
        fallback = ""
    );
    (!commit.is_empty()).then_some(commit)
}

/// Results that are to be compared come from a build with the feature `lab`.
#[cfg(not(feature = "lab"))]
pub(crate) fn commit() -> Option<&'static str> {
    None
}

/// The command line of this process, for people to repeat.
pub(crate) fn command() -> String {
    let words = env::args_os().skip(1);
    repeatable(words.map(|word| word.to_string_lossy().into_owned()))
}

/// A command line of `thermocline`. It leaves out where the results went, because what was measured
/// does not depend on that.
fn repeatable(words: impl Iterator<Item = String>) -> String {
    let mut command = vec!["thermocline".to_owned()];
    let mut words = words;
    while let Some(word) = words.next() {
        if word == "--json" {
            words.next();
        } else if !word.starts_with("--json=") {
            command.push(word);
        }
    }
    command_line(command.iter().map(String::as_str))
}

/// `words` as they would have to be given to a shell.
pub(crate) fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    // Only a zero byte cannot be quoted, and no command line can have one.
    shlex::try_join(words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_commit_is_that_of_the_repository() {
        let git = Command::new("git")
            .args(["rev-parse", "HEAD"])
            .output()
            .ok();
        let head = git.and_then(|git| String::from_utf8(git.stdout).ok());
        let head = head.filter(|head| !head.is_empty());
        let commit = commit().map(|commit| commit.trim_end_matches("-modified"));
        assert_eq!(commit.is_some(), head.is_some());
        let (head, commit) = (head.unwrap_or_default(), commit.unwrap_or_default());
        assert!(head.starts_with(commit), "{commit} of {head}");
    }

    #[test]
    fn a_command_can_be_typed_again_and_does_not_say_where_results_went() {
        let line = |words: &[&str]| repeatable(words.iter().map(|&word| word.to_owned()));
        let same = "thermocline bench --after-warm-up 'limit /slow 5 6' --keep";
        let words = ["bench", "--after-warm-up", "limit /slow 5 6"];
        for json in [&["--json", "a b"][..], &["--json=a"], &[]] {
            assert_eq!(line(&[&words, json, &["--keep"]].concat()), same);
        }
    }
}
