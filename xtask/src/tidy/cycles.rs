//! Checks for files that use each other in a cycle: none of them can be read, tested or moved without the others. The
//! size of each crate's largest cycle is listed here, and may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::Problem;
use crate::modules::{self, Uses};
use crate::syntax::{Syntax, crate_of};

/// Number of files in the largest cycle of a crate; a crate that is not listed has none.
const STATED: &[(&str, usize)] = &[("engine", 4), ("serve", 2), ("load", 3)];

const OWN_PATH: &str = "xtask/src/tidy/circles.rs";

pub(crate) fn problems(syntax: &Syntax) -> Vec<Problem> {
    compared(syntax, STATED)
}

/// Cycles larger than listed, and numbers listed too large.
fn compared(syntax: &Syntax, stated: &[(&str, usize)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut largest: BTreeMap<&str, usize> = BTreeMap::new();
    for root in syntax.roots() {
        let name = crate_of(root).expect("it stands beneath src");
        let of_crate = stated.iter().find(|(stated, _)| *stated == name);
        let limit = of_crate.map_or(1, |(_, limit)| *limit);
        let uses = modules::uses(root, syntax);
        for circle in circles(&uses) {
            let size = largest.entry(name).or_default();
            *size = circle.len().max(*size);
            if circle.len() > limit {
                problems.push(problem(&circle, limit, &uses));
            }
        }
    }
    for (name, limit) in stated {
        let size = largest.get(name).copied().unwrap_or(1);
        if size < *limit {
            problems.push(Problem::new(
                OWN_PATH,
                1,
                format!("{name}: the limit is {limit}, but its largest circle has {size} files: lower the number"),
            ));
        }
    }
    problems
}

fn problem(circle: &BTreeSet<&str>, limit: usize, uses: &Uses) -> Problem {
    let first = circle.first().expect("a circle has files");
    let files: Vec<String> = circle
        .iter()
        .map(|file| {
            let inside: Vec<&str> = uses[file]
                .intersection(circle)
                .copied()
                .map(short)
                .collect();
            format!("{} uses {}", short(file), inside.join(", "))
        })
        .collect();
    let allowed = match limit {
        1 => "none may".to_owned(),
        limit => format!("at most {limit} may"),
    };
    Problem::new(
        first,
        1,
        format!(
            "{} files use each other in a circle, {allowed}: {}",
            circle.len(),
            files.join("; ")
        ),
    )
}

fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, rest)| rest)
}

/// Groups of two or more files that reach each other.
pub(super) fn circles<'tree>(uses: &Uses<'tree>) -> Vec<BTreeSet<&'tree str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|file| (*file, reached_from(file, uses)))
        .collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (file, others) in &reached {
        if circles.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let returns = others.iter().filter(|other| reached[*other].contains(file));
        let circle: BTreeSet<&str> = returns.copied().collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

/// All files that a file uses, directly or indirectly.
fn reached_from<'tree>(file: &str, uses: &Uses<'tree>) -> BTreeSet<&'tree str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = uses[file].iter().copied().collect();
    while let Some(file) = open.pop() {
        if let Some((file, used)) = uses.get_key_value(file)
            && reached.insert(*file)
        {
            open.extend(used);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    /// Checks the problems reported for these files of the crate `http`, next to a root with these lines.
    #[track_caller]
    fn check(root: &str, files: &[(&str, &str)], stated: usize, expected: &[&str]) {
        let files: Vec<(String, &str)> = [("lib.rs", root)]
            .iter()
            .chain(files)
            .map(|(path, text)| (format!("crates/http/src/{path}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        let tree = Tree::of(&files);
        let problems = compared(&Syntax::parse(&tree), &[("http", stated)]);
        let found: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(found, expected, "of {files:?}");
    }

    const TWO: &str = "crates/http/src/a.rs:1: 2 files use each other in a circle, none may: a.rs uses b.rs; b.rs uses a.rs";

    #[test]
    fn mutual_imports_are_a_cycle() {
        let b = ("b.rs", "use super::a::A;\npub struct B(A);");
        for a in [
            "use crate::b::B;\npub struct A;",
            "use super::{b::{self}};\npub struct A(b::B);",
            "pub struct A(crate::b::B);",
            "use super::*;\npub struct A(b::B);",
            "pub struct A;\nfn f() { assert!(super::b::B::new()); }",
            "pub struct A;\nmod inline { use super::super::b::B as Other; }",
        ] {
            check("mod a; mod b;", &[("a.rs", a), b], 1, &[TWO]);
        }
        let a = "use crate::c;\npub struct A;";
        check("mod a; mod b;", &[("a.rs", a), b], 1, &[]);
    }

    #[test]
    fn reexports_resolve_to_definition() {
        let child = ("a/child.rs", "use crate::a::Other;\npub struct Name;");
        let other = ("a/other.rs", "pub struct Other;");
        let parent = "mod child; mod other;\npub use child::Name;\npub use other::*;";
        check("mod a;", &[("a.rs", parent), child, other], 1, &[]);
        let using = format!("{parent}\nstruct Own(Name);");
        check("mod a;", &[("a.rs", &using), child, other], 1, &[]);
        let back = ("a/other.rs", "pub struct Other(super::Name);");
        check(
            "mod a;",
            &[("a/mod.rs", parent), child, back],
            1,
            &[
                "crates/http/src/a/child.rs:1: 2 files use each other in a circle, none may: \
               a/child.rs uses a/other.rs; a/other.rs uses a/child.rs",
            ],
        );
    }

    #[test]
    fn parent_and_child_module_can_form_a_cycle() {
        let child = ("a/child.rs", "use super::A;\npub struct Child(A);");
        let parent = "mod child;\nuse child::Child;\npub struct A;";
        check(
            "mod a;",
            &[("a.rs", parent), child],
            1,
            &[
                "crates/http/src/a.rs:1: 2 files use each other in a circle, none may: \
               a.rs uses a/child.rs; a/child.rs uses a.rs",
            ],
        );
        check(
            "mod a;",
            &[("a.rs", "mod child;\npub struct A;"), child],
            1,
            &[],
        );
    }

    #[test]
    fn function_with_module_name_is_not_a_dependency() {
        let b = ("b.rs", "pub struct B;");
        let a = ("a.rs", "use crate::b::B;\npub struct A(B);");
        check("mod a; mod b;\npub fn b() { a::A }", &[a, b], 1, &[]);
    }

    #[test]
    fn tests_do_not_close_cycles() {
        let a = "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(test)]\nuse crate::b::B;";
        let b = ("b.rs", "use crate::a::A;\npub struct B;");
        check("mod a; mod b;", &[("a.rs", a), b], 1, &[]);
    }

    #[test]
    fn cycle_size_must_match_list() {
        let files = [
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::a::A;\npub struct B;"),
        ];
        check("mod a; mod b;", &files, 2, &[]);
        check(
            "mod a; mod b;",
            &files,
            3,
            &[
                "xtask/src/tidy/circles.rs:1: http: the limit is 3, but its largest circle has 2 files: lower the number",
            ],
        );
    }
}
