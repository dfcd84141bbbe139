//! Asking before something is removed for good.

use std::io::{IsTerminal, Write};

use crate::failure::Failure;

/// Whether somebody at the terminal says yes to `question`. Without a terminal, the error says that
/// `this` needs `--yes`.
pub(crate) fn confirmed(this: &str, question: &str) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(format!(
            "this {this} for good; add --yes to do it without being asked"
        )));
    }
    let answer_io = |source| Failure::Io {
        what: "cannot ask for confirmation".to_owned(),
        source,
    };
    let mut err = std::io::stderr();
    write!(err, "{question} [y/N] ")
        .and_then(|()| err.flush())
        .map_err(answer_io)?;
    let mut answer = String::new();
    stdin.read_line(&mut answer).map_err(answer_io)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
