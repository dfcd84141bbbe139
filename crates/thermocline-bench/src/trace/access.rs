//! What one line or record of a trace says.

use anyhow::{Result, bail};

/// What an access does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Reads the record.
    Read,
    /// Writes the record, whether or not there is one.
    Write,
    /// Deletes the record.
    Delete,
}

/// What one line or record of a trace says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    /// The key, or a hash of it.
    pub(super) key: u64,
    pub(super) action: Action,
    /// What the trace calls the action.
    pub(super) operation: &'static str,
    /// Length of the key in the trace.
    pub(super) key_len: Option<u32>,
    /// Length of the value, if the trace knows it.
    pub(super) value_len: Option<u32>,
    /// How often the access is made in a row.
    pub(super) repeats: u32,
}

impl Access {
    /// One read of a key whose sizes the trace does not tell.
    pub(super) fn read(key: u64) -> Self {
        Self {
            key,
            action: Action::Read,
            operation: "read",
            key_len: None,
            value_len: None,
            repeats: 1,
        }
    }
}

/// A format's operations and what they do.
pub(super) type Operations = [(&'static str, Action)];

/// Finds an operation by its name.
pub(super) fn operation(known: &Operations, name: &[u8]) -> Result<(&'static str, Action)> {
    if let Some(found) = known.iter().find(|(known, _)| known.as_bytes() == name) {
        return Ok(*found);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    bail!(
        "`{}` is no operation; there are {}",
        shown(name),
        names.join(", ")
    )
}

/// A whole number in a text field.
pub(super) fn number(field: &[u8], what: &str) -> Result<u32> {
    match std::str::from_utf8(field).ok().map(str::parse) {
        Some(Ok(number)) => Ok(number),
        _ => bail!(
            "the {what} is `{}`, not a whole number below {}",
            shown(field),
            1u64 << 32
        ),
    }
}

/// A field for a message: not too long, and text.
pub(super) fn shown(field: &[u8]) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(field.get(..MOST).unwrap_or(field)).into_owned();
    if field.len() > MOST {
        text + "…"
    } else {
        text
    }
}
