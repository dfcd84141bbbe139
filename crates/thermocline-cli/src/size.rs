//! Sizes on the command line: `512MiB`, `1GiB`, `1.5GB`, `4096`.

use bytesize::ByteSize;
use indicatif::BinaryBytes;

/// Reads a size in bytes, with or without a unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|_| "give bytes or a unit, like 4096, 512MiB or 1GiB".to_owned())?;
    if size.as_u64() == 0 {
        return Err("must be more than 0".to_owned());
    }
    Ok(size.as_u64())
}

/// A size for people, in binary units.
pub(crate) fn show(bytes: u64) -> String {
    if bytes == u64::MAX {
        "unlimited".to_owned()
    } else {
        BinaryBytes(bytes).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_and_decimal_units() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("512MiB"), Ok(512 << 20));
        assert_eq!(parse("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse("2GB"), Ok(2_000_000_000));
    }

    #[test]
    fn what_is_no_size_is_refused_with_an_example() {
        for bad in ["", "much", "12 parsecs", "-1GiB"] {
            assert!(parse(bad).is_err_and(|e| e.contains("512MiB")), "{bad:?}");
        }
        assert!(parse("0").is_err());
    }

    #[test]
    fn sizes_are_shown_in_binary_units() {
        assert_eq!(show(3 << 29), "1.50 GiB");
        assert_eq!(show(u64::MAX), "unlimited");
    }
}
