use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: SizingArgs,
}

const PRICES: &str = "--price-fast 0.5 --price-slow 0.1";

fn parse(flags: &str) -> Result<SizingArgs, String> {
    let words = std::iter::once("plan").chain(flags.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    Ok(cli.args)
}

fn tell(flags: &str) -> Sizing {
    sizing(&parse(&format!("{flags} {PRICES}")).unwrap()).unwrap()
}

/// 5 % of the records get 95 % of the reads. Beside them, that much of the fast disk holds little.
#[test]
fn a_description_has_the_price_of_its_hot_set() {
    let sizing = tell(
        "--keys 100000000 --value-size 976 --distribution hotspot-5 --reads 1000 --latency 1ms",
    );
    assert_eq!(sizing.data_bytes, 1e11);
    assert!(sizing.by_tables.is_empty());
    assert_eq!(sizing.by_records.len(), 10);
    let cheapest = sizing.wanted.unwrap().cheapest.unwrap();
    // 1 ms is 10/11 of the reads in 0.1 ms: 90.9 of 95 percent of the hot set, less what copies
    // hold. The hot set has 5 GB, so it is a price of some 5 · 0.909 / 0.95 · 1.2 GB, and the log.
    assert_eq!(cheapest.placement, Layout::Records);
    assert!((cheapest.hit_rate - 0.90909).abs() < 1e-4, "{cheapest:?}");
    assert!((cheapest.slow_reads_per_second.unwrap() - 90.9).abs() < 0.1);
    let gigabytes = cheapest.fast_bytes / 1e9;
    assert!((5.5..7.5).contains(&gigabytes), "{gigabytes}");
    let dollars = 0.1 * 120.0 + 0.5 * gigabytes;
    assert!(
        (cheapest.dollars_per_month - dollars).abs() < 1e-6,
        "{cheapest:?}"
    );
}

/// Nothing is hot, so each part of the fast disk answers no more than its part of the reads.
#[test]
fn uniform_reads_are_worth_their_bytes_only() {
    let sizing = tell("--keys 100000000 --value-size 976 --distribution uniform");
    for point in &sizing.by_records[..9] {
        let part = point.fast_bytes / sizing.data_bytes;
        assert!(
            point.hit_rate <= part && point.hit_rate > part * 0.5 - 0.01,
            "{point:?}"
        );
    }
}

#[test]
fn a_time_that_no_disk_has_is_told_with_the_best() {
    let sizing = tell("--keys 100000000 --value-size 976 --distribution uniform --latency 50us");
    let text = sizing.to_string();
    assert!(
        text.contains("None has a mean read of 50.00 us. The best is 100 us"),
        "{text}"
    );
    let one_disk = tell("--keys 100000000 --value-size 976 --distribution uniform --latency 100us");
    let text = one_disk.to_string();
    assert!(
        text.contains(
            "0.5000 $/GB/month, 50.00 $ a month:\n  all on the fast disk, and no slow one"
        ),
        "{text}"
    );
}

fn trace(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

/// The first thousand of 100,000 keys are read ten times, all others once.
#[test]
fn a_trace_of_numbers_is_told_by_record_and_by_table() {
    let keys = (0..100_000u32).chain((0..9000).map(|access| access % 1000));
    let bytes: Vec<u8> = keys.flat_map(u32::to_le_bytes).collect();
    let file = trace(&bytes);
    let flags = format!(
        "--trace {} --format cache2k --value-size 976 --latency 9ms",
        file.path().display()
    );
    let sizing = tell(&flags);
    assert_eq!(sizing.data_bytes, 1e8);
    assert_eq!((sizing.by_records.len(), sizing.by_tables.len()), (10, 10));
    let tables = &sizing.by_tables;
    assert!(
        tables.is_sorted_by(|a, b| a.hit_rate <= b.hit_rate),
        "{tables:?}"
    );
    // The hot keys are neighbours: their tables are a hundredth of the data and get 10,000 of the
    // 109,000 reads. And a table is paid once.
    let cheapest = sizing.wanted.unwrap().cheapest.unwrap();
    assert_eq!(cheapest.placement, Layout::Tables);
    // The same reads of a hundred times as many data.
    let scaled = tell(&format!("{flags} --data-size 10GB"));
    assert_eq!(scaled.data_bytes, 1e10);
}

#[test]
fn a_trace_of_text_keys_is_told_by_record() {
    let file = trace("0,a,1,976,1,get,0\n1,a,1,976,1,get,0\n2,b,1,976,1,set,9\n".as_bytes());
    let flags = format!(
        "--trace {} --format twitter --data-size 1GB",
        file.path().display()
    );
    let sizing = tell(&flags);
    assert!(sizing.by_tables.is_empty());
    // One record of two gets all reads: 0.5 GB. 0.427 dollars pay for 0.614 GB of the fast disk:
    // a fourteenth is for log and new tables, a twelfth of the rest for access records, and a
    // twelfth on top of hot records.
    let dear = sizing.by_records[8];
    assert!((0.61e9..0.62e9).contains(&dear.fast_bytes), "{dear:?}");
    assert!((0.9..0.99).contains(&dear.hit_rate), "{dear:?}");
    assert!(sizing.to_string().contains("hashes"));
}

#[test]
fn bad_input_is_refused_with_what_to_do() {
    let described = "--keys 1000000 --value-size 100 --distribution uniform";
    for (flags, says) in [
        ("--price-fast 0.5 --price-slow 0.1", "--curve"),
        (
            "--keys 10 --value-size 10 --price-fast 0.5 --price-slow 0.1",
            "--distribution",
        ),
        (&*format!("{described} --price-fast 0.5"), "--price-slow"),
        (
            &*format!("{described} --price-fast nan --price-slow 0.1"),
            "above 0",
        ),
        (
            &*format!("{described} --price-fast=-1 --price-slow 0.1"),
            "above 0",
        ),
        (&*format!("{described} {PRICES} --latency 0s"), "above 0"),
        (&*format!("{described} {PRICES} --latency=-1ms"), "above 0"),
        (&*format!("{described} {PRICES} --reads 0"), "--reads"),
        (
            &*format!("{described} {PRICES} --data-size 1GB"),
            "--data-size",
        ),
        (
            &*format!("{described} {PRICES} --trace x --format twitter"),
            "cannot be used",
        ),
        (
            &*format!("--keys 0 --value-size 9 --distribution uniform {PRICES}"),
            "--keys",
        ),
        (
            &*format!("--keys 9 --value-size 0 --distribution uniform {PRICES}"),
            "more than 0",
        ),
        (
            &*format!("--keys 9 --value-size 9 --distribution normal {PRICES}"),
            "hotspot-N",
        ),
        (&*format!("--curve x {PRICES}"), "cannot be used"),
    ] {
        let error = parse(flags).unwrap_err();
        assert!(error.contains(says), "{flags}: {error}");
    }
    let empty = trace(b"");
    let writes = trace(b"0,a,1,76,1,set,0\n");
    for (flags, says) in [
        (
            format!("{described} --price-fast 0.5 --price-slow 0.5"),
            "has to be dearer",
        ),
        (
            format!("{described} --price-fast 0.1 --price-slow 0.5"),
            "has to be dearer",
        ),
        (
            format!("{described} {PRICES} --latency-slow 10us"),
            "answer sooner",
        ),
        (
            format!("--keys 10 --value-size 9 --distribution uniform {PRICES}"),
            "nothing to gain",
        ),
        (
            format!("--keys 10 --value-size 9 --distribution cluster:17 {PRICES}"),
            "its hot set moves",
        ),
        (
            format!("--trace /no/such --format cache2k {PRICES}"),
            "/no/such",
        ),
        (
            format!(
                "--trace {} --format cache2k {PRICES}",
                empty.path().display()
            ),
            "no accesses",
        ),
        (
            format!(
                "--trace {} --format twitter {PRICES}",
                writes.path().display()
            ),
            "no reads in it",
        ),
        ("--curve /no/such".to_owned(), "/no/such"),
    ] {
        let error = sizing(&parse(&flags).unwrap()).unwrap_err();
        assert!(error.is::<BadArguments>(), "{flags}");
        assert!(error.to_string().contains(says), "{flags}: {error}");
    }
}
