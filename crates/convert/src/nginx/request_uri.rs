//! Conditions on `$request_uri`, the raw path with the query. Onrush compares only the path, decoded and without dot
//! segments, so a part of such a condition may be unknown.

use super::field::Comparison;
use crate::expression::automaton::query_effect;
use crate::expression::condition::{Atom, Path};
use crate::expression::decide::Formula;
use crate::expression::pcre::with_pcre_semantics;

const NO_QUERY: &str = "conditions on paths do not include the query";
const DECODED: &str = "paths are compared decoded, without dot segments and empty segments";

/// The condition that the target has the wanted value.
pub(super) fn target(wanted: &Comparison<'_>) -> Result<Formula, String> {
    let path = match wanted {
        Comparison::Equal(text) | Comparison::Alike(text) if text.contains('?') => {
            return Err(NO_QUERY.to_owned());
        }
        Comparison::Equal(text) | Comparison::Alike(text) if is_as_written(text) => {
            return Ok(Formula::Any(vec![unknown(DECODED)]));
        }
        Comparison::Equal(text) => Path::Exact((*text).to_owned()),
        Comparison::Alike(text) => Path::Pattern(format!("(?i)^{}$", regex::escape(text))),
        Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => return found(pattern),
        Comparison::Set => Path::Any,
    };
    let path = Formula::Atom(Atom::Path(path));
    Ok(match wanted {
        Comparison::Set => path,
        _ => Formula::All(vec![path, unknown(NO_QUERY)]),
    })
}

fn found(pattern: &str) -> Result<Formula, String> {
    if pattern.contains(['=', '&']) || pattern.contains("\\?") {
        return Err(NO_QUERY.to_owned());
    }
    let path = Formula::Atom(Atom::Path(Path::Pattern(pattern.to_owned())));
    let beyond = query_effect(&with_pcre_semantics(pattern));
    let path = match beyond.is_lost {
        true => Formula::All(vec![path, unknown(NO_QUERY)]),
        false => path,
    };
    let is_as_written = is_as_written(&pattern.replace('\\', ""));
    Ok(match (is_as_written, beyond.is_found) {
        (true, _) => Formula::Any(vec![path, unknown(DECODED)]),
        (false, true) => Formula::Any(vec![path, unknown(NO_QUERY)]),
        (false, false) => path,
    })
}

fn unknown(why: &str) -> Formula {
    Formula::Unknown(why.to_owned())
}

/// Whether a target with this text differs from its normalized path.
fn is_as_written(text: &str) -> bool {
    ["%", "//", "/./", ".."]
        .iter()
        .any(|part| text.contains(part))
}
