//! A tier whose device is lost.

use thermocline::DbBuilder;

use crate::failure::Failure;
use crate::store::StoreArgs;

/// Which one it is.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum GivenUp {
    Fast,
    /// The last one of several
    Slow,
}

/// Has `builder`, which is for the store that `args` name, go on without what the tier `given_up`
/// held.
pub(crate) fn give_up(
    builder: DbBuilder,
    args: &StoreArgs,
    given_up: Option<GivenUp>,
) -> Result<DbBuilder, Failure> {
    match given_up {
        None => Ok(builder),
        Some(_) if args.is_one_tier() => Err(Failure::usage(
            "--give-up is for stores of two tiers or more: of one tier nothing would be left",
        )),
        Some(GivenUp::Fast) => Ok(builder.give_up_tier(0)),
        Some(GivenUp::Slow) => Ok(builder.give_up_tier(args.slow().len())),
    }
}
