//! The corpora as tests on stable, with mutations of them.

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::store::{DATABASE, TestTiers, corpus_dir, first_edit};
use super::{NUMBER, TARGETS, sealed, table_meta};
use crate::ids::table_file_name;
use crate::key::{InternalKey, Kind};
use crate::log_format::FileKind;
use crate::metrics::Purpose;
use crate::table::{TableBuilder, TableIdentity};
use crate::version::edit::{PlacedBy, VersionEdit};
use crate::version::identity;
use crate::wal::FoundLog;
use crate::{Batch, Compression};

/// Mutations of each target's whole corpus.
const MUTATIONS: u32 = 1500;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    thermocline_corpus::read(&corpus_dir(target))
}

fn run(target: &str, mutations: u32) {
    let (_, entry) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    thermocline_corpus::run(&corpus_dir(target), mutations, entry);
}

macro_rules! corpora {
    ($($target:ident: $mutations:expr,)*) => {
        $(#[test] fn $target() { run(stringify!($target), $mutations); })*

        #[test]
        fn every_target_runs_here_and_has_a_file_in_fuzz() {
            let names = [$(stringify!($target)),*];
            assert!(TARGETS.iter().map(|(name, _)| *name).eq(names));
            for name in names {
                let path = corpus_dir("../fuzz_targets").join(format!("{name}.rs"));
                let text = std::fs::read_to_string(path).unwrap();
                assert!(text.contains(&format!("fuzzing::{name}(")), "{name}");
            }
        }
    };
}

corpora! {
    batch_ops: MUTATIONS,
    manifest: MUTATIONS,
    manifest_edits: MUTATIONS,
    operations: 60,
    options: 150,
    ralt_records: 150,
    ralt_state: 100,
    table: MUTATIONS,
    table_block: MUTATIONS,
    tier_identity: MUTATIONS,
    wal_groups: MUTATIONS,
    wal_segment: MUTATIONS,
}

/// A corpus that is refused at the door would make all this worthless.
#[test]
fn what_is_intact_in_the_corpora_is_accepted() {
    let first = |target: &str| corpus(target).swap_remove(0);
    super::open_with_manifest(&first("manifest")).unwrap();
    super::open_with_manifest(&sealed(FileKind::Manifest, &first("manifest_edits"))).unwrap();
    super::open_with_segment(&first("wal_segment")).unwrap();
    super::open_with_segment(&sealed(FileKind::Wal, &first("wal_groups"))).unwrap();
    let bytes = first("table");
    let tiers = TestTiers::new();
    tiers.put_table(&table_file_name(NUMBER), &bytes);
    super::open_table(&tiers, bytes.len()).unwrap();
    let refused =
        crate::placement::ralt::fuzz::refused(&first("ralt_state"), &first("ralt_records"));
    assert_eq!(refused, [None, None]);
}

/// Intact inputs of every target. Run by hand to write them anew after a change of format:
/// `cargo test -p thermocline --lib write_the_corpora -- --ignored`.
#[test]
#[ignore = "writes into the source tree"]
fn write_the_corpora() {
    for (target, number, bytes) in intact() {
        let dir = corpus_dir(target);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("intact-{number}")), bytes).unwrap();
    }
    assert!(TARGETS.iter().all(|(target, _)| corpus(target).len() >= 2));
}

