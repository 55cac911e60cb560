//! Whether a path edit can make an expression match.

use std::collections::HashSet;

use crate::automaton::Automaton;
use crate::limits::AUTOMATON_PAIRS_MAX;

/// Whether there is a `rest` for which the expression matches `to` + rest + `tail` but not `from` + rest. Ignores a
/// rest that repeats `from` in the new path, such as `/api/api/x` if `/api/` becomes `/`: an expression for `/api/x` is
/// meant for the client's path. `true` if this cannot be decided, because the expression is too large.
pub(super) fn may_match_after_move(pattern: &str, from: &str, to: &str, tail: &str) -> bool {
    search(pattern, from, to, tail).unwrap_or(true)
}

fn search(pattern: &str, from: &str, to: &str, tail: &str) -> Option<bool> {
    let mut reader = Automaton::new(pattern)?;
    let repeated = format!("{}/", from.trim_end_matches('/'));
    let begun = repeated.starts_with(to).then_some(to.len());
    let begun = begun.filter(|begun| *begun < repeated.len());
    let start = reader.start()?;
    let first = (reader.read(start, to)?, reader.read(start, from)?, begun);
    let mut seen = HashSet::from([first]);
    let mut pending = vec![first];
    while let Some((edited, client, begun)) = pending.pop() {
        if edited.is_dead() || client.is_match() {
            continue;
        }
        let whole = reader.read(edited, tail)?;
        if reader.is_match_at_end(whole)? && !reader.is_match_at_end(client)? {
            return Some(true);
        }
        for byte in b' '..=u8::MAX {
            let begun = begun.filter(|at| repeated.as_bytes()[*at] == byte);
            let begun = begun.map(|at| at + 1);
            if begun == Some(repeated.len()) {
                continue;
            }
            let next = (
                reader.next(edited, byte)?,
                reader.next(client, byte)?,
                begun,
            );
            if seen.insert(next) {
                pending.push(next);
            }
        }
        if seen.len() > AUTOMATON_PAIRS_MAX {
            return None;
        }
    }
    Some(false)
}
