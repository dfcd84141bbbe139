//! `thermocline completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Out;

/// Print the completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline completions bash > ~/.local/share/bash-completion/completions/thermocline
  thermocline completions zsh > \"${fpath[1]}/_thermocline\"
  thermocline completions fish > ~/.config/fish/completions/thermocline.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // Written into memory first, because the generator panics when its output is a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "thermocline", &mut script);
    let mut out = Out::new();
    out.raw(&script)?;
    out.finish()
}
