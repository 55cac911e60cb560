//! Automata of regular expressions, to decide questions about all paths with a prefix.

use regex_automata::Anchored;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};

use crate::limits::AUTOMATON_BYTES_MAX;

pub use regex_automata::hybrid::LazyStateID as State;

/// Automaton of an expression with the syntax and meaning of the `regex` crate. Methods return `None` if the expression
/// is too large or uses a feature that an automaton does not support.
#[derive(Debug)]
pub struct Automaton {
    states: DFA,
    cache: Cache,
}

impl Automaton {
    /// Builds the automaton.
    pub fn new(pattern: &str) -> Option<Automaton> {
        // States stay valid: the cache is never cleared.
        let config = DFA::config()
            .cache_capacity(AUTOMATON_BYTES_MAX)
            .minimum_cache_clear_count(Some(0));
        let states = DFA::builder()
            .configure(config)
            .syntax(syntax::Config::new().utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build(pattern)
            .ok()?;
        let cache = states.create_cache();
        Some(Automaton { states, cache })
    }

    /// State before the first byte.
    pub fn start(&mut self) -> Option<State> {
        self.start_after(None)
    }

    /// State at the start of a search that is preceded by this byte.
    pub fn start_after(&mut self, byte: Option<u8>) -> Option<State> {
        let begin = start::Config::new()
            .anchored(Anchored::No)
            .look_behind(byte);
        self.states.start_state(&mut self.cache, &begin).ok()
    }

    /// State after `byte`. A match is final.
    pub fn next(&mut self, state: State, byte: u8) -> Option<State> {
        if state.is_match() {
            return Some(state);
        }
        let next = self.states.next_state(&mut self.cache, state, byte);
        next.ok().filter(|next| !next.is_quit())
    }

    /// State after `text`.
    pub fn read(&mut self, state: State, text: &str) -> Option<State> {
        text.bytes()
            .try_fold(state, |state, byte| self.next(state, byte))
    }

    /// Whether the expression matches if the text ends in this state.
    pub fn is_match_at_end(&mut self, state: State) -> Option<bool> {
        let end = self.states.next_eoi_state(&mut self.cache, state);
        Some(state.is_match() || end.ok()?.is_match())
    }
}

/// Whether the expression may match a path that begins with `beginning`. `true` if this cannot be decided.
pub fn may_begin_with(pattern: &str, beginning: &str) -> bool {
    let outlives = |mut automaton: Automaton| {
        let start = automaton.start()?;
        let state = automaton.read(start, beginning)?;
        Some(!state.is_dead())
    };
    Automaton::new(pattern).and_then(outlives).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchored_regex_rejects_other_prefixes() {
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
