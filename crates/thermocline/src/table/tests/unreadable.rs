//! Sectors that the device cannot read cost what lies on them.

use super::*;

/// Filters and indexes are read all at once. Damage of one of them was an error of those alone who needed it, but a sector that could
/// not be read, which is no damage by its error, was one of every read of the table, those of compactions included.
#[test]
fn an_unreadable_filter_costs_the_reads_of_its_partition() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(512), 0, u64::MAX);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let filter = table.top.get(2).unwrap().filter.unwrap();
    fixture.store.fail_at(filter.offset + 3);
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
    let (mut found, mut refused) = (0, 0);
    for row in rows.iter().step_by(37) {
        match get(&table, &row.0, MAX_SEQ) {
            Ok(read) => {
                assert_eq!(read.as_ref(), Some(row));
                found += 1;
            }
            Err(Error::Io { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0 && found > 2 * refused, "{found}, {refused}");
}

/// The end of the file is read at once, of a small table filters and index with it. Where one sector of that could not be
/// read, the table could not be opened, and with it the store.
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
