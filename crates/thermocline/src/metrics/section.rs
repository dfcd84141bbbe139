//! A titled part of a report for people: named values and a table.

/// A titled table, its columns as wide as their content; numbers to the right.
pub(super) struct Section {
    title: &'static str,
    rows: Vec<Vec<String>>,
    pairs: Vec<(String, String)>,
}

impl Section {
    pub(super) fn new(title: &'static str) -> Self {
        Self {
            title,
            rows: Vec::new(),
            pairs: Vec::new(),
        }
    }

    pub(super) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub(super) fn pair(&mut self, name: &str, value: String) {
        self.pairs.push((name.to_owned(), value));
    }

    pub(super) fn render(&self, out: &mut String) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(self.title);
        out.push('\n');
        let name_width = self.pairs.iter().map(|(n, _)| n.len()).max().unwrap_or(0);
        for (name, value) in &self.pairs {
            out.push_str(&format!("  {name:name_width$}  {value}\n"));
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|c| {
                let cells = self.rows.iter().filter_map(|row| row.get(c));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (index, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line.push_str("  ");
                if index == 0 {
                    line.push_str(&format!("{cell:width$}"));
                } else {
                    line.push_str(&format!("{cell:>width$}"));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}
