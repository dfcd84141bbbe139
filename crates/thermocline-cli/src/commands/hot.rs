//! `thermocline hot`.

use serde_json::{Value as Json, json};
use thermocline::metrics::{HeatPoint, HeatReport, RaltMetrics};

use crate::failure::Failure;
use crate::fields::field;
use crate::output::Out;
use crate::size;
use crate::store::StoreArgs;
use crate::text::Notation;

/// The most lines of the curve. A store may know it in more detail.
const CURVE_LINES: usize = 20;

/// Characters of the longest bar.
const BAR: usize = 30;

/// Print the hottest keys, and how much of the data is how hot
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline hot --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --limit 10
  thermocline hot --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --json | jq '.curve'

A score counts the time slices in which a record was read, old ones for less. Records that are
not tracked were never read, or so long ago that it was forgotten: they are cold.
All access records are read for this.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Print at most this many keys
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print JSON, with every point of the curve; sizes in bytes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = args.store.open_to_read()?;
    let heat = db.heat(args.limit);
    let Some(hotrap) = db.metrics().hotrap else {
        return Err(Failure::usage(nothing_tracked(&args.store)));
    };
    let heat = heat?;
    let mut out = Out::new();
    if args.json {
        out.pretty_json(&to_json(&heat, &hotrap.ralt))?;
    } else {
        out.raw(to_text(&heat, &hotrap.ralt).as_bytes())?;
    }
    out.finish()?;
    Ok(db.close()?)
}

fn nothing_tracked(store: &StoreArgs) -> String {
    if store.slow().is_empty() {
        return "a store of one tier does not track which records are hot: there is no other \
                tier to keep them from"
            .to_owned();
    }
    "nothing tracks which records of this store are hot: they live by level, as it was opened last"
        .to_owned()
}

/// How much is tracked: the coldest point holds all of it.
fn tracked(heat: &HeatReport) -> (u64, u64) {
    heat.curve
        .last()
        .map_or((0, 0), |point| (point.records, point.bytes))
}

/// `bytes` of all data in percent. What is tracked may not lie in a table yet, or not any more, so
/// this is at most 100.
fn percent(bytes: u64, heat: &HeatReport) -> f64 {
    (bytes as f64 * 100.0 / heat.data_bytes.max(1) as f64).min(100.0)
}

fn to_text(heat: &HeatReport, ralt: &RaltMetrics) -> String {
    let mut lines = shares(heat, ralt);
    lines.extend(curve(heat));
    lines.extend(keys(heat));
    lines.push(String::new());
    lines.join("\n")
}

fn shares(heat: &HeatReport, ralt: &RaltMetrics) -> Vec<String> {
    let (records, bytes) = tracked(heat);
    let cold = heat.data_bytes.saturating_sub(bytes);
    let hot = format!(
        "score of {:.3} or more; at most {}",
        ralt.hot_threshold,
        size::show(ralt.hot_set_limit_bytes)
    );
    let mut lines = vec![format!("{} of data", size::show(heat.data_bytes))];
    for (name, bytes, what) in [
        // This is an estimate: a key that lies in several tables may count more than once.
        ("hot", ralt.hot_set_bytes.min(bytes), hot),
        ("tracked", bytes, format!("{records} records, hot ones too")),
        ("cold", cold, "the rest".to_owned()),
    ] {
        lines.push(format!(
            "  {name:<8} {:>11} {:>5.1} %  {what}",
            size::show(bytes),
            percent(bytes, heat)
        ));
    }
    lines
}

