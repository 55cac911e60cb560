//! Scope of a condition: a journey, or a step of one.
//!
//! ```text
//! scope := "{" part ["," part] "}"        {step:login}    {journey:buy}    {journey:buy,step:pay}
//! part  := ("journey" | "step") ":" name
//! ```

use std::fmt;

/// A journey, or a step of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    journey: Option<String>,
    step: Option<String>,
}

/// Position of a scope in the list of journeys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScopeIndex {
    /// Index of the journey.
    pub journey: usize,
    /// Index of the step; `None` for the whole journey.
    pub step: Option<usize>,
}

const FORM: &str = "expected {journey:NAME}, {step:NAME} or {journey:NAME,step:NAME}";

impl Scope {
    /// Parses the text between the braces.
    ///
    /// # Errors
    /// The expected form.
    pub(super) fn parse(text: &str) -> Result<Scope, String> {
        let wrong = || format!("{{{text}}} names no journey and no step: {FORM}");
        let text = text.trim();
        // A name may contain a comma, so split before the keyword of the second part.
        let (journey, step) = match text.strip_prefix("journey:") {
            None => (None, Some(text.strip_prefix("step:").ok_or_else(wrong)?)),
            Some(rest) => match rest.split_once(",step:").or(rest.split_once(", step:")) {
                None => (Some(rest), None),
                Some((journey, step)) => (Some(journey), Some(step)),
            },
        };
        let name = |name: Option<&str>| match name.map(str::trim) {
            Some("") => Err(wrong()),
            name => Ok(name.map(str::to_owned)),
        };
        Ok(Scope {
            journey: name(journey)?,
            step: name(step)?,
        })
    }

    /// Finds the scope among journeys, each given by its name and the names of its steps.
    ///
    /// # Errors
    /// When it matches none, or more than one.
    pub(crate) fn find(&self, journeys: &[(&str, Vec<&str>)]) -> Result<ScopeIndex, String> {
        let named = |name: &str| self.journey.as_deref().is_none_or(|of| of == name);
        let of_journeys = journeys
            .iter()
            .enumerate()
            .filter(|(_, (name, _))| named(name));
        let mut places = of_journeys.flat_map(|(journey, (_, steps))| {
            let places: Vec<ScopeIndex> = match &self.step {
                None => vec![ScopeIndex {
                    journey,
                    step: None,
                }],
                Some(name) => {
                    let found = steps.iter().position(|step| step == name);
                    let place = |step| ScopeIndex {
                        journey,
                        step: Some(step),
                    };
                    found.map(place).into_iter().collect()
                }
            };
            places
        });
        let Some(place) = places.next() else {
            let known = journeys
                .iter()
                .map(|(name, steps)| format!("{name} ({})", steps.join(", ")));
            let known: Vec<String> = known.collect();
            return Err(match known.len() {
                0 => format!(
                    "{self} does not exist, because the load has no journeys: pass --journeys FILE"
                ),
                _ => format!(
                    "{self} is not among the journeys and their steps: {}",
                    known.join("; ")
                ),
            });
        };
        match places.next() {
            None => Ok(place),
            Some(other) => Err(format!(
                "{self} is in the journeys {:?} and {:?}: write {{journey:NAME,step:NAME}}",
                journeys[place.journey].0, journeys[other.journey].0
            )),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.journey, &self.step) {
            (Some(journey), None) => write!(out, "{{journey:{journey}}}"),
            (Some(journey), Some(step)) => write!(out, "{{journey:{journey},step:{step}}}"),
            (None, step) => write!(out, "{{step:{}}}", step.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        Scope::parse(text).unwrap_or_else(|message| panic!("{text}: {message}"))
    }

    fn journeys() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![
            ("buy", vec!["login", "list", "pay, at last"]),
            ("look", vec!["login", "look around"]),
        ]
    }

    #[test]
    fn scopes_select_journey_or_step_by_name() {
        for (text, journey, step) in [
            ("journey:buy", 0, None),
            ("journey: look ", 1, None),
            ("step:list", 0, Some(1)),
            ("step:look around", 1, Some(1)),
            ("step:pay, at last", 0, Some(2)),
            ("journey:look,step:login", 1, Some(0)),
            ("journey:look, step:login", 1, Some(0)),
        ] {
            let found = scope(text).find(&journeys());
            assert_eq!(found, Ok(ScopeIndex { journey, step }), "{text}");
        }
    }

    #[test]
    fn missing_and_ambiguous_scopes_are_errors() {
        for (text, said) in [
            ("step:login", "in the journeys \"buy\" and \"look\""),
            ("journey:sell", "buy (login, list, pay, at last); look"),
            ("journey:look,step:list", "not among"),
        ] {
            let found = scope(text).find(&journeys());
            assert!(
                found.as_ref().is_err_and(|why| why.contains(said)),
                "{text}: {found:?}"
            );
        }
        let found = scope("journey:buy").find(&[]);
        assert!(found.is_err_and(|why| why.contains("the load has no journeys")));
        for text in [
            "",
            "login",
            "step:",
            "journey:,step:a",
            "journey:a,step:",
            "url:/",
        ] {
            assert!(
                Scope::parse(text).is_err_and(|why| why.contains("expected {journey")),
                "{text}"
            );
        }
    }
}
