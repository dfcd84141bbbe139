//! The harnesses as a program of their own: `thermocline torture` without the other commands.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

/// Try to make a Thermocline store lose, mix up or resurrect something.
#[derive(Debug, Parser)]
#[command(name = "thermocline-torture", version)]
struct Cli {
    #[command(flatten)]
    args: thermocline_torture::Args,
}

fn main() -> ExitCode {
    let print = |line: String| {
        println!("{line}");
        Ok::<(), std::convert::Infallible>(())
    };
    match thermocline_torture::run(&Cli::parse().args, print) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}
