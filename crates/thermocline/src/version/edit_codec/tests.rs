use proptest::prelude::*;

use super::*;

fn keyspaces() -> impl Strategy<Value = KeyspaceMeta> {
    any::<(u32, Vec<u8>, u8)>().prop_map(|(id, name, last_fast_level)| KeyspaceMeta {
        id,
        name: name.into(),
        last_fast_level,
    })
}

fn tables() -> impl Strategy<Value = TableMeta> {
    any::<(
        (u64, u32, u8, u8),
        [u64; 6],
        Vec<u8>,
        Vec<u8>,
        Option<[u64; 3]>,
        bool,
    )>()
    .prop_map(
        |((id, keyspace, level, tier), numbers, first, last, content, ingested)| TableMeta {
            id,
            keyspace,
            level,
            tier,
            epoch: numbers[0],
            len: numbers[1],
            entries: numbers[2],
            deletes: numbers[3],
            min_seq: numbers[4],
            max_seq: numbers[if ingested { 4 } else { 5 }],
            ingested,
            range: KeyRange {
                first: first.into(),
                last: last.into(),
            },
            content: content.map(|numbers| TableContent {
                raw_key_bytes: numbers[0],
                raw_value_bytes: numbers[1],
                data_bytes: numbers[2],
            }),
        },
    )
}

fn targets() -> impl Strategy<Value = SetTarget> {
    let target = prop_oneof![
        Just(Target::None),
        (0.0..1e9).prop_map(Target::Cost),
        any::<u64>().prop_map(|nanos| Target::Latency(Duration::from_nanos(nanos))),
        (0.0..=1.0).prop_map(Target::HitRate),
    ];
    (target, prop::collection::vec(0.0..1e9, 0..4))
        .prop_map(|(target, prices)| SetTarget { target, prices })
}

