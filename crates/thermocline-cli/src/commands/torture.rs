//! `thermocline torture`.

pub(crate) use thermocline_torture::Args;

use crate::failure::Failure;
use crate::output::Out;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut out = Out::of_verdict();
    let broken = thermocline_torture::run(args, |line| out.line(line))?;
    out.finish()?;
    match broken {
        0 => Ok(()),
        broken => Err(Failure::Broken { broken }),
    }
}
