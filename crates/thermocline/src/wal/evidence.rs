//! What a segment says about the durability of what comes before it.

use super::record::Group;
use crate::ids::FileId;
use crate::log_format::{Found, Records};

/// What the valid records of a segment say about durability.
pub(super) struct Evidence {
    pub(super) older_durable: bool,
    pub(super) durable_len: u64,
}

/// What the valid records of segment `number` say, including those after damage.
pub(super) fn evidence(number: FileId, bytes: &[u8]) -> Evidence {
    let mut evidence = Evidence {
        older_durable: false,
        durable_len: 0,
    };
    let mut records = Records::new(number, bytes);
    loop {
        match records.next() {
            Found::Record { payload, .. } => {
                if let Some(group) = bytes.get(payload).and_then(Group::decode) {
                    evidence.older_durable |= group.header.older_durable;
                    evidence.durable_len = evidence.durable_len.max(group.header.durable_len);
                }
            }
            Found::Damaged { .. } => {}
            Found::End | Found::Torn { .. } => return evidence,
        }
    }
}
