//! Tables for a terminal: columns as wide as their widest cell, text to the left and numbers to the right.

use std::ops::Range;

/// A table with a head.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns of numbers.
    numbers: Range<usize>,
}

impl Table {
    /// A table without rows, in which these columns are numbers.
    pub fn new(head: &[&str], numbers: Range<usize>) -> Table {
        Table {
            rows: vec![head.iter().map(|&word| word.to_owned()).collect()],
            numbers,
        }
    }

    /// Adds a row, which has as many cells as the head.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Whether the table has only its head.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The head and the rows, each a line without its end.
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

    /// All lines.
    pub fn text(&self) -> String {
        self.lines().map(|line| line + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["name", "n", "note"], 1..2);
        assert!(table.is_empty());
        table.push(vec!["a".into(), "100".into(), "µ".into()]);
        table.push(vec!["b".into(), "5".into(), String::new()]);
        assert_eq!(table.text(), "name    n  note\na     100  µ\nb       5\n");
    }
}
