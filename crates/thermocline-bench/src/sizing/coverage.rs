//! What part of the reads goes to how many bytes of the data.

/// Reads that bytes of data get, from the hottest bytes on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Coverage {
    /// Bytes, and the part of the reads that they and all before them get. Begins with nothing of
    /// both, ends with all.
    points: Vec<(f64, f64)>,
}

impl Coverage {
    /// Of parts of the data in the order in which they come to the fast disk: bytes, and reads in
    /// any unit. None if there are no bytes or no reads.
    pub(super) fn new(parts: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let (mut bytes, mut reads) = (0.0, 0.0);
        let mut points = vec![(0.0, 0.0)];
        for part in parts {
            bytes += part.0;
            reads += part.1;
            points.push((bytes, reads));
        }
        if !(bytes > 0.0 && reads > 0.0) {
            return None;
        }
        for point in &mut points {
            point.1 /= reads;
        }
        Some(Self { points })
    }

    /// Of parts whose order does not matter: those with the most reads for their bytes come first.
    pub(super) fn of_densest(parts: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let mut parts: Vec<(f64, f64)> = parts.into_iter().collect();
        parts.sort_by(|a, b| (b.1 * a.0).total_cmp(&(a.1 * b.0)));
        Self::new(parts)
    }

    /// Bytes of all data.
    pub(super) fn data(&self) -> f64 {
        self.points.last().map_or(0.0, |(bytes, _)| *bytes)
    }

    /// The same reads of `data` bytes.
    pub(super) fn scaled_to(mut self, data: f64) -> Self {
        let scale = data / self.data();
        for point in &mut self.points {
            point.0 *= scale;
        }
        self
    }

    /// The part of the reads that the first `bytes` get. Of parts that are not there as a whole,
    /// all bytes count alike.
    pub(super) fn share(&self, bytes: f64) -> f64 {
        let bytes = bytes.max(0.0);
        let after = self.points.partition_point(|(end, _)| *end <= bytes);
        let before = self.points.get(after.saturating_sub(1)).copied();
        let (begin, share) = before.unwrap_or_default();
        match self.points.get(after) {
            Some((end, next)) => share + (next - share) * (bytes - begin) / (end - begin),
            None => share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten keys of 100 bytes: one with 5 reads, two with 2, one with 1, and six with none.
    fn ten_keys() -> Coverage {
        Coverage::new([(100.0, 5.0), (200.0, 4.0), (100.0, 1.0), (600.0, 0.0)]).unwrap()
    }

    #[test]
    fn the_hottest_bytes_get_the_reads_of_their_keys() {
        let coverage = ten_keys();
        assert_eq!(coverage.data(), 1000.0);
        for (bytes, share) in [
            (-5.0, 0.0),
            (0.0, 0.0),
            (50.0, 0.25),
            (100.0, 0.5),
            (200.0, 0.7),
            (300.0, 0.9),
            (400.0, 1.0),
            (700.0, 1.0),
            (1e9, 1.0),
        ] {
            assert!((coverage.share(bytes) - share).abs() < 1e-12, "{bytes}");
        }
        let doubled = coverage.scaled_to(2000.0);
        assert_eq!((doubled.data(), doubled.share(200.0)), (2000.0, 0.5));
    }

    #[test]
    fn the_densest_part_comes_first_whatever_its_size() {
        let coverage = Coverage::of_densest([(100.0, 1.0), (10.0, 1.0), (50.0, 2.0)]).unwrap();
        assert_eq!(coverage.share(10.0), 0.25);
        assert_eq!(coverage.share(60.0), 0.75);
    }

    #[test]
    fn without_data_or_reads_there_is_nothing_to_cover() {
        for parts in [vec![], vec![(0.0, 1.0)], vec![(10.0, 0.0)]] {
            assert_eq!(Coverage::new(parts), None);
        }
    }
}
