//! Changes and notes of a plan.

use serde::{Deserialize, Serialize};

use super::target::Target;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// Target, by names that survive a reset of the device.
    #[serde(skip)]
    pub target: Target,
    /// Current location: a file, `ethtool:eth0/channels/combined`, `service:irqbalance`, or `thread:77/78`.
    pub path: String,
    /// Current value in the kernel's spelling.
    pub current: String,
    /// Proposed value.
    pub proposed: String,
    /// Reason, in one sentence.
    pub reason: String,
    /// Source of the recommendation.
    pub source: String,
    /// Risk.
    pub risk: String,
    /// How to undo it.
    pub revert: Revert,
    /// Expected effect.
    pub effect: String,
}

/// How to undo a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revert {
    /// Write the old value.
    WriteBack,
    /// Write the old value, which resets the interface briefly.
    WriteBackWithReset,
    /// Start the service.
    StartService,
}

/// Information without a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Subject: a setting, an interface, a program.
    pub about: String,
    /// Predicate: the rest of the sentence.
    pub text: String,
}

impl Note {
    pub(super) fn new(about: &str, text: &str) -> Note {
        Note {
            about: about.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Note about a file below /proc/sys, by its sysctl(8) name.
    pub(super) fn of_setting(file: &str, text: &str) -> Note {
        Note::new(&file.replace('/', "."), text)
    }
}