prop_compose! {
    fn edits()(
        created in prop::collection::vec(keyspaces(), 0..3),
        dropped: Vec<u32>,
        removed: Vec<(u32, u64)>,
        added in prop::collection::vec(tables(), 0..4),
        flushed_through: Vec<(u32, u64)>,
        next_file: Option<u64>,
        (last_seq, log_floor, log_start) in any::<(Option<u64>, Option<u64>, Option<u64>)>(),
        placed_by in prop::option::of(prop::sample::select(vec![
            PlacedBy::Level, PlacedBy::Hotness, PlacedBy::Tables,
        ])),
        snapshot: Option<u64>,
        heats in prop::collection::vec((any::<u64>(), 0.0..1e9_f32, 0.0..1e9_f32), 0..3),
        target in prop::option::of(targets()),
        found_log: Option<(u64, Vec<(u64, u64)>, Option<u64>)>,
        learned in prop::collection::vec((any::<u32>(), 0..=Learned::WHOLE, 0..=Learned::WHOLE), 0..3),
    ) -> VersionEdit {
        VersionEdit {
            created, dropped, removed, added, flushed_through, next_file, last_seq, log_floor,
            log_start, placed_by, target, snapshot,
            heats: heats.into_iter().map(|(id, rate, watched)| (id, Heat { rate, watched })).collect(),
            learned: learned.into_iter().map(|(id, cold, fresh)| (id, Learned { cold, fresh })).collect(),
            found_log: found_log.map(|(next, segments, reaches)| FoundLog {
                segments, next, reaches,
            }),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn edits_come_back(edit in edits()) {
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        prop_assert_eq!(VersionEdit::decode(&bytes), Ok(edit));
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>) {
        bytes.insert(0, ENCODING);
        if let Ok(edit) = VersionEdit::decode(&bytes) {
            prop_assert!(bytes.len() > 1 || edit == VersionEdit::default());
        }
    }
}

#[test]
fn fields_of_a_newer_release_are_refused() {
    for (bytes, found, supported) in [(&[ENCODING, 99, 0][..], 99, 19), (&[9], 9, 1)] {
        let problem = VersionEdit::decode(bytes).unwrap_err();
        assert_eq!(problem, BadEdit::Newer { found, supported });
    }
    // No release has written these, so the error cannot ask for a newer release.
    for bytes in [&[ENCODING, 0, 0][..], &[0]] {
        let problem = VersionEdit::decode(bytes).unwrap_err();
        assert!(matches!(problem, BadEdit::Damaged(_)), "{problem}");
    }
}

/// All records of an ingested table have one number, which is the least and the greatest.
#[test]
fn an_ingested_table_has_one_number() {
    let table = |greatest: u8| {
        let added = [7, 0, 6, 0, 1, 99, 1, 0, 5, greatest, 1, b'a', 1, b'a'];
        let mut bytes = vec![ENCODING, 4, added.len() as u8];
        bytes.extend(added);
        bytes.extend([19, 1, 7]);
        bytes
    };
    let edit = VersionEdit::decode(&table(5)).unwrap();
    assert_eq!(edit.added[0].assigned(), Some(5));
    let mut encoded = Vec::new();
    edit.encode(&mut encoded);
    assert_eq!(encoded, table(5));
    let problem = VersionEdit::decode(&table(6)).unwrap_err();
    assert!(matches!(problem, BadEdit::Damaged(_)), "{problem}");
}

/// The format (docs/format.md) specifies these bytes; that this build reads them back is not
/// enough.
#[test]
fn a_found_log_is_the_next_number_and_each_segment_with_its_length() {
    let encoded = |reaches| {
        let edit = VersionEdit {
            found_log: Some(FoundLog {
                segments: vec![(3, 72), (5, 300)],
                next: 9,
                reaches,
            }),
            ..VersionEdit::default()
        };
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        bytes
    };
    let whole = [ENCODING, 12, 6, 9, 3, 72, 5, 0xac, 0x02];
    assert_eq!(encoded(None), whole);
    assert_eq!(encoded(Some(300)), [&whole[..], &[13, 2, 0xac, 2]].concat());
    let half = [ENCODING, 12, 2, 9, 3];
    let problem = VersionEdit::decode(&half).unwrap_err().to_string();
    assert!(problem.contains("field 12"), "{problem}");
    let alone = [ENCODING, 13, 1, 5];
    let problem = VersionEdit::decode(&alone).unwrap_err().to_string();
    assert!(problem.contains("field 13"), "{problem}");
}

/// The format (docs/format.md) specifies these bytes; that this build reads them back is not
/// enough.
#[test]
fn placement_is_one_byte_and_a_placement_nobody_knows_is_refused() {
    for (byte, placed_by) in [(0, PlacedBy::Level), (1, PlacedBy::Hotness)] {
        let edit = VersionEdit {
            placed_by: Some(placed_by),
            ..VersionEdit::default()
        };
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        assert_eq!(bytes, [ENCODING, 10, 1, byte]);
    }
    let edit = VersionEdit {
        placed_by: Some(PlacedBy::Tables),
        ..VersionEdit::default()
    };
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    assert_eq!(bytes, [ENCODING, 16, 0]);
    for body in [&[2][..], &[], &[1, 0]] {
        let field = [&[ENCODING, 10, body.len() as u8], body].concat();
        let problem = VersionEdit::decode(&field).unwrap_err().to_string();
        assert!(problem.contains("field 10"), "{problem}");
    }
}

/// The format (docs/format.md) specifies these bytes; that this build reads them back is not
/// enough.
#[test]
fn a_target_is_its_kind_its_number_and_the_prices() {
    let set = SetTarget {
        target: Target::Cost(0.5),
        prices: vec![2.0],
    };
    let edit = VersionEdit {
        target: Some(set),
        heats: vec![(
            300,
            Heat {
                rate: 1.0,
                watched: 2.0,
            },
        )],
        ..VersionEdit::default()
    };
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    let heat = [17, 10, 0xac, 2, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40];
    let target = [
        18, 17, 1, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40,
    ];
    assert_eq!(bytes, [&[ENCODING][..], &heat, &target].concat());
}

#[test]
fn targets_and_heats_that_cannot_be_are_refused() {
    let number = |kind: u8, number: f64| [&[kind][..], &number.to_bits().to_le_bytes()].concat();
    let heat = |rate: f32| [&[7][..], &rate.to_le_bytes(), &1.0_f32.to_le_bytes()].concat();
    let refused = [
        (TARGET, number(OF_COST, f64::NAN)),
        (TARGET, number(OF_COST, -1.0)),
        (TARGET, number(OF_HIT_RATE, 1.5)),
        (TARGET, number(NO_TARGET, 1.0)),
        (TARGET, number(4, 0.0)),
        (TARGET, [number(OF_COST, 1.0), vec![0]].concat()),
        (HEAT, heat(f32::INFINITY)),
        (HEAT, heat(-1.0)),
    ];
    for (tag, body) in refused {
        let field = [&[ENCODING, tag as u8, body.len() as u8][..], &body].concat();
        let problem = VersionEdit::decode(&field);
        assert!(matches!(problem, Err(BadEdit::Damaged(_))), "{problem:?}");
    }
}
