//! What runs over time are called.

use std::collections::BTreeSet;

use super::{settings, work_label};
use crate::results::Cell;

/// What the cells of `work` did. If others of `works` did it too, also what tells them apart.
/// Stages are listed beside each plot, and here only if others are of the same kind.
pub(super) fn name(work: &[&Cell], works: &[Vec<&Cell>]) -> String {
    let what = |cells: &[&Cell]| cells.first().map(|cell| work_label(cell));
    let given = |cells: &[&Cell]| {
        let run = cells.first().and_then(|cell| cell.first());
        run.map(settings::given_with_target).unwrap_or_default()
    };
    let same = works.iter().filter(|other| what(other) == what(work));
    let same: Vec<Vec<String>> = same.map(|other| given(other)).collect();
    let own = given(work);
    let apart = settings::apart(&own, same.iter().map(Vec::as_slice));
    let kind = kind_of_stages(work).filter(|kind| {
        let mut others = works.iter().filter(|other| what(other) != what(work));
        others.all(|other| kind_of_stages(other) != Some(*kind))
    });
    let mut name = match kind {
        Some(kind) => kind.to_owned(),
        None => what(work).unwrap_or_default(),
    };
    for phrase in apart {
        name.push_str(", ");
        name.push_str(phrase);
    }
    name
}

/// What kind the stages of these cells are, if there are several.
fn kind_of_stages(work: &[&Cell]) -> Option<&'static str> {
    let stages = &work.first()?.typical()?.stages;
    // Where the target makes them, the work stays the same.
    if stages.len() < 2 || stages.iter().any(|stage| stage.target.is_some()) {
        return None;
    }
    let shapes = stages.iter().map(|stage| stage.distribution.as_str());
    let hotspots = shapes.filter(|shape| shape.starts_with("hotspot-"));
    let hotspots: BTreeSet<&str> = hotspots.collect();
    Some(match hotspots.len() {
        0 | 1 => "stages",
        _ => "a hotspot that moves",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    /// A run of these two stages.
    fn staged(first: &str, second: &str) -> Cell {
        let mut cell = cell("hotrap", &format!("{first},{second}"), &[10.0]);
        let mut stages = vec![cell.runs[0].stages[0].clone(); 2];
        stages[0].distribution = first.to_owned();
        stages[1].distribution = second.to_owned();
        cell.runs[0].stages = stages;
        cell
    }

    fn names(cells: &[Cell]) -> Vec<String> {
        let works: Vec<Vec<&Cell>> = cells.iter().map(|cell| vec![cell]).collect();
        works.iter().map(|work| name(work, &works)).collect()
    }

    /// Regression: all of them were "a hotspot that moves", whatever their stages were, even if
    /// there were several.
    #[test]
    fn runs_in_stages_are_called_what_they_are() {
        let moving = staged("hotspot-5", "hotspot-5+5");
        let mut more = moving.clone();
        more.runs[0].threads = 9;
        let other = staged("uniform", "hotspot-5");
        let expected = [
            "a hotspot that moves, 4 threads",
            "a hotspot that moves, 9 threads",
            "stages",
        ];
        assert_eq!(names(&[moving, more, other.clone()]), expected);
        let zipfian = staged("zipfian:0.99", "zipfian:1.2");
        let expected = ["ro uniform,hotspot-5", "ro zipfian:0.99,zipfian:1.2"];
        assert_eq!(names(&[other, zipfian]), expected);
    }
}
