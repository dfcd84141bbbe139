//! Whether two results come from machines that can be compared.

use serde_json::Value;

use crate::results::Results;

/// Sizes that differ by less than this count as the same: kernels keep some memory, file systems
/// some space.
const SIZES: f64 = 0.05;

/// Measurements of a disk that differ by less than this are of the same disk.
const MEASURED: f64 = 0.25;

/// What differs between the machines of `a` and `b`.
pub(super) fn differences(a: &Results, b: &Results) -> Vec<String> {
    let mut found = between(&a.host, &b.host);
    probes("", &a.probe, &b.probe, &mut found);
    found
}

/// What differs between two host records.
pub(crate) fn between(a: &Value, b: &Value) -> Vec<String> {
    let mut found = Vec::new();
    fields("", a, b, &mut found);
    found
}

/// What differs between two host records in the fields that both have. A record that was made
/// without a look at the disks says nothing of them.
pub(crate) fn contradictions(a: &Value, b: &Value) -> Vec<String> {
    match a.is_null() || b.is_null() {
        true => Vec::new(),
        false => between(&shared(a, b), &shared(b, a)),
    }
}

/// Those parts of `one` that are in `other` too.
fn shared(one: &Value, other: &Value) -> Value {
    let (Value::Object(fields), Value::Object(others)) = (one, other) else {
        return one.clone();
    };
    let said = |value: &&Value| !value.is_null();
    let both = fields.iter().filter(|(_, value)| said(value));
    let both = both.filter_map(|(name, value)| {
        let other = others.get(name).filter(said)?;
        Some((name.clone(), shared(value, other)))
    });
    Value::Object(both.collect())
}

/// Compares every field of a host record. A field that one side lacks differs.
fn fields(path: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    // The names of devices change whenever they are attached.
    if a == b || path.ends_with(" device") {
        return;
    }
    if let (Some(sizes), true) = (a.as_f64().zip(b.as_f64()), path.ends_with("bytes"))
        && apart(sizes) <= SIZES
    {
        return;
    }
    if let (Value::Array(a), Value::Array(b)) = (a, b)
        && a.len() == b.len()
    {
        for (number, (a, b)) in a.iter().zip(b).enumerate() {
            fields(&format!("{path} {}", number + 1), a, b, found);
        }
        return;
    }
    let objects = a.is_object() || b.is_object();
    if !objects {
        found.push(format!("{path} {} / {}", show(a), show(b)));
        return;
    }
    let no_fields = serde_json::Map::new();
    let (a, b) = (
        a.as_object().unwrap_or(&no_fields),
        b.as_object().unwrap_or(&no_fields),
    );
    for name in a
        .keys()
        .chain(b.keys().filter(|name| !a.contains_key(*name)))
    {
        let side = |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or_default();
        let path = join(path, name);
        fields(&path, &side(a), &side(b), found);
    }
}

/// Compares the rates that both probes measured.
fn probes(path: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    if let (Some(a), Some(b)) = (a.as_object(), b.as_object()) {
        for (name, a) in a {
            if let Some(b) = b.get(name) {
                probes(&join(path, name), a, b, found);
            }
        }
        return;
    }
    let is_rate = path.ends_with("iops") || path.ends_with("bytes s");
    if let Some(rates) = a.as_f64().zip(b.as_f64()).filter(|_| is_rate)
        && apart(rates) > MEASURED
    {
        found.push(format!("{path} {:.0} / {:.0}", rates.0, rates.1));
    }
}

fn join(path: &str, name: &str) -> String {
    format!("{path} {}", name.replace('_', " "))
        .trim_start()
        .to_owned()
}

/// How far apart they are, as a share of the greater.
fn apart((a, b): (f64, f64)) -> f64 {
    let most = a.abs().max(b.abs());
    if most > 0.0 {
        (a - b).abs() / most
    } else {
        0.0
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "not recorded".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_machine_after_a_restart_compares() {
        let host = |memory: u64, device: &str| json!({"cores": 2, "memory_bytes": memory, "fast": {"device": device, "file_system": "ext4"}});
        let (a, b) = (host(25_000_000_000, "loop0"), host(24_990_000_000, "loop1"));
        assert_eq!(between(&a, &b), Vec::<String>::new());
        let b = host(8_000_000_000, "loop0");
        assert_eq!(between(&a, &b), ["memory bytes 25000000000 / 8000000000"]);
    }

    #[test]
    fn the_disks_of_further_tiers_are_compared_field_by_field() {
        let host = |device: &str, system: &str| json!({"slower": [{"device": device, "file_system": system}]});
        let a = host("loop0", "ext4");
        assert_eq!(between(&a, &host("loop1", "ext4")), Vec::<String>::new());
        let differs = between(&a, &host("loop0", "xfs"));
        assert_eq!(differs, ["slower 1 file system ext4 / xfs"]);
        assert_eq!(between(&a, &json!({"slower": []})).len(), 1);
    }

    #[test]
    fn what_one_side_did_not_record_differs() {
        let a = json!({"cores": 2, "cpu": "A", "fast": {"file_system": "ext4"}});
        let b = json!({"cores": 2});
        assert_eq!(
            between(&a, &b),
            [
                "cpu A / not recorded",
                "fast file system ext4 / not recorded"
            ]
        );
    }

    #[test]
    fn disks_are_the_same_within_what_measurements_vary() {
        let probe =
            |iops: f64| json!({"slow": {"random_read_16k": {"iops": iops, "mean_us": iops}}});
        let rates = |a: f64, b: f64| {
            let mut found = Vec::new();
            probes("", &probe(a), &probe(b), &mut found);
            found
        };
        assert_eq!(rates(5000.0, 4000.0), Vec::<String>::new());
        assert_eq!(
            rates(5000.0, 400.0),
            ["slow random read 16k iops 5000 / 400"]
        );
    }
}
