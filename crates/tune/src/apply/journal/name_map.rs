//! Maps the interface names in a journal to interfaces. Names can be changed, reused and swapped at any time, so
//! interfaces are identified by number, which is constant in a network namespace, and by device, which survives
//! reloading the driver.

use std::collections::BTreeMap;

use super::history::Line;
use super::identity::Identity;
use crate::facts::Facts;

/// Names in the lines of a journal with their interfaces.
#[derive(Debug, Clone, Default)]
pub(super) struct NameMap {
    noted: BTreeMap<String, Identity>,
    /// According to the current facts.
    present: BTreeMap<String, Identity>,
}

impl NameMap {
    /// Records that a name belongs to an interface from here on. In earlier lines, other names of this interface are
    /// replaced by the new one, and the same name of another interface by an alias.
    pub(super) fn record_name(&mut self, name: &str, identity: &Identity, lines: &mut [Line]) {
        let earlier = self.noted.iter().find(|(_, known)| *known == identity);
        let earlier = earlier.map(|(name, _)| name.clone());
        let mut names = BTreeMap::new();
        if let Some(other) = self
            .noted
            .get(name)
            .filter(|known| *known != identity)
            .cloned()
        {
            let alias = alias(name, &other);
            names.insert(name.to_owned(), alias.clone());
            self.noted.insert(alias, other);
        }
        if let Some(earlier) = earlier.filter(|earlier| earlier != name) {
            self.noted.remove(&earlier);
            names.insert(earlier, name.to_owned());
        }
        rename(lines, &names);
        self.noted.insert(name.to_owned(), identity.clone());
    }

    /// Replaces the names in all lines by the current ones, and by an alias if a name is reused after its interface is
    /// gone.
    pub(super) fn follow(&mut self, facts: &Facts, lines: &mut [Line]) {
        let mut names = BTreeMap::new();
        let mut noted = BTreeMap::new();
        for (name, identity) in std::mem::take(&mut self.noted) {
            let now = match identity.find(facts) {
                Some(interface) => interface.name.clone(),
                None if facts.interface(&name).is_some() => alias(&name, &identity),
                None => name.clone(),
            };
            // The recorded identity stays the old one; reloading a driver assigns a new number.
            noted.insert(now.clone(), identity);
            names.insert(name, now);
        }
        self.noted = noted;
        rename(lines, &names);
        let present = facts.interfaces.iter();
        self.present = present
            .map(|interface| (interface.name.clone(), Identity::of(interface)))
            .filter(|(_, identity)| identity.is_known())
            .collect();
    }

    /// Interface with a name that is about to be used, if the journal does not contain it yet.
    pub(super) fn unrecorded(&self, name: &str) -> Option<(String, Identity)> {
        let identity = self.present.get(name)?;
        (self.noted.get(name) != Some(identity)).then(|| (name.to_owned(), identity.clone()))
    }
}

/// Name for an interface whose name is reused. No interface can have it, since it has more than 15 bytes and a slash.
fn alias(name: &str, identity: &Identity) -> String {
    let first = name.split(" (once ").next().unwrap_or(name);
    let index = identity.index.map(|index| format!("interface/{index}"));
    let device = identity
        .device
        .as_ref()
        .map(|device| format!("device/{device}"));
    let what: Vec<String> = index.into_iter().chain(device).collect();
    format!("{first} (once {})", what.join(", "))
}

/// Renames all at once, since names may be swapped.
fn rename(lines: &mut [Line], names: &BTreeMap<String, String>) {
    if names.iter().all(|(old, new)| old == new) {
        return;
    }
    for line in lines {
        let target = match line {
            Line::Change { target, .. }
            | Line::Keep { target, .. }
            | Line::Kept { target, .. }
            | Line::Refused { target } => target,
            Line::Begin { .. }
            | Line::Bearer { .. }
            | Line::Lost(_)
            | Line::Wish { .. }
            | Line::Guard(_)
            | Line::Waits
            | Line::Confirmed => continue,
        };
        if let Some(name) = target.interface().and_then(|name| names.get(name)) {
            target.rename(name);
        }
    }
}
