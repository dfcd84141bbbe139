//! Units of values, and numbers in words.

/// What values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Operations per second.
    PerSecond,
    /// A share of one.
    Share,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// Bytes per operation.
    BytesPerOp,
    /// Bytes per second.
    BytesPerSecond,
    /// Microseconds of processor time per operation.
    CpuPerOp,
    /// Dollars.
    Dollars,
}

impl Unit {
    /// A value as tables and labels show it.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::PerSecond => thousands(value),
            Unit::Share => format!("{:.1} %", value * 100.0),
            Unit::Micros | Unit::CpuPerOp => time(value, 3),
            Unit::Bytes | Unit::BytesPerOp => bytes(value, 3),
            Unit::BytesPerSecond => format!("{}/s", bytes(value, 3)),
            Unit::Dollars => format!("${value:.3}"),
        }
    }

    /// A value beside an axis, as short as it can be.
    pub(super) fn tick(self, value: f64) -> String {
        match self {
            Unit::PerSecond => match value {
                v if v >= 1e6 => format!("{}M", plain(v / 1e6)),
                v if v >= 1e3 => format!("{}k", plain(v / 1e3)),
                v => plain(v),
            },
            Unit::Share => format!("{} %", plain(value * 100.0)),
            Unit::Micros | Unit::CpuPerOp => time(value, 0),
            Unit::Bytes | Unit::BytesPerOp => bytes(value, 0),
            Unit::BytesPerSecond => format!("{}/s", bytes(value, 0)),
            Unit::Dollars => format!("${}", plain(value)),
        }
    }
}

/// A whole number in groups of three digits. A number below ten has a decimal.
pub(crate) fn thousands(value: f64) -> String {
    if value.abs() < 10.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        text.insert(0, '-');
    }
    text
}

/// With as few decimals as are needed: ticks are round.
fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// With `digits` significant digits; 0 for a round number.
fn significant(value: f64, digits: i32) -> String {
    if digits == 0 {
        return plain(value);
    }
    let before = value.abs().max(1.0).log10().floor() as i32 + 1;
    let decimals = (digits - before).max(0) as usize;
    format!("{value:.decimals$}")
}

fn time(micros: f64, digits: i32) -> String {
    if micros >= 1e6 {
        format!("{} s", significant(micros / 1e6, digits))
    } else if micros >= 1e3 {
        format!("{} ms", significant(micros / 1e3, digits))
    } else {
        format!("{} µs", significant(micros, digits))
    }
}

fn bytes(value: f64, digits: i32) -> String {
    for (unit, size) in [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
        if value >= size {
            return format!("{} {unit}", significant(value / size, digits));
        }
    }
    // With few bytes an operation, fractions count: rounded ticks would all be the same.
    let value = if value < 10.0 { value } else { value.round() };
    format!("{} B", plain(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_their_unit() {
        for (unit, value, text) in [
            (Unit::PerSecond, 1_234_567.4, "1,234,567"),
            (Unit::PerSecond, 999.6, "1,000"),
            (Unit::PerSecond, 2.5, "2.5"),
            (Unit::Share, 0.954, "95.4 %"),
            (Unit::Micros, 351.26, "351 µs"),
            (Unit::Micros, 12_345.0, "12.3 ms"),
            (Unit::Micros, 2.0e6, "2.00 s"),
            (Unit::Bytes, 1.1264e10, "11.3 GB"),
            (Unit::Bytes, 12.4, "12 B"),
            (Unit::Bytes, 7.0, "7 B"),
            (Unit::BytesPerOp, 0.4, "0.4 B"),
            (Unit::BytesPerSecond, 5e8, "500 MB/s"),
            (Unit::Dollars, 0.0451, "$0.045"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }

    #[test]
    fn ticks_are_short() {
        for (unit, value, text) in [
            (Unit::PerSecond, 20_000.0, "20k"),
            (Unit::PerSecond, 2_500.0, "2.5k"),
            (Unit::PerSecond, 0.0, "0"),
            (Unit::Share, 0.2, "20 %"),
            (Unit::Micros, 2_000.0, "2 ms"),
            (Unit::Bytes, 5e8, "500 MB"),
            (Unit::Dollars, 0.2, "$0.2"),
            (Unit::BytesPerOp, 0.2, "0.2 B"),
            (Unit::BytesPerOp, 1.5, "1.5 B"),
        ] {
            assert_eq!(unit.tick(value), text);
        }
    }
}
