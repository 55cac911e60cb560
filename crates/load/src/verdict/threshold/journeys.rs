//! Checks of conditions about journeys and steps, before a run.

use super::{ScopeIndex, Threshold};
use crate::journey::steps::{Journeys, Step};

impl Threshold {
    /// Rejects a condition about a journey or step that does not exist, or about checks where there are none.
    ///
    /// # Errors
    /// Lists the existing ones.
    pub fn check_journeys(&self, journeys: &Journeys) -> Result<(), String> {
        let all = journeys.all();
        let place = match self.scope() {
            None => None,
            Some(scope) => {
                let named = all.iter().map(|(name, steps)| {
                    let steps = steps.iter().map(|step| step.name.as_str());
                    (*name, steps.collect())
                });
                Some(scope.find(&named.collect::<Vec<(&str, Vec<&str>)>>())?)
            }
        };
        if !self.is_about_checks() {
            return Ok(());
        }
        let steps: Vec<&Step> = match place {
            None => journeys
                .journeys
                .iter()
                .flat_map(|journey| &journey.steps)
                .collect(),
            Some(ScopeIndex {
                journey,
                step: None,
            }) => all[journey].1.iter().collect(),
            Some(ScopeIndex {
                journey,
                step: Some(step),
            }) => vec![&all[journey].1[step]],
        };
        match steps.iter().any(|step| !step.checks.is_empty()) {
            true => Ok(()),
            false => Err("it has no checks: give its steps check = [ ... ]".to_owned()),
        }
    }
}
