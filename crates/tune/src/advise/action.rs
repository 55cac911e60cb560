//! One change of a plan, and what is only said.

use serde::{Deserialize, Serialize};

use super::target::Target;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// What is changed, by names that survive a reset of the device.
    #[serde(skip)]
    pub target: Target,
    /// Where that is now: a file, `ethtool:eth0/channels/combined`, `service:irqbalance`, or `thread:77/78`.
    pub path: String,
    /// What is there now, as the kernel spells it.
    pub current: String,
    /// What should be there.
    pub proposed: String,
    /// Why, in one sentence.
    pub reason: String,
    /// Who says so.
    pub source: String,
    /// What may go wrong.
    pub risk: String,
    /// What it takes to undo it.
    pub revert: Revert,
    /// What should be seen to change.
    pub effect: String,
}

/// What it takes to undo a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revert {
    /// Writing the old value back.
    WriteBack,
    /// Writing it back, with the interface reset for a moment.
    WriteBackWithReset,
    /// Starting the service again.
    StartService,
}

/// Something worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A setting, an interface, a program.
    pub about: String,
    /// What about it, as the rest of a sentence.
    pub text: String,
}

impl Note {
    pub(super) fn new(about: &str, text: &str) -> Note {
        Note {
            about: about.to_owned(),
            text: text.to_owned(),
        }
    }

    /// About a file below /proc/sys, by the name that sysctl(8) has for it.
    pub(super) fn of_setting(file: &str, text: &str) -> Note {
        Note::new(&file.replace('/', "."), text)
    }
}
