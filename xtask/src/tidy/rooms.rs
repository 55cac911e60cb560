//! Rules about rooms, the entries at the top of a crate's `src`: how many there may be, and how many may form a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::cycles::circles;
use super::problem::Problem;
use crate::code;
use crate::modules::{self, Uses};
use crate::syntax::{Syntax, crate_of};
use crate::tree::Tree;

/// Maximum entries at the top of a crate's `src`, including the root file.
const ENTRIES_MAX: usize = 20;

/// Maximum rooms in a cycle.
const CIRCLE_MAX: usize = 3;

/// Crates with lower limits: entries, and rooms of the largest cycle.
const LOWER: &[(&str, usize, usize)] = &[("engine", 20, 0), ("load", 16, 0), ("serve", 14, 0)];

/// Rooms and lines of a crate.
#[derive(Debug)]
struct CrateRooms<'tree> {
    root: &'tree str,
    entries: usize,
    /// Shipped lines, without comments, blank lines and tests.
    lines: usize,
    largest: Cycle<'tree>,
}

#[derive(Debug, Default)]
struct Cycle<'tree> {
    rooms: BTreeSet<&'tree str>,
    lines: usize,
}

pub(crate) fn problems(tree: &Tree, syntax: &Syntax) -> Vec<Problem> {
    compared(tree, syntax, LOWER)
}

/// Crates above the general limits, or above their own.
fn compared(tree: &Tree, syntax: &Syntax, lower: &[(&str, usize, usize)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for plan in plans(tree, syntax) {
        let name = crate_of(plan.root).expect("a root file is in a crate");
        let listed = lower.iter().find(|(listed, ..)| *listed == name);
        let limits = listed.map_or((ENTRIES_MAX, CIRCLE_MAX), |(_, entries, circle)| {
            (*entries, *circle)
        });
        let circle = plan.largest.rooms.len();
        for (what, is, limit) in [
            ("entries at the top", plan.entries, limits.0),
            ("rooms in a circle", circle, limits.1),
        ] {
            if is > limit {
                let rooms = Vec::from_iter(plan.largest.rooms.iter().copied()).join(", ");
                let message = format!("{is} {what} (limit {limit}); largest circle: {rooms}");
                problems.push(Problem::new(plan.root, 1, message));
            }
        }
    }
    problems
}

/// Table of entries, lines and cycles of each crate.
pub(crate) fn figures(tree: &Tree, syntax: &Syntax) -> String {
    let mut out =
        String::from("crate         entries   lines  rooms in a circle, share of lines\n");
    for plan in plans(tree, syntax) {
        let name = crate_of(plan.root).expect("a root file is in a crate");
        let (entries, lines) = (plan.entries, plan.lines);
        let share = 100 * plan.largest.lines / lines.max(1);
        let rooms = Vec::from_iter(plan.largest.rooms.iter().copied());
        let circle = match rooms[..] {
            [] => "none".to_owned(),
            _ => format!("{}, {share} %: {}", rooms.len(), rooms.join(" ")),
        };
        writeln!(out, "{name:<13} {entries:>7} {lines:>7}  {circle}").expect("it is a string");
    }
    out
}

fn plans<'tree>(tree: &Tree, syntax: &Syntax<'tree>) -> Vec<CrateRooms<'tree>> {
    let plan = |root: &'tree str| {
        let uses = modules::uses(root, syntax);
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for file in uses.keys() {
            *lines.entry(room(file)).or_default() += code_lines(tree, file);
        }
        let found = circles(&by_room(&uses)).into_iter().map(|rooms| Cycle {
            lines: rooms.iter().map(|room| lines[room]).sum(),
            rooms,
        });
        CrateRooms {
            root,
            entries: entries(root, tree),
            lines: lines.values().sum(),
            largest: found
                .max_by_key(|circle| circle.rooms.len())
                .unwrap_or_default(),
        }
    };
    syntax.roots().map(plan).collect()
}

/// For each room the rooms that it uses.
fn by_room<'tree>(uses: &Uses<'tree>) -> Uses<'tree> {
    let mut rooms = Uses::new();
    for (file, used) in uses {
        let others = rooms.entry(room(file)).or_default();
        let used = used.iter().map(|used| room(used));
        others.extend(used.filter(|used| *used != room(file)));
    }
    rooms
}

/// Room of a file: its entry at the top of `src`, without extension.
fn room(path: &str) -> &str {
    let below = path.split_once("/src/").map_or(path, |(_, below)| below);
    let entry = below.split_once('/').map_or(below, |(entry, _)| entry);
    entry.strip_suffix(".rs").unwrap_or(entry)
}

/// Files and folders next to a root file; a file and a folder of one module are one entry.
fn entries(root: &str, tree: &Tree) -> usize {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let below = tree.ending(".rs").filter(|(path, _)| {
        let rest = path.strip_prefix(folder);
        rest.is_some_and(|rest| rest.starts_with('/'))
    });
    let rooms: BTreeSet<&str> = below.map(|(path, _)| room(path)).collect();
    rooms.len()
}

fn code_lines(tree: &Tree, path: &str) -> usize {
    let text = tree.file(path).map_or("", |(_, text)| text);
    let code = code::without_comments_and_literals(text);
    let before = code::lines_before_tests(&code);
    let lines = code.lines().take(before);
    lines.filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::of(&[
            ("crates/http/src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("crates/http/src/a.rs", "mod one;\nmod two;"),
            ("crates/http/src/a/one.rs", "pub struct One;"),
            (
                "crates/http/src/a/two.rs",
                "use crate::b::B;\npub struct Two(B);",
            ),
            (
                "crates/http/src/b.rs",
                "use crate::a::one::One;\n// why\n\npub struct B(One);",
            ),
            ("crates/http/src/c.rs", "use crate::b::B;\npub struct C(B);"),
        ])
    }

    #[test]
    fn directories_can_form_cycles_without_file_cycles() {
        let tree = tree();
        let syntax = Syntax::parse(&tree);
        let plan = &plans(&tree, &syntax)[0];
        assert_eq!(Vec::from_iter(plan.largest.rooms.iter()), [&"a", &"b"]);
        assert_eq!((plan.entries, plan.lines, plan.largest.lines), (4, 12, 7));
    }

    #[test]
    fn listed_crate_has_lower_limits() {
        let tree = tree();
        let syntax = Syntax::parse(&tree);
        assert_eq!(compared(&tree, &syntax, &[]), []);
        let found = compared(&tree, &syntax, &[("http", 1, 1)]);
        let expected = [
            "crates/http/src/lib.rs:1: 4 entries at the top (limit 1); largest circle: a, b",
            "crates/http/src/lib.rs:1: 2 rooms in a circle (limit 1); largest circle: a, b",
        ];
        let found: Vec<String> = found.iter().map(Problem::to_string).collect();
        assert_eq!(found, expected);
    }
}
