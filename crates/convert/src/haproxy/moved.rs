//! Rules that change the path that a server is asked for.

use crate::condition::{Atom, Path};
use crate::decide::Formula;
use crate::directive::Directive;
use crate::pattern::simple;

/// What a rule that changes the path asks for besides its condition: the path that it changes.
///
/// # Errors
/// With a sentence about what Onrush has nothing for.
pub(super) fn narrowed(line: &Directive, formula: Formula) -> Result<Formula, String> {
    match moved(line)? {
        Some((prefix, _)) if prefix != "/" => {
            let path = Atom::Path(Path::Prefix(prefix));
            Ok(Formula::All(vec![formula, Formula::Atom(path)]))
        }
        _ => Ok(formula),
    }
}

/// The prefix that a rule replaces, and by what; none for rules that do something else.
pub(super) fn moved(line: &Directive) -> Result<Option<(String, String)>, String> {
    const WHY: &str = "Onrush replaces the beginning of a path, and no other part of it";
    let (pattern, target) = match (line.argument(0), line.argument(1), line.argument(2)) {
        ("replace-path" | "replace-pathq" | "replace-uri", pattern, target) => {
            (pattern.to_owned(), target.to_owned())
        }
        // What is behind the match stays.
        ("set-path" | "set-pathq", text, _) => {
            let inner = text
                .strip_prefix("%[path,regsub(")
                .or(text.strip_prefix("%[pathq,regsub("));
            let inner = inner.and_then(|inner| inner.strip_suffix(")]"));
            let Some((pattern, target)) = inner.and_then(|inner| inner.split_once(',')) else {
                return Err(WHY.to_owned());
            };
            let target = target.split(',').next().unwrap_or_default();
            (format!("{pattern}(.*)"), format!("{target}\\1"))
        }
        _ => return Ok(None),
    };
    let pattern = match pattern.starts_with('/') {
        true => format!("^{pattern}"),
        false => pattern,
    };
    let found = simple(&pattern).zip(target.strip_suffix("\\1"));
    match found {
        Some((simple, target)) if target.is_empty() || target.starts_with('/') => {
            let is_bad = |letter: char| matches!(letter, '%' | '\\' | '?' | '#' | ' ');
            match (simple.path, simple.captured) {
                (Path::Prefix(prefix), Some(begin)) if !target.contains(is_bad) => {
                    let target = format!("{target}{begin}").replace("//", "/");
                    let target = if target.is_empty() {
                        "/".to_owned()
                    } else {
                        target
                    };
                    Ok(Some((prefix, target)))
                }
                _ => Err(WHY.to_owned()),
            }
        }
        _ => Err(WHY.to_owned()),
    }
}
