//! Lifetime of the changes in a journal: one boot and one network namespace.

use std::io;

use super::machine::{Location, Machine, Root};

/// One boot of a machine and one network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalScope {
    pub(super) boot: String,
    /// Cookie of the network namespace, unique in this boot; `None` if the kernel does not report it.
    pub(super) namespace: Option<u64>,
}

/// Function that returns the cookie of the current network namespace.
pub type AskNamespace = fn() -> io::Result<u64>;

impl JournalScope {
    /// Current life of a machine. The cookie is available by `getsockopt` only, which needs `unsafe`, so the caller
    /// provides the function. Below another root it would be the wrong one, and is not read.
    pub fn of(machine: &Root, ask: AskNamespace) -> JournalScope {
        let place = Location::File("/proc/sys/kernel/random/boot_id".to_owned());
        let boot = machine.get(&place).unwrap_or_default();
        JournalScope {
            boot: boot.trim().to_owned(),
            namespace: machine.is_live().then(ask).and_then(Result::ok),
        }
    }

    /// Whether a journal with this boot and namespace is still valid. An unknown namespace counts as equal.
    pub(super) fn is_of(&self, boot: &str, namespace: Option<u64>) -> bool {
        let is_other = self
            .namespace
            .zip(namespace)
            .is_some_and(|(ours, theirs)| ours != theirs);
        self.boot == boot && !is_other
    }
}

/// Creates a life with an unknown network namespace.
impl From<&str> for JournalScope {
    fn from(boot: &str) -> JournalScope {
        JournalScope {
            boot: boot.to_owned(),
            namespace: None,
        }
    }
}
