//! File name patterns as in glob(3): `*`, `?` and `[…]`; none matches a `/` or a leading dot.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::limits::NAMES_MAX;

/// Whether a name is a pattern.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Names in a directory in any order, at most [`NAMES_MAX`] of them.
///
/// # Errors
/// Returns the system's error.
pub fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(directory)?.take(NAMES_MAX);
    entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect()
}

/// Expands `pattern` relative to `directory`, sorted by the bytes of the names; `list` lists a directory. Components
/// after the last pattern need not exist.
///
/// # Errors
/// Returns the error of the first directory that cannot be listed.
pub fn matching<E>(
    directory: &Path,
    pattern: &str,
    mut list: impl FnMut(&Path) -> Result<Vec<OsString>, E>,
) -> Result<Vec<PathBuf>, E> {
    let mut found = vec![directory.to_owned()];
    for component in Path::new(pattern).components() {
        let name = match component {
            Component::Normal(name) => name.to_string_lossy(),
            other => {
                found.iter_mut().for_each(|path| path.push(other));
                continue;
            }
        };
        if !is_pattern(&name) {
            found.iter_mut().for_each(|path| path.push(&*name));
            continue;
        }
        let mut next = Vec::new();
        for path in found {
            let directory = match path.as_os_str().is_empty() {
                true => Path::new("."),
                false => &path,
            };
            let mut names = list(directory)?;
            names.retain(|candidate| matches(&name, &candidate.to_string_lossy()));
            names.sort_unstable();
            next.extend(names.into_iter().map(|name| path.join(name)));
            next.truncate(NAMES_MAX);
        }
        found = next;
    }
    Ok(found)
}

/// Whether a name matches one component of a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // Where to resume if the characters after the last `*` do not match.
    let mut star: Option<(usize, usize)> = None;
    let (mut at, mut letter) = (0, 0);
    while letter < name.len() {
        let step = match pattern.get(at) {
            Some('*') => {
                star = Some((at, letter));
                at += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[at..], name[letter]),
            Some('\\') if pattern.get(at + 1) == Some(&name[letter]) => Some(2),
            Some(same) if *same == name[letter] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                at += length;
                letter += 1;
            }
            (None, Some((star_at, from))) => {
                star = Some((star_at, from + 1));
                at = star_at + 1;
                letter = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// Length of the bracket expression at the start of `pattern`, if it matches `letter`.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let begin = if negated { 2 } else { 1 };
    // A `]` in the first position is a literal.
    let end = pattern.iter().skip(begin + 1).position(|end| *end == ']')? + begin + 1;
    let inside = &pattern[begin..end];
    let mut is_in = false;
    let mut at = 0;
    while at < inside.len() {
        match inside[at..] {
            [from, '-', to, ..] => {
                is_in |= (from..=to).contains(&letter);
                at += 3;
            }
            _ => {
                is_in |= inside[at] == letter;
                at += 1;
            }
        }
    }
    (is_in != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(directory: &Path) -> Result<Vec<OsString>, String> {
        match directory.to_str() {
            Some("." | "a") => Ok(["b", "a", "a-", "é", ".a"].map(OsString::from).to_vec()),
            Some("b") => Ok(vec!["c".into()]),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn matches_are_sorted_by_bytes() {
        let of = |pattern: &str| matching(Path::new(""), pattern, names_of);
        let paths = |names: &[&str]| Ok(names.iter().map(PathBuf::from).collect());
        assert_eq!(of("*"), paths(&["a", "a-", "b", "é"]));
        assert_eq!(of("a/?"), paths(&["a/a", "a/b", "a/é"]));
        assert_eq!(of("[ab]/c*"), paths(&["b/c"]));
        assert_eq!(of("a/*/x"), paths(&["a/a/x", "a/a-/x", "a/b/x", "a/é/x"]));
        assert_eq!(of("x/y"), paths(&["x/y"]), "nothing has to be listed");
        assert_eq!(of("x/*"), Err("Some(\"x\")".to_owned()));
        assert_eq!(
            matching(Path::new("[b"), "*", |_| Ok::<_, ()>(vec!["c".into()])),
            paths(&["[b/c"]).map_err(|_: String| ())
        );
        assert_eq!(
            matching(Path::new("[b"), "/x/y", names_of),
            paths(&["/x/y"])
        );
    }

    #[test]
    fn directory_listing_includes_hidden_files() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["b", ".a"] {
            fs::write(directory.path().join(name), "").expect("a file");
        }
        let mut found = names(directory.path()).expect("it can be listed");
        found.sort();
        assert_eq!(found, [".a", "b"]);
        let error = names(&directory.path().join("none")).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn patterns_match_like_glob() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.confx", false),
            ("*", ".hidden", false),
            (".*", ".hidden", true),
            ("a?c", "abc", true),
            ("a*b*c", "axbxbc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[ax", "ax", false),
            ("", "", true),
            ("***", "abc", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
