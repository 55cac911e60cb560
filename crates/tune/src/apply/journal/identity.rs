//! By what an interface is known when its name changes.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Interface};

/// What of an interface stays when it is renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// `ifindex`; the journal is of one network namespace in one run of the machine.
    pub(super) index: Option<u32>,
    /// Where its device is; none for a virtual one.
    pub(super) device: Option<String>,
    /// Which port of that.
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

    /// The interface that it is now: the one with its number, or else the only one of its device, whose driver was loaded
    /// again. None when it is gone.
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
