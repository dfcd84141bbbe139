//! Sizes, times and shares as people read them.

use std::time::Duration;

/// Bytes in binary units with two decimals at most: `1.50 GiB`; `unlimited` for `u64::MAX`,
/// which is how an unset capacity is written.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes == u64::MAX {
        return "unlimited".to_owned();
    }
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        // 1023.995 would be printed as 1024.00.
        if value < 1023.995 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.2} {unit}")
}

/// A time with three significant digits or so, in the unit that fits: `312 ns`, `4.20 ms`.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time < Duration::from_micros(1) {
        format!("{} ns", time.as_nanos())
    } else if time < Duration::from_millis(1) {
        format!("{:.2} us", seconds * 1e6)
    } else if time < Duration::from_secs(1) {
        format!("{:.2} ms", seconds * 1e3)
    } else if time < Duration::from_secs(120) {
        format!("{seconds:.2} s")
    } else {
        let whole = time.as_secs();
        format!("{}h{:02}m{:02}s", whole / 3600, whole / 60 % 60, whole % 60)
    }
}

/// `part` of `whole` in percent; `-` when there is nothing to share.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_unit_that_fits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(1536 << 20), "1.50 GiB");
        assert_eq!(bytes((1 << 20) - 1), "1.00 MiB", "rounding carries over");
        assert_eq!(bytes(u64::MAX - 1), "16.00 EiB");
        assert_eq!(bytes(u64::MAX), "unlimited");
    }

    #[test]
    fn times_take_the_unit_that_fits() {
        assert_eq!(time(Duration::from_nanos(999)), "999 ns");
        assert_eq!(time(Duration::from_nanos(1500)), "1.50 us");
        assert_eq!(time(Duration::from_micros(4200)), "4.20 ms");
        assert_eq!(time(Duration::from_millis(1250)), "1.25 s");
        assert_eq!(time(Duration::from_secs(3725)), "1h02m05s");
    }

    #[test]
    fn a_share_of_nothing_is_not_a_number() {
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(0, 0), "-");
    }
}
