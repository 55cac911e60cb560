//! Patterns of file names, as glob(3) takes them: `*`, `?` and `[…]`, none of which matches a `/` or a leading dot.

use std::path::{Component, Path, PathBuf};

use crate::limits;
use crate::source::Files;

/// Whether a name is a pattern.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The files that a pattern stands for, in the order of their names.
pub(super) fn matching(files: &dyn Files, pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
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
            let mut names = files.list(directory);
            names.retain(|candidate| matches(&name, candidate));
            names.sort_unstable();
            next.extend(names.into_iter().map(|name| path.join(name)));
            next.truncate(limits::NAMES_MAX);
        }
        found = next;
    }
    found
}

/// Whether one name is of the pattern.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // Where to go on when the letters behind the last `*` do not fit.
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

/// The length of the class that a pattern begins with, when `letter` is in it.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let begin = if negated { 2 } else { 1 };
    // What stands first is never the end.
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

    #[test]
    fn names_match_as_with_glob() {
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
