//! The `thermocline` command: use, inspect, check and measure Thermocline stores.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod confirm;
mod failure;
mod fields;
mod given_up;
mod input;
mod open_files;
mod output;
mod progress;
mod selection;
mod size;
mod store;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::parse();
    open_files::raise_limit();
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