fn curve(heat: &HeatReport) -> Vec<String> {
    let points = thinned(&heat.curve);
    if points.is_empty() {
        return Vec::new();
    }
    let (_, all) = tracked(heat);
    let mut lines = vec![
        "\nSize of all records of a score or more".to_owned(),
        format!(
            "  {:>10} {:>10} {:>11} {:>7}",
            "score", "records", "size", "of data"
        ),
    ];
    for point in points {
        let bar = (point.bytes as f64 / all.max(1) as f64 * BAR as f64).round() as usize;
        let line = format!(
            "  {:>10.3} {:>10} {:>11} {:>5.1} %  {}",
            point.score,
            point.records,
            size::show(point.bytes),
            percent(point.bytes, heat),
            "#".repeat(bar)
        );
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// At most [`CURVE_LINES`] points, evenly spread, the coldest among them.
fn thinned(curve: &[HeatPoint]) -> Vec<&HeatPoint> {
    let step = curve.len().div_ceil(CURVE_LINES).max(1);
    let mut points: Vec<&HeatPoint> = curve.iter().rev().step_by(step).collect();
    points.reverse();
    points
}

fn keys(heat: &HeatReport) -> Vec<String> {
    let keys = &heat.hottest;
    if keys.is_empty() {
        return match tracked(heat) {
            (0, _) => vec!["\nNo record is tracked".to_owned()],
            // No keys were asked for.
            _ => Vec::new(),
        };
    }
    let shown: Vec<String> = keys.iter().map(|k| Notation::Text.show(&k.key)).collect();
    let widest = |lens: &mut dyn Iterator<Item = usize>, title: usize| lens.fold(title, usize::max);
    let key_width = widest(&mut shown.iter().map(|key| key.chars().count()), 3);
    let name_width = widest(&mut keys.iter().map(|key| key.keyspace.chars().count()), 8);
    let mut lines = vec![
        "\nHottest keys".to_owned(),
        format!(
            "  {:<key_width$}  {:<name_width$}  {:>11}  {:>10}",
            "key", "keyspace", "value", "score"
        ),
    ];
    for (key, shown) in keys.iter().zip(&shown) {
        let state = match (key.is_hot, key.is_stable) {
            (true, true) => "hot",
            (true, false) => "hot, not read again lately",
            (false, _) => "not hot",
        };
        lines.push(format!(
            "  {shown:<key_width$}  {:<name_width$}  {:>11}  {:>10.3}  {state}",
            key.keyspace,
            size::show(key.value_len),
            key.score
        ));
    }
    lines
}

fn to_json(heat: &HeatReport, ralt: &RaltMetrics) -> Json {
    let (records, bytes) = tracked(heat);
    let keys = heat.hottest.iter().map(|key| {
        let (name, shown) = field("key", &key.key, Notation::Text);
        json!({
            "keyspace": key.keyspace,
            name: shown,
            "value_bytes": key.value_len,
            "score": key.score,
            "stable": key.is_stable,
            "hot": key.is_hot,
        })
    });
    let curve = heat
        .curve
        .iter()
        .map(|point| json!({"score": point.score, "records": point.records, "bytes": point.bytes}));
    json!({
        "data_bytes": heat.data_bytes,
        "hot_bytes": ralt.hot_set_bytes.min(bytes),
        "hot_limit_bytes": ralt.hot_set_limit_bytes,
        "hot_threshold": ralt.hot_threshold,
        "tracked_bytes": bytes,
        "tracked_records": records,
        "hottest": keys.collect::<Vec<_>>(),
        "curve": curve.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use thermocline::metrics::HotKey;

    use super::*;

    /// The default, but for what `fill` fills in: from outside their crate, metrics cannot be
    /// written down whole.
    fn made<T: Default>(fill: impl FnOnce(&mut T)) -> T {
        let mut made = T::default();
        fill(&mut made);
        made
    }

    fn point(records: u64) -> HeatPoint {
        made(|point: &mut HeatPoint| {
            point.score = 1.0 / records as f64;
            point.records = records;
            point.bytes = records * 10;
        })
    }

    #[test]
    fn a_fine_curve_is_thinned_and_keeps_its_end() {
        let curve: Vec<HeatPoint> = (1..=95).map(point).collect();
        let records: Vec<u64> = thinned(&curve).iter().map(|p| p.records).collect();
        assert_eq!((records.len(), records.last()), (19, Some(&95)));
        assert!(records.is_sorted());
        assert_eq!(thinned(&curve[..7]).len(), 7);
        assert!(thinned(&[]).is_empty());
    }

    /// Regression: whoever asked for the shares and no keys, with `--limit 0`, read that no record
    /// is tracked.
    #[test]
    fn the_text_says_what_is_hot_and_lines_up() {
        let key = |key: &str, score, is_hot, is_stable| {
            made(|hot: &mut HotKey| {
                hot.keyspace = "default".to_owned();
                hot.key = key.into();
                hot.value_len = 100;
                (hot.score, hot.is_stable, hot.is_hot) = (score, is_stable, is_hot);
            })
        };
        let mut heat = made(|heat: &mut HeatReport| {
            heat.hottest = vec![
                key("a\0long key", 12.5, true, true),
                key("b", 2.0, true, false),
                key("c", 0.5, false, true),
            ];
            heat.curve = vec![point(1), point(4)];
            heat.data_bytes = 400;
        });
        let ralt = made(|ralt: &mut RaltMetrics| {
            ralt.hot_set_bytes = 20;
            ralt.hot_set_limit_bytes = 1 << 20;
            ralt.hot_threshold = 1.25;
        });
        assert_eq!(
            to_text(&heat, &ralt),
            "\
400 B of data
  hot             20 B   5.0 %  score of 1.250 or more; at most 1.00 MiB
  tracked         40 B  10.0 %  4 records, hot ones too
  cold           360 B  90.0 %  the rest

Size of all records of a score or more
       score    records        size of data
       1.000          1        10 B   2.5 %  ########
       0.250          4        40 B  10.0 %  ##############################

Hottest keys
  key            keyspace        value       score
  a\\x00long key  default         100 B      12.500  hot
  b              default         100 B       2.000  hot, not read again lately
  c              default         100 B       0.500  not hot
"
        );
        let nothing = to_text(&HeatReport::default(), &RaltMetrics::default());
        assert!(nothing.ends_with("\nNo record is tracked\n"), "{nothing}");
        assert!(!nothing.contains("NaN"), "{nothing}");
        heat.hottest.clear();
        assert!(!to_text(&heat, &ralt).contains("No record is tracked"));
    }

    #[test]
    fn shares_are_of_the_data_and_never_more_than_all() {
        let heat = made(|heat: &mut HeatReport| {
            heat.curve = vec![point(1), point(5)];
            heat.data_bytes = 200;
        });
        let (records, bytes) = tracked(&heat);
        assert_eq!((records, bytes), (5, 50));
        assert_eq!(percent(bytes, &heat), 25.0);
        assert_eq!(percent(300, &heat), 100.0);
    }
}
