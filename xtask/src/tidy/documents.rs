//! Rules about Markdown: a link to a file of the repository has a target, and a table of a run equals the run's file.

use super::problem::Problem;
use crate::tables::filled;
use crate::tree::Tree;

pub(crate) fn problems(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".md") {
        problems.extend(table(path, text, tree));
        let mut in_block = false;
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            }
            if in_block {
                continue;
            }
            let broken = targets(line).filter(|target| !leads_somewhere(target, path, tree));
            problems.extend(
                broken.map(|target| Problem::new(path, at + 1, format!("broken link: {target}"))),
            );
        }
    }
    problems
}

fn table(path: &str, text: &str, tree: &Tree) -> Option<Problem> {
    let wished = match filled(text, tree) {
        Ok(wished) => wished,
        Err(broken) => return Some(Problem::new(path, broken.line, broken.what)),
    };
    let lines = text.lines().zip(wished.lines());
    let same = lines.take_while(|(is, should)| is == should).count();
    let is_same = same == text.lines().count() && same == wished.lines().count();
    (!is_same).then(|| {
        Problem::new(
            path,
            same + 1,
            "the table differs from the run: run cargo xtask tables",
        )
    })
}

/// Link targets of a line, `[text](target)` or `[name]: target`, without those in `code`.
fn targets(line: &str) -> impl Iterator<Item = String> {
    let prose: String = line.split('`').step_by(2).collect();
    let inline = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned());
    let definition = prose
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .map(|(_, target)| target.to_owned());
    // A title may follow: [text](target "title").
    let targets: Vec<String> = inline.chain(definition).collect();
    targets
        .into_iter()
        .filter_map(|target| target.split_whitespace().next().map(str::to_owned))
}

/// Whether the target is a file or directory of the repository, or cannot be checked without network.
fn leads_somewhere(target: &str, from: &str, tree: &Tree) -> bool {
    let is_elsewhere = ["http:", "https:", "mailto:", "#"]
        .iter()
        .any(|start| target.starts_with(start));
    let file = target.split('#').next().unwrap_or_default();
    is_elsewhere || resolved(file, from).is_some_and(|path| tree.has(&path))
}

/// Path from the root for `file` in a document at `from`; `None` outside the repository.
fn resolved(file: &str, from: &str) -> Option<String> {
    let directory = from.rsplit_once('/').map_or("", |(directory, _)| directory);
    let start = if file.starts_with('/') { "" } else { directory };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(file.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Targets reported for a document at `docs/a.md`.
    fn broken(text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("docs/b.md", ""),
            ("README.md", ""),
            ("src/x.rs", ""),
        ]);
        let problems = problems(&tree);
        problems
            .iter()
            .map(|problem| {
                problem
                    .message
                    .rsplit(' ')
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn links_within_repository_are_valid() {
        let text = "[b](b.md) [r](../README.md#goals) [s](../src/) [x](/src/x.rs \"title\") [h](#here)\n[n]: b.md\n";
        assert_eq!(broken(text), [""; 0]);
    }

    #[test]
    fn broken_links_are_reported() {
        assert_eq!(
            broken("[b](c.md) and [d](../docs/d.md)\n[n]: e.md"),
            ["c.md", "../docs/d.md", "e.md"]
        );
        assert_eq!(broken("[out](../../etc/passwd)"), ["../../etc/passwd"]);
    }

    #[test]
    fn outdated_tables_are_reported() {
        let tables = |row: &str| {
            let text = format!(
                "<!-- table: runs/a/summary.md -->\n| work |\n|---|\n{row}\n<!-- end of table -->\n"
            );
            let tree = Tree::of(&[
                ("README.md", &text),
                ("runs/a/summary.md", "| work |\n|---|\n| 1 |\n"),
            ]);
            let problems = problems(&tree);
            problems
                .iter()
                .map(|problem| problem.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(tables("| 1 |"), [0; 0]);
        assert_eq!(tables("| 2 |"), [4]);
    }

    #[test]
    fn urls_and_code_are_not_checked() {
        assert_eq!(
            broken("[w](https://example.com/x.md) `[c](d.md)`\n```\n[e](f.md)\n```\n"),
            [""; 0]
        );
    }
}
