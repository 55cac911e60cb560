//! Rows of a CSV file (RFC 4180) for `{{data:COLUMN}}`: request `n` of a run uses row `n`, modulo the number of rows.

use std::sync::Arc;

/// Column names and rows.
#[derive(Clone, Debug)]
pub struct Data {
    columns: Arc<[String]>,
    /// Values in row-major order.
    values: Arc<[Box<[u8]>]>,
}

impl Data {
    /// Parses the text of a CSV file whose first line has the column names. `name` is the name of the file.
    ///
    /// # Errors
    /// A sentence with the file and the line.
    pub fn parse(text: &str, name: &str) -> Result<Data, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let wrong = |error: csv::Error| format!("{name}: {error}");
        let columns: Arc<[String]> = reader
            .headers()
            .map_err(wrong)?
            .iter()
            .map(|column| column.trim().to_owned())
            .collect();
        let mut values: Vec<Box<[u8]>> = Vec::new();
        for row in reader.byte_records() {
            values.extend(row.map_err(wrong)?.iter().map(Box::from));
        }
        if values.is_empty() {
            return Err(format!(
                "{name}: no rows: expected a line with the names of the columns, followed by lines of values"
            ));
        }
        Ok(Data {
            columns,
            values: values.into(),
        })
    }

    pub(crate) fn column(&self, name: &str) -> Result<usize, String> {
        let found = self.columns.iter().position(|column| column == name);
        found.ok_or_else(|| {
            let columns = self.columns.join(", ");
            format!("the data has no column {name:?}: expected one of {columns}")
        })
    }

    pub(crate) fn value(&self, number: u64, column: usize) -> &[u8] {
        let rows = self.values.len() / self.columns.len();
        let row = (number % rows as u64) as usize;
        &self.values[row * self.columns.len() + column]
    }

    pub(crate) fn bytes_max(&self, column: usize) -> usize {
        let lengths = self.values_of(column).map(|(_, value)| value.len());
        lengths.max().unwrap_or(0)
    }

    /// Refuses a column with a value for which `fits` is false; `place` describes where the value is used.
    pub(crate) fn check(
        &self,
        column: usize,
        place: &str,
        fits: impl Fn(&[u8]) -> bool,
    ) -> Result<(), String> {
        match self.values_of(column).find(|(_, value)| !fits(value)) {
            None => Ok(()),
            Some((row, value)) => Err(format!(
                "row {} of the data has \"{}\" in the column {:?}, which is not allowed in {place}",
                row + 1,
                value.escape_ascii(),
                self.columns[column],
            )),
        }
    }

    fn values_of(&self, column: usize) -> impl Iterator<Item = (usize, &[u8])> {
        let rows = self.values.chunks(self.columns.len());
        rows.map(move |row| &*row[column]).enumerate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_values_are_found_by_row_and_column() {
        let data = Data::parse("id, name\n1,\"two\nlines\"\n2,\"say \"\"a\"\"\"\n", "d").unwrap();
        let name = data.column("name").unwrap();
        assert_eq!(data.value(0, name), b"two\nlines");
        assert_eq!(data.value(1, name), b"say \"a\"");
        assert_eq!(data.value(2, 0), b"1", "from the start again");
        assert_eq!(data.bytes_max(name), 9);
        assert!(data.column("x").unwrap_err().contains("one of id, name"));
    }

    #[test]
    fn unsendable_data_values_are_reported() {
        let data = Data::parse("id\n1\na b\n", "d").unwrap();
        let graphic = |value: &[u8]| value.iter().all(u8::is_ascii_graphic);
        let error = data.check(0, "a path", graphic).unwrap_err();
        assert!(error.contains("row 2 of the data has \"a b\""), "{error}");
        assert_eq!(data.check(0, "a body", |_| true), Ok(()));
    }

    #[test]
    fn invalid_csv_is_refused() {
        for (text, part) in [
            ("", "no rows"),
            ("id\n", "no rows"),
            ("a,b\n1,2\n1\n", "line: 3"),
        ] {
            let error = Data::parse(text, "d.csv").unwrap_err();
            assert!(error.contains("d.csv: ") && error.contains(part), "{error}");
        }
    }
}
