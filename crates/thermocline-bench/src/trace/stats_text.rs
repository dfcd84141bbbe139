//! A trace's statistics for people.

use std::fmt;

use bytesize::ByteSize;

use super::TraceStats;

impl fmt::Display for TraceStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} accesses to {} keys",
            self.file, self.accesses, self.distinct_keys
        )?;
        let mut operations: Vec<_> = self.operations.iter().collect();
        operations.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let operations: Vec<String> = operations
            .into_iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        writeln!(f, "  operations      {}", operations.join(", "))?;
        writeln!(
            f,
            "  in a replay     {} reads, {} writes, {} deletions",
            self.reads, self.writes, self.deletes
        )?;
        if let Some(bytes) = self.mean_key_bytes {
            writeln!(f, "  keys            {bytes:.1} bytes on average")?;
        }
        if let (Some(mean), Some(most)) = (self.mean_value_bytes, self.max_value_bytes) {
            writeln!(
                f,
                "  values          {mean:.1} bytes on average, {most} at most ({} keys tell)",
                self.keys_with_size
            )?;
        }
        let untold = self.distinct_keys - self.keys_with_size;
        if untold > 0 {
            writeln!(
                f,
                "  sizes assumed   {} a record, for {untold} keys",
                ByteSize::b(self.assumed_record_bytes)
            )?;
        }
        writeln!(
            f,
            "  data            {} with keys of 24 bytes",
            ByteSize::b(self.data_bytes)
        )?;
        writeln!(
            f,
            "  one access only {} of the keys",
            percent(Some(self.one_hit_share))
        )?;
        writeln!(
            f,
            "  most accessed   1 % of the keys take {} of the accesses, 5 % {}, 10 % {}",
            percent(Some(self.top_1_percent_share)),
            percent(Some(self.top_5_percent_share)),
            percent(Some(self.top_10_percent_share))
        )?;
        writeln!(
            f,
            "  sunk and hot    by {} written since the last write, and read since the last read: half of a \
             fast disk for {} of the data",
            ByteSize::b(self.threshold_bytes),
            percent(Some(self.fast_share))
        )?;
        writeln!(
            f,
            "    reads of sunk records         {}",
            percent(self.sunk_read_share)
        )?;
        writeln!(
            f,
            "    reads of hot records          {}",
            percent(self.hot_read_share)
        )?;
        write!(
            f,
            "    reads of both sunk and hot    {}",
            percent(self.sunk_and_hot_read_share)
        )
    }
}

fn percent(share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{:.1} %", share * 100.0),
        None => "none: there are no reads".to_owned(),
    }
}
