//! The program that measures.

use git_version::git_version;

/// The commit of the repository that its sources lay in when it was built, "-modified" behind it where files were;
/// none outside of one.
pub(crate) fn commit() -> Option<&'static str> {
    // Never a tag: the version is told beside it.
    let commit = git_version!(
        args = ["--always", "--exclude=*", "--dirty=-modified"],
        fallback = ""
    );
    (!commit.is_empty()).then_some(commit)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    #[test]
    fn the_commit_is_that_of_the_repository() {
        let git = Command::new("git")
            .args(["rev-parse", "HEAD"])
            .output()
            .ok();
        let head = git.and_then(|git| String::from_utf8(git.stdout).ok());
        let head = head.filter(|head| !head.is_empty());
        let commit = super::commit().map(|commit| commit.trim_end_matches("-modified"));
        assert_eq!(commit.is_some(), head.is_some());
        let (head, commit) = (head.unwrap_or_default(), commit.unwrap_or_default());
        assert!(head.starts_with(commit), "{commit} of {head}");
    }
}
