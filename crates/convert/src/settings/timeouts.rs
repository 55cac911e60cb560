//! `[timeouts]`: Onrush has one value for all servers, so different values of the input are merged.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::document::{Section, Value};
use crate::settings::unit::{bounded, written};
use crate::source::directive::Directive;
use crate::source::note::Notes;

/// Timeouts by key, with the directives that set them.
#[derive(Debug, Default)]
pub(crate) struct Timeouts<'a>(BTreeMap<&'static str, Vec<(Duration, &'a Directive)>>);

impl<'a> Timeouts<'a> {
    /// Records that `directive` sets `key`.
    pub(crate) fn record(&mut self, key: &'static str, time: Duration, directive: &'a Directive) {
        let said = self.0.entry(key).or_default();
        if !said.contains(&(time, directive)) {
            said.push((time, directive));
        }
    }

    /// Removes a key from `[timeouts]`, because each route has its own value.
    pub(crate) fn leave_to_routes(&mut self, key: &str, notes: &mut Notes) {
        for (_, directive) in self.0.remove(key).into_iter().flatten() {
            notes.carried(directive);
        }
    }

    /// The section, with the longest value of each timeout: a shorter one would end requests that the input allows.
    pub(crate) fn to_section(&self, notes: &mut Notes) -> Section {
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
                    true => format!("{key} = \"{value}\", the nearest supported value"),
                    false => format!("{key} applies to all requests: \"{value}\", from {place}"),
                };
                notes.approximated(directive, how);
            }
        }
        section
    }
}
