//! Who bears the names of interfaces in a journal. Names are given and taken by anybody at any time, and swapped; what was
//! changed of an interface is found again by what stays: its number in the network namespace, which it keeps for as long
//! as it is there, and its device, which outlives the driver.

use std::collections::BTreeMap;

use super::history::Line;
use super::identity::Identity;
use crate::facts::Facts;

/// The names in the lines of a journal, and whose they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Bearers {
    noted: BTreeMap<String, Identity>,
    /// By the facts of this moment.
    present: BTreeMap<String, Identity>,
}

impl Bearers {
    /// From here on a name is that of an interface. Lines before are of that interface when it had another name then, and
    /// not of it when another one had this name.
    pub(super) fn met(&mut self, name: &str, identity: &Identity, lines: &mut [Line]) {
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

    /// Gives each interface in the lines the name that it has by these facts; one that is gone gets a name that nobody has.
    pub(super) fn follow(&mut self, facts: &Facts, lines: &mut [Line]) {
        let mut names = BTreeMap::new();
        let mut noted = BTreeMap::new();
        for (name, identity) in std::mem::take(&mut self.noted) {
            let now = match identity.find(facts) {
                Some(interface) => interface.name.clone(),
                None if facts.interface(&name).is_some() => alias(&name, &identity),
                None => name.clone(),
            };
            // A driver that was loaded again gives another number.
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

    /// The bearer of a name that is about to be used, when no line says so yet.
    pub(super) fn stranger(&self, name: &str) -> Option<(String, Identity)> {
        let identity = self.present.get(name)?;
        (self.noted.get(name) != Some(identity)).then(|| (name.to_owned(), identity.clone()))
    }
}

/// A name that no interface can have, since it is longer than 15 bytes and has a slash, for one whose name is another's
/// now.
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

/// Renames all at once, since names may have been swapped.
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
