//! What a suite leaves out because this build lacks something for it.

use super::cell::Cell;

/// A line for each thing that this build lacks, with the `cells` that need it.
pub(crate) fn lines<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<String> {
    let mut lacking: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in cells {
        let Err(error) = cell.check_built_in() else {
            continue;
        };
        let reason = format!("{error:#}");
        match lacking.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ids)) => ids.push(cell.id.as_str()),
            None => lacking.push((reason, vec![cell.id.as_str()])),
        }
    }
    lacking
        .into_iter()
        .map(|(reason, ids)| format!("left out: {} ({reason})", ids.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cells::tests::of_small;

    #[test]
    fn cells_that_lack_the_same_share_a_line() {
        let mut cells = of_small();
        cells[1].engine = "no-such".to_owned();
        cells[3].engine = "no-such".to_owned();
        cells[8].engine = "nor-such".to_owned();
        let lines = lines(cells.iter());
        let begins = [
            "left out: reads-leveled-ro-hotspot-5, reads-leveled-uh-hotspot-5 (`no-such`",
            "left out: other-leveled-ro-uniform-20MB (`nor-such`",
        ];
        assert_eq!(lines.len(), begins.len(), "{lines:?}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
    }
}
