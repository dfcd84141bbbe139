//! Keys of 24 bytes, as in the HotRAP paper, and the shuffles that scatter record numbers.

use std::sync::Arc;

/// Length of every key in bytes.
pub(crate) const KEY_LEN: usize = 24;

/// A key.
pub(crate) type Key = [u8; KEY_LEN];

/// How a record's number becomes its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySpace {
    /// "user" and 20 digits of the scrambled number, as YCSB does. Neighbouring numbers lie far
    /// apart in key order.
    Ycsb,
    /// The key of a trace under one of many prefixes, hexadecimal: 8 digits of the copy, 16 of the
    /// key. Numbers that are close in the trace stay close.
    Trace {
        /// The trace's distinct keys.
        keys: Arc<[u64]>,
    },
}

impl KeySpace {
    /// The key of record `id`.
    pub(crate) fn key(&self, id: u64) -> Key {
        let mut key = [b'0'; KEY_LEN];
        match self {
            KeySpace::Ycsb => {
                key[..4].copy_from_slice(b"user");
                digits(&mut key[4..], scramble(id));
            }
            KeySpace::Trace { keys } => {
                let distinct = keys.len().max(1) as u64;
                let number = keys.get((id % distinct) as usize).copied().unwrap_or(0);
                hex_digits(&mut key[..8], id / distinct);
                hex_digits(&mut key[8..], number);
            }
        }
        key
    }

    /// The greatest key among records `0..records`: a scan that ends early must have reached it.
    pub(crate) fn last_key(&self, records: u64) -> Option<Key> {
        (0..records).map(|id| self.key(id)).max()
    }
}

fn digits(out: &mut [u8], mut number: u64) {
    for place in out.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn hex_digits(out: &mut [u8], mut number: u64) {
    for place in out.iter_mut().rev() {
        *place = b"0123456789abcdef"[(number % 16) as usize];
        number /= 16;
    }
}

/// A bijection on 64-bit numbers, so distinct records have distinct keys.
pub(crate) fn scramble(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// A shuffle of `0..len` that needs no memory: a Feistel network over the next power of
/// four, walked until it falls inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permutation {
    len: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The shuffle of `0..len` that follows from `seed`.
    pub(crate) fn new(len: u64, seed: u64) -> Self {
        let bits = 64 - len.saturating_sub(1).leading_zeros();
        Self {
            len,
            half_bits: bits.div_ceil(2).max(1),
            seed,
        }
    }

    /// Where `index`, which must be below the length, goes.
    pub(crate) fn get(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mut x = index;
        loop {
            x = self.encrypt(x);
            if x < self.len {
                return x;
            }
        }
    }

    fn encrypt(&self, x: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for round in 0..4 {
            let mixed = scramble(right ^ scramble(self.seed.wrapping_add(round)));
            (left, right) = (right, (left ^ mixed) & mask);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_permutation_is_a_bijection(len in 1u64..3000, seed: u64) {
            let permutation = Permutation::new(len, seed);
            let mut seen = vec![false; len as usize];
            for index in 0..len {
                let to = permutation.get(index) as usize;
                prop_assert!(!seen[to], "{to} was hit twice");
                seen[to] = true;
            }
        }
    }

    #[test]
    fn a_permutation_shuffles_and_follows_its_seed() {
        let a: Vec<u64> = (0..1000)
            .map(|i| Permutation::new(1000, 1).get(i))
            .collect();
        let b: Vec<u64> = (0..1000)
            .map(|i| Permutation::new(1000, 2).get(i))
            .collect();
        assert_ne!(a, b);
        let ascents = a.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&ascents), "{ascents} ascents of 999");
    }

    #[test]
    fn ycsb_keys_are_distinct_and_scattered() {
        let mut keys: Vec<Key> = (0..10_000).map(|id| KeySpace::Ycsb.key(id)).collect();
        assert!(keys[0].starts_with(b"user0") || keys[0].starts_with(b"user1"));
        assert!(!keys.is_sorted());
        assert_eq!(KeySpace::Ycsb.last_key(10_000), keys.iter().max().copied());
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 10_000);
    }

    #[test]
    fn trace_keys_carry_copy_and_key() {
        let space = KeySpace::Trace {
            keys: Arc::new([7, u64::MAX - 1]),
        };
        assert_eq!(&space.key(0), b"000000000000000000000007");
        assert_eq!(&space.key(1), b"00000000fffffffffffffffe");
        assert_eq!(&space.key(5), b"00000002fffffffffffffffe");
    }
}
