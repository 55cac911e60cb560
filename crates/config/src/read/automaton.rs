//! Decides whether an expression may match a path of which only the beginning is known.

use regex_automata::Anchored;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::util::{start, syntax};

use crate::limits::AUTOMATON_BYTES_MAX;

/// Whether there may be a path that begins with `beginning` and that the expression matches. `true` if the expression is too large
/// to decide this.
pub(super) fn may_begin_with(pattern: &str, beginning: &str) -> bool {
    outlives(pattern, beginning).unwrap_or(true)
}

fn outlives(pattern: &str, beginning: &str) -> Option<bool> {
    let config = DFA::config().cache_capacity(AUTOMATON_BYTES_MAX);
    let automaton = DFA::builder()
        .configure(config)
        .syntax(syntax::Config::new().utf8(false))
        .build(pattern)
        .ok()?;
    let mut cache = automaton.create_cache();
    let begin = start::Config::new().anchored(Anchored::No);
    let mut state = automaton.start_state(&mut cache, &begin).ok()?;
    for byte in beginning.bytes() {
        state = automaton.next_state(&mut cache, state, byte).ok()?;
        if state.is_match() || state.is_quit() {
            return Some(true);
        }
    }
    Some(!state.is_dead())
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
