//! Colours of variants, the same in all charts of a page.

use std::collections::BTreeMap;

use crate::outcome::Outcome;

const COLOURS: usize = 6;

/// Colour class of each variant: cool colours for ours, warm ones for theirs.
pub(super) struct Palette(BTreeMap<String, String>);

impl Palette {
    pub(super) fn of(outcome: &Outcome) -> Palette {
        let mut classes: BTreeMap<String, String> = BTreeMap::new();
        for variant in outcome.works.iter().flat_map(|work| &work.variants) {
            let kind = if variant.ours { 'o' } else { 't' };
            let taken = classes
                .values()
                .filter(|class| class.starts_with(kind))
                .count();
            classes
                .entry(variant.name.clone())
                .or_insert_with(|| format!("{kind}{}", taken % COLOURS + 1));
        }
        Palette(classes)
    }

    pub(super) fn class(&self, variant: &str) -> &str {
        self.0.get(variant).map_or("", String::as_str)
    }
}
