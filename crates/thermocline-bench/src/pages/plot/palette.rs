//! Colours. An engine or an activity has the same colour everywhere.
//!
//! The hues follow Okabe and Ito, so people who see red and green alike can tell them apart. They
//! are darkened on white and lightened on black until each has a contrast of about 3 to the ground.

/// What something is drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The ground.
    Ground,
    /// Words and whiskers.
    Text,
    /// Axes and what matters less.
    Muted,
    /// Lines of the grid.
    Grid,
    /// One of the colours of data.
    Series(usize),
}

/// A colour by its name in CSS, in light and in dark mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colour {
    /// The CSS variable.
    pub(crate) variable: &'static str,
    /// On a light ground. No two colours are the same.
    pub(crate) light: (u8, u8, u8),
    /// On a dark ground.
    pub(crate) dark: (u8, u8, u8),
}

const fn colour(variable: &'static str, light: u32, dark: u32) -> Colour {
    const fn rgb(hex: u32) -> (u8, u8, u8) {
        let [_, r, g, b] = hex.to_be_bytes();
        (r, g, b)
    }
    Colour {
        variable,
        light: rgb(light),
        dark: rgb(dark),
    }
}

/// Colours of the ground, of text, of what is muted, of the grid, then of data.
pub(crate) const PALETTE: [Colour; 12] = [
    colour("--ground", 0xfefefe, 0x14181d),
    colour("--text", 0x1b1f24, 0xe6e9ed),
    colour("--muted", 0x5c6570, 0x9aa4af),
    colour("--grid", 0xdde1e6, 0x333b45),
    colour("--blue", 0x0072b2, 0x4aa8e8),
    colour("--orange", 0xd07c00, 0xf0a93b),
    colour("--green", 0x008f68, 0x2fbf94),
    colour("--purple", 0xb5568f, 0xe29bc4),
    colour("--red", 0xc8420a, 0xf2794b),
    colour("--sky", 0x45a0d8, 0xa6d8f7),
    colour("--brown", 0x80662e, 0xc9ac6c),
    colour("--grey", 0x868e98, 0x7b8591),
];

const FIRST_OF_DATA: usize = 4;

impl Ink {
    /// This colour of data if it is not among `taken`, or else the next one that is not.
    pub(crate) fn unless(self, taken: &[Ink]) -> Ink {
        let Ink::Series(first) = self else {
            return self;
        };
        let all = PALETTE.len() - FIRST_OF_DATA;
        let mut free = (first..first + all).map(|series| Ink::Series(series % all));
        free.find(|ink| !taken.contains(ink)).unwrap_or(self)
    }

    /// Its colour.
    pub(super) fn colour(self) -> Colour {
        let at = match self {
            Ink::Ground => 0,
            Ink::Text => 1,
            Ink::Muted => 2,
            Ink::Grid => 3,
            Ink::Series(series) => FIRST_OF_DATA + series % (PALETTE.len() - FIRST_OF_DATA),
        };
        PALETTE[at]
    }
}

/// The colour of an engine. Engines that this version does not know are grey: their labels tell
/// them apart.
pub(crate) fn of_engine(name: &str) -> Ink {
    const ENGINES: [&str; 7] = [
        "hotrap",
        "leveled",
        "rocksdb",
        "rocksdb-fast-only",
        "flash-cache",
        "fast-only",
        "rocksdb-slow-only",
    ];
    // They have those of engines that are seldom beside them.
    let name = match name {
        "tables" => "leveled",
        "cost" => "rocksdb-fast-only",
        other => other,
    };
    Ink::Series(position(&ENGINES, name))
}

/// The colour of an activity of the engine.
pub(crate) fn of_activity(name: &str) -> Ink {
    // The seventh colour is for what an engine does not attribute.
    const ACTIVITIES: [&str; 7] = [
        "read",
        "compaction",
        "flush",
        "ralt",
        "promotion",
        "write",
        "background",
    ];
    // An engine that places tables has no threads that it says nothing of.
    let name = match name {
        "unattributed" | "placement" => "background",
        other => other,
    };
    Ink::Series(position(&ACTIVITIES, name))
}

fn position(of: &[&str], name: &str) -> usize {
    of.iter()
        .position(|known| *known == name)
        .unwrap_or(of.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_colours_are_the_same() {
        for (i, a) in PALETTE.iter().enumerate() {
            for b in &PALETTE[..i] {
                assert_ne!(a.light, b.light);
                assert_ne!(a.variable, b.variable);
            }
        }
    }

    #[test]
    fn data_is_seen_on_both_grounds() {
        let luminance = |(r, g, b): (u8, u8, u8)| {
            let linear = |part: u8| (f64::from(part) / 255.0).powf(2.2);
            0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
        };
        let contrast = |a, b| {
            let (a, b): (f64, f64) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        let ground = PALETTE[0];
        for ink in &PALETTE[FIRST_OF_DATA..] {
            assert!(contrast(ink.light, ground.light) > 2.7, "{ink:?}");
            assert!(contrast(ink.dark, ground.dark) > 2.7, "{ink:?}");
        }
        for words in &PALETTE[1..3] {
            assert!(contrast(words.light, ground.light) > 4.5, "{words:?}");
            assert!(contrast(words.dark, ground.dark) > 4.5, "{words:?}");
        }
    }

    #[test]
    fn a_second_line_of_an_engine_gets_a_free_colour() {
        let first = of_engine("hotrap");
        assert_eq!(first.unless(&[]), first);
        assert_eq!(first.unless(&[first, Ink::Series(1)]), Ink::Series(2));
        assert_eq!(Ink::Text.unless(&[Ink::Text]), Ink::Text);
    }

    #[test]
    fn engines_keep_their_colours_and_strangers_are_grey() {
        assert_eq!(of_engine("hotrap"), Ink::Series(0));
        assert_ne!(of_engine("hotrap"), of_engine("leveled"));
        assert_ne!(of_engine("tables"), of_engine("cost"));
        assert_eq!(of_engine("fjall").colour().variable, "--grey");
    }
}
