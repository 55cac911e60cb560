//! Tables of measured results in documents, copied from the files of a run.
//!
//! ```text
//! <!-- table: runs/2026-11-24-peers/summary.md: forwarding -->
//! …
//! <!-- end of table -->
//! ```
//!
//! Between the two are the rows of that file's table whose first cell begins with the text after the second colon; all
//! rows if there is none.

use crate::tree::Tree;

/// Beginning of the line above a table of results.
pub(crate) const BEGIN: &str = "<!-- table: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end of table -->";
/// Beginning of the table in a `summary.md`.
const HEAD: &str = "| work |";

/// An error in a document, and its line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableError {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// Returns the document with its tables updated from the results.
pub(crate) fn filled(text: &str, tree: &Tree) -> Result<String, TableError> {
    let mut out = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(source) = source_of(line) else {
            continue;
        };
        let broken = |what: String| TableError { line: at + 1, what };
        for row in rows(source, tree).map_err(broken)? {
            out.push_str(row);
            out.push('\n');
        }
        lines
            .find(|(_, line)| *line == END)
            .ok_or_else(|| broken(format!("missing end line {END}")))?;
        out.push_str(END);
        out.push('\n');
    }
    Ok(out)
}

fn source_of(line: &str) -> Option<&str> {
    line.strip_prefix(BEGIN)?.strip_suffix(BEGIN_END)
}

/// Head and rows of the table named by `source`: a file, and the beginning of the rows.
fn rows<'a>(source: &str, tree: &'a Tree) -> Result<Vec<&'a str>, String> {
    let (file, start) = source.split_once(": ").unwrap_or((source, ""));
    let (_, text) = tree
        .file(file)
        .ok_or_else(|| format!("no file {file} in the repository"))?;
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with(HEAD))
        .take_while(|line| line.starts_with('|'))
        .collect();
    let (head, rows) = table
        .split_at_checked(2)
        .ok_or_else(|| format!("{file} has no table that begins with {HEAD:?}"))?;
    let start = format!("| {start}");
    let chosen = rows.iter().filter(|row| row.starts_with(&start));
    let table: Vec<&str> = head.iter().chain(chosen).copied().collect();
    match table.len() > head.len() {
        true => Ok(table),
        false => Err(format!("no row of {file} begins with {start:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "# peers\n\n| work | figure |\n|---|---|\n| files | 1 |\n| forwarding | 2 |\n\n| change |\n";

    fn fill(text: &str) -> Result<String, TableError> {
        filled(text, &Tree::of(&[("runs/a/summary.md", SUMMARY)]))
    }

    #[test]
    fn tables_are_replaced_by_measured_rows() {
        let text =
            "before\n<!-- table: runs/a/summary.md -->\nold\n<!-- end of table -->\nbehind\n";
        let filled = fill(text).expect("a file");
        assert_eq!(
            filled,
            "before\n<!-- table: runs/a/summary.md -->\n| work | figure |\n|---|---|\n| files | 1 |\n| forwarding | 2 |\n<!-- end of table -->\nbehind\n"
        );
        assert_eq!(fill(&filled).as_deref(), Ok(filled.as_str()));
    }

    #[test]
    fn rows_are_selected_by_prefix() {
        let text = "<!-- table: runs/a/summary.md: forw -->\n<!-- end of table -->\n";
        let filled = fill(text).expect("a file");
        assert!(filled.contains("| forwarding | 2 |") && !filled.contains("files"));
    }

    #[test]
    fn errors_have_line_numbers() {
        for (text, what) in [
            (
                "\n<!-- table: runs/b/summary.md -->\n<!-- end of table -->\n",
                "no file runs/b",
            ),
            (
                "\n<!-- table: runs/a/summary.md: x -->\n<!-- end of table -->\n",
                "no row",
            ),
            ("\n<!-- table: runs/a/summary.md -->\n", "missing end line"),
        ] {
            let broken = fill(text).expect_err(text);
            assert!(broken.line == 2 && broken.what.contains(what), "{broken:?}");
        }
    }
}
