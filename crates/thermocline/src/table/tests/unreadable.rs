//! Damage and unreadable sectors cost only the records that they concern.

use super::*;

/// Reads of one partition's keys must fail with an error that `is_expected` accepts; all others
/// must find their record.
fn reads_of_its_partition_fail(table: &Table, rows: &[Row], is_expected: impl Fn(&Error) -> bool) {
    let (mut found, mut refused) = (0, 0);
    for row in rows.iter().step_by(37) {
        match get(table, &row.0, MAX_SEQ) {
            Ok(read) => {
                assert_eq!(read.as_ref(), Some(row));
                found += 1;
            }
            Err(error) if is_expected(&error) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0 && found > 2 * refused, "{found}, {refused}");
}

/// Filters and indexes that may be held in memory are read all at once. If one of them was damaged,
/// nothing of the table could be read. That included compactions, which use no filters, and would
/// have made a table of the same records without the damage. If the table was in L0, that stopped
/// the store's writers.
#[test]
fn a_damaged_filter_costs_the_reads_of_its_partition() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(512), 0, u64::MAX);
    let meta = fixture.write(1, &rows);
    let partition = fixture.open(&meta).unwrap().top.get(2).unwrap().filter;
    let filter = partition.unwrap().offset;
    let mut bytes = fixture.store.content(&meta.file_name());
    bytes[filter as usize + 3] ^= 1;
    fixture.store.put(&meta.file_name(), bytes);

    let table = fixture.open(&meta).unwrap();
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
    reads_of_its_partition_fail(&table, &rows, |error| match error {
        Error::Corruption { offset, .. } => *offset == filter,
        _ => false,
    });
    assert!(table.load().is_err() && table.verify().is_err());
}

/// Filters and indexes are read all at once. If one of them was damaged, only those failed who
/// needed it. But if a sector could not be read, the error does not say damage, and every read of
/// the table failed, also those of compactions. When each was then read by itself, the table kept
/// the room for all of them: other tables found no room, and the metrics reported memory that held
/// nothing.
#[test]
fn an_unreadable_filter_costs_the_reads_of_its_partition() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(512), 0, u64::MAX);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let filter = table.top.get(2).unwrap().filter.unwrap();
    fixture.store.fail_at(filter.offset + 3);
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
    reads_of_its_partition_fail(&table, &rows, |error| matches!(error, Error::Io { .. }));
    assert_eq!(fixture.pins.taken(), table.top.memory());
    assert!(table.load().is_err());
    assert_eq!(fixture.pins.taken(), table.top.memory());
}

/// The end of the file is read at once; for a small table, that includes filters and index. If one
/// sector of it could not be read, the table could not be opened, and neither could the store.
#[test]
fn an_unreadable_filter_beside_the_footer_keeps_no_table_from_opening() {
    let rows = simple(100, 100);
    let fixture = Fixture::new(options(512), 0, u64::MAX);
    let meta = fixture.write(1, &rows);
    let partition = fixture.open(&meta).unwrap().top.get(0).unwrap().filter;
    fixture.store.fail_at(partition.unwrap().offset);
    let table = fixture.open(&meta).unwrap();
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
    let read = get(&table, &rows[0].0, MAX_SEQ);
    assert!(matches!(read, Err(Error::Io { .. })), "{read:?}");
}
