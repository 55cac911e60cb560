//! Timeouts, which Onrush has once for all: what several places say becomes one value.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::document::{Section, Value};
use crate::settings::unit::{bounded, written};
use crate::source::directive::Directive;
use crate::source::note::Notes;

/// Timeouts by their keys.
#[derive(Debug, Default)]
pub(crate) struct Timeouts<'a>(BTreeMap<&'static str, Vec<(Duration, &'a Directive)>>);

impl<'a> Timeouts<'a> {
    /// What `directive` says of `key`.
    pub(crate) fn say(&mut self, key: &'static str, time: Duration, directive: &'a Directive) {
        let said = self.0.entry(key).or_default();
        if !said.contains(&(time, directive)) {
            said.push((time, directive));
        }
    }

    /// Takes a key out: each route has its own value.
    pub(crate) fn leave_to_routes(&mut self, key: &str, notes: &mut Notes) {
        for (_, directive) in self.0.remove(key).into_iter().flatten() {
            notes.carried(directive);
        }
    }

    /// `[timeouts]`, with the longest of each that was said: a shorter one would cut what was allowed to take its time.
    pub(crate) fn written(&self, notes: &mut Notes) -> Section {
        let mut section = Section::new("[timeouts]");
        for (key, said) in &self.0 {
            let Some((longest, from)) = said.iter().max_by_key(|(time, _)| *time) else {
                continue;
            };
            let time = bounded(*longest);
            section.put_with_comment(key, Value::Text(written(time)), from.origin());
            for (said, directive) in said {
                if *said == time {
                    notes.carried(directive);
                    continue;
                }
                let (value, place) = (written(time), &from.place);
                let how = match said == longest {
                    true => format!("{key} = \"{value}\", the nearest that is taken"),
                    false => format!("{key} holds for all requests: \"{value}\", of {place}"),
                };
                notes.approximated(directive, how);
            }
        }
        section
    }
}