fn intact() -> Vec<(&'static str, usize, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |target, inputs: Vec<Vec<u8>>| {
        let numbered = inputs.into_iter().enumerate();
        all.extend(numbered.map(|(number, bytes)| (target, number, bytes)));
    };
    let batches: Vec<Vec<u8>> = [1, 40].map(|n| batch(n).to_vec()).into();
    add("batch_ops", batches);
    let groups: Vec<Vec<u8>> = [vec![batch(2)], vec![batch(3), batch(1)]]
        .iter()
        .map(|b| group(b))
        .collect();
    add(
        "wal_groups",
        vec![groups[0].clone(), groups.join(&[0xee; 4][..])],
    );
    let segments = groups.iter().map(|g| sealed(FileKind::Wal, g)).collect();
    add("wal_segment", segments);
    let edits = edits();
    add(
        "manifest_edits",
        vec![
            edits[0].clone(),
            edits.join(&[0xee; 4][..]),
            largest_numbers(),
        ],
    );
    let manifests = [edits[0].clone(), edits.join(&[0xee; 4][..])];
    add(
        "manifest",
        manifests
            .iter()
            .map(|e| sealed(FileKind::Manifest, e))
            .collect(),
    );
    let [plain, packed] =
        [(20, Compression::None), (300, Compression::Lz4)].map(|(n, c)| sample_table(n, c));
    // A block's payload stands at the start of an uncompressed table.
    add(
        "table_block",
        vec![
            plain[..300].to_vec(),
            plain[plain.len() - 300..].to_vec(),
            Vec::new(),
        ],
    );
    add("table", vec![plain, packed]);
    let tiers = TestTiers::new();
    identity::write(tiers.fast(), DATABASE).unwrap();
    let identity = tiers.fast().tables.open(identity::NAME).unwrap();
    let len = identity.len() as usize;
    add(
        "tier_identity",
        vec![identity.read(0, len).unwrap().to_vec(), Vec::new()],
    );
    let mut rng = SmallRng::seed_from_u64(5);
    let mut script = vec![0; 1200];
    rng.fill(&mut script[..]);
    add("operations", vec![script[..90].to_vec(), script]);
    // Without a byte everything is as in most tests.
    let mut settings = vec![0; 120];
    rng.fill(&mut settings[..]);
    add("options", vec![vec![0], settings]);
    let records = crate::placement::ralt::fuzz::intact_records();
    add(
        "ralt_records",
        vec![records.clone(), records[..60].to_vec()],
    );
    let state = crate::placement::ralt::fuzz::intact_state();
    let largest = crate::placement::ralt::fuzz::largest_state();
    let edits = crate::placement::ralt::fuzz::intact_edits();
    add(
        "ralt_state",
        vec![state.clone(), state[..100].to_vec(), largest, edits],
    );
    all
}

fn batch(writes: u32) -> Bytes {
    let mut batch = Batch::new();
    for n in 0..writes {
        match n % 4 {
            3 => batch.delete(format!("key{n}")),
            _ => batch.put(format!("key{n}"), n.to_le_bytes().repeat(n as usize)),
        }
    }
    batch.into_bytes()
}

/// A commit group as the log holds it, from sequence number 1 on.
fn group(batches: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::wal::encode_group(1, batches, &mut out);
    out
}

fn edits() -> [Vec<u8>; 2] {
    let full = VersionEdit {
        added: vec![table_meta(4000)],
        removed: vec![(0, 9)],
        dropped: vec![7],
        last_seq: Some(99),
        log_floor: Some(5),
        placed_by: Some(PlacedBy::Hotness),
        snapshot: Some(1),
        found_log: Some(FoundLog {
            segments: vec![(1, 500)],
            next: 3,
            reaches: Some(7),
        }),
        ..first_edit()
    };
    [first_edit(), full].map(|edit| {
        let mut out = Vec::new();
        edit.encode(&mut out);
        out
    })
}

/// Edits that are well formed, with the largest numbers that fit.
fn largest_numbers() -> Vec<u8> {
    let mut table = table_meta(u64::MAX);
    (table.id, table.epoch, table.max_seq, table.tier) = (u64::MAX, u64::MAX, u64::MAX, u8::MAX);
    let edits = [
        first_edit(),
        VersionEdit {
            added: vec![table],
            ..VersionEdit::default()
        },
        VersionEdit {
            next_file: Some(u64::MAX),
            last_seq: Some(u64::MAX),
            log_floor: Some(u64::MAX),
            flushed_through: vec![(0, u64::MAX)],
            ..VersionEdit::default()
        },
    ];
    let encoded = edits.map(|edit| {
        let mut out = Vec::new();
        edit.encode(&mut out);
        out
    });
    encoded.join(&[0xee; 4][..])
}

fn sample_table(records: u32, compression: Compression) -> Vec<u8> {
    let tiers = TestTiers::new();
    let mut options = tiers.fast().options.clone();
    options.compression = compression;
    let tables = std::sync::Arc::clone(&tiers.fast().tables);
    let tier = std::sync::Arc::new(crate::tier::Tier::new(0, options, tables, None));
    let identity = TableIdentity {
        database: DATABASE,
        keyspace: 0,
        id: NUMBER,
        level: 1,
        tier: 0,
        epoch: 1,
        replaces: vec![1],
        gone: vec![7],
        keyspace_name: Bytes::new(),
    };
    let mut builder = TableBuilder::new(&tier, identity, 4096, Purpose::Flush).unwrap();
    for n in 0..records {
        let key = format!("key{n:05}");
        let kind = if n % 7 == 6 { Kind::Delete } else { Kind::Put };
        let key = InternalKey::new(key.as_bytes(), u64::from(n) + 1, kind);
        builder.add(key, &n.to_le_bytes()).unwrap();
    }
    let meta = builder.finish().unwrap();
    let file = tiers.fast().tables.open(&table_file_name(NUMBER)).unwrap();
    file.read(0, meta.len as usize).unwrap().to_vec()
}
