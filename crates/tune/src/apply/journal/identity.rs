//! Identity of an interface that survives renaming.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Interface};

/// Properties of an interface that renaming does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// `ifindex`. Unique, because a journal belongs to one network namespace and one boot.
    pub(super) index: Option<u32>,
    /// Bus address of the device; `None` for virtual interfaces.
    pub(super) device: Option<String>,
    pub(super) port: Option<u32>,
}

impl Identity {
    pub(super) fn of(interface: &Interface) -> Identity {
        Identity {
            index: interface.index,
            device: interface.device.clone(),
            port: interface.port,
        }
    }

    /// Current interface: the one with this number, or else the only one of this device, if its driver was reloaded.
    /// `None` if it is gone.
    pub(super) fn find<'facts>(&self, facts: &'facts Facts) -> Option<&'facts Interface> {
        let all = || facts.interfaces.iter();
        let is_of_device = |other: &&Interface| {
            (other.device.as_ref(), other.port) == (self.device.as_ref(), self.port)
        };
        let mut same = all().filter(|other| self.index.is_some() && other.index == self.index);
        if let Some(found) = same.find(is_of_device) {
            return Some(found);
        }
        let mut of_device = all().filter(|other| self.device.is_some() && is_of_device(other));
        of_device.next().filter(|_| of_device.next().is_none())
    }

    pub(super) fn is_known(&self) -> bool {
        self.index.is_some() || self.device.is_some()
    }
}
