//! Tables for a terminal: text is left-aligned, numbers are right-aligned.

use std::ops::Range;

/// A table with a header row.
pub struct Table {
    rows: Vec<Vec<String>>,
    numbers: Range<usize>,
}

impl Table {
    /// An empty table; `numbers` is the range of numeric columns.
    pub fn new(head: &[&str], numbers: Range<usize>) -> Table {
        Table {
            rows: vec![head.iter().map(|&word| word.to_owned()).collect()],
            numbers,
        }
    }

    /// Adds a row with as many cells as the header.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Whether the table has no rows besides the header.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Header and rows as lines, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let columns = 0..self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = columns.map(width).collect();
        self.rows.iter().map(move |row| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells =
                cells.map(
                    |(column, (cell, &width))| match self.numbers.contains(&column) {
                        true => format!("{cell:>width$}"),
                        false => format!("{cell:<width$}"),
                    },
                );
            let line = cells.collect::<Vec<_>>().join("  ");
            line.trim_end().to_owned()
        })
    }

    /// All lines, each with a line end.
    pub fn text(&self) -> String {
        self.lines().map(|line| line + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_width_fits_widest_cell() {
        let mut table = Table::new(&["name", "n", "note"], 1..2);
        assert!(table.is_empty());
        table.push(vec!["a".into(), "100".into(), "µ".into()]);
        table.push(vec!["b".into(), "5".into(), String::new()]);
        assert_eq!(table.text(), "name    n  note\na     100  µ\nb       5\n");
    }
}
