//! What a journal describes, and dies with: one run of a machine, and one network namespace of it.

use std::io;

use super::machine::{Machine, Place, Root};

/// One run of a machine, and one network namespace of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The machine's boot id.
    pub(super) boot: String,
    /// A number of the network namespace that no other gets in this run; none where the kernel does not say.
    pub(super) namespace: Option<u64>,
}

/// What asks the kernel for the cookie of the network namespace we are in.
pub type AskNamespace = fn() -> io::Result<u64>;

impl Life {
    /// Of a machine now. The kernel says the cookie by `getsockopt` only, which takes `unsafe`, so it is brought by who
    /// asks; below another root it would be of somebody else, and is not asked for.
    pub fn of(machine: &Root, ask: AskNamespace) -> Life {
        let place = Place::File("/proc/sys/kernel/random/boot_id".to_owned());
        let boot = machine.get(&place).unwrap_or_default();
        Life {
            boot: boot.trim().to_owned(),
            namespace: machine.is_live().then(ask).and_then(Result::ok),
        }
    }

    /// Whether what was written then is about what still is. A namespace that is not known may be the same.
    pub(super) fn is_of(&self, boot: &str, namespace: Option<u64>) -> bool {
        let is_other = self
            .namespace
            .zip(namespace)
            .is_some_and(|(ours, theirs)| ours != theirs);
        self.boot == boot && !is_other
    }
}

/// A boot id, and nothing known of the network namespace.
impl From<&str> for Life {
    fn from(boot: &str) -> Life {
        Life {
            boot: boot.to_owned(),
            namespace: None,
        }
    }
}
