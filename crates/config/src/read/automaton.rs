//! Decides whether an expression may match a path of which only the beginning is known.

use std::collections::HashSet;

use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::{start, syntax};

use crate::limits::{AUTOMATON_BYTES_MAX, AUTOMATON_PAIRS_MAX};

/// Whether there may be a path that begins with `beginning` and that the expression matches. `true` if the expression is too large
/// to decide this.
pub(super) fn may_begin_with(pattern: &str, beginning: &str) -> bool {
    outlives(pattern, beginning).unwrap_or(true)
}

fn outlives(pattern: &str, beginning: &str) -> Option<bool> {
    let mut reader = Reader::new(pattern)?;
    let start = reader.start()?;
    let state = reader.read(start, beginning)?;
    Some(!state.is_dead())
}

/// Whether there may be a rest with which the expression matches `to` + rest + `tail` and does not match `from` + rest.
/// Ignores a rest that repeats `from` in the new path, as `/api/api/x` does where `/api/` becomes `/`: an expression for
/// `/api/x` means the path of the client. `true` if the expression is too large to decide this.
pub(super) fn may_match_after_move(pattern: &str, from: &str, to: &str, tail: &str) -> bool {
    search(pattern, from, to, tail).unwrap_or(true)
}

fn search(pattern: &str, from: &str, to: &str, tail: &str) -> Option<bool> {
    let mut reader = Reader::new(pattern)?;
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

/// The automaton of an expression. `None` where it cannot be decided whether the expression matches.
struct Reader {
    automaton: DFA,
    cache: Cache,
}

impl Reader {
    fn new(pattern: &str) -> Option<Reader> {
        // States stay valid: the cache is never cleared.
        let config = DFA::config()
            .cache_capacity(AUTOMATON_BYTES_MAX)
            .minimum_cache_clear_count(Some(0));
        let automaton = DFA::builder()
            .configure(config)
            .syntax(syntax::Config::new().utf8(false))
            .build(pattern)
            .ok()?;
        let cache = automaton.create_cache();
        Some(Reader { automaton, cache })
    }

    fn start(&mut self) -> Option<LazyStateID> {
        let begin = start::Config::new().anchored(Anchored::No);
        self.automaton.start_state(&mut self.cache, &begin).ok()
    }

    /// The state after `byte`. A match stays a match.
    fn next(&mut self, state: LazyStateID, byte: u8) -> Option<LazyStateID> {
        if state.is_match() {
            return Some(state);
        }
        let next = self.automaton.next_state(&mut self.cache, state, byte);
        next.ok().filter(|state| !state.is_quit())
    }

    fn read(&mut self, state: LazyStateID, text: &str) -> Option<LazyStateID> {
        text.bytes()
            .try_fold(state, |state, byte| self.next(state, byte))
    }

    /// Whether the expression matches a path that ends here.
    fn is_match_at_end(&mut self, state: LazyStateID) -> Option<bool> {
        let end = self.automaton.next_eoi_state(&mut self.cache, state);
        Some(state.is_match() || end.ok()?.is_match())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchored_expressions_end_at_another_beginning() {
        for (pattern, beginning, wanted) in [
            ("^/admin(/|$)", "/", true),
            ("^/admin(/|$)", "/admin/x", true),
            ("^/admin(/|$)", "/administrator", false),
            ("^/admin", "/api", false),
            ("^/(api/)?admin", "/api/", true),
            ("(?i)^/ADMIN", "/ad", true),
            (r"/\.git", "/api", true),
            ("^/v[0-9]+/private$", "/v2", true),
            ("^/v[0-9]+/private$", "/w2", false),
            ("[", "/", true),
        ] {
            assert_eq!(
                may_begin_with(pattern, beginning),
                wanted,
                "{pattern} {beginning}"
            );
        }
    }
}
