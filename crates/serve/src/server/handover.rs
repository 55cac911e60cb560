//! Handing listening sockets to a replacing process. Until it takes over, either process may accept queued connections,
//! so none is refused or lost.

use onrush_config::plan::Listener;
use onrush_engine::{Address, Claim, ClaimSockets, Io};

use crate::site::accept::{Distribution, DistributionMethod};
use crate::site::start_error::StartError;

/// Sockets and settings for the replacing process.
#[derive(Debug)]
pub struct Handover {
    /// Settings that must match.
    pub manner: ListenSettings,
    /// Listening sockets, in the order of the configuration.
    pub listening: Vec<HandedAddress>,
}

/// Settings that both processes must share, because cores share the queues of listening sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenSettings {
    /// Number of cores, and of sockets per address.
    pub cores: usize,
    /// The driver: accept works differently in each.
    pub io: Io,
    /// Whether connections are distributed by CPU.
    pub is_by_cpu: bool,
}

/// One address and its sockets.
#[derive(Debug)]
pub struct HandedAddress {
    /// The address as configured; its port may be 0.
    pub written: String,
    /// The actual address.
    pub address: Address,
    /// The listening sockets.
    pub sockets: ClaimSockets,
}

/// Inherited addresses not claimed yet.
pub(super) struct InheritedAddresses(Vec<Option<HandedAddress>>);

impl InheritedAddresses {
    /// The addresses of a process that listened with the same `manner`. Fails if it differs.
    pub(super) fn new(
        handover: Option<Handover>,
        manner: ListenSettings,
    ) -> Result<Self, StartError> {
        let Some(handover) = handover else {
            return Ok(Self(Vec::new()));
        };
        let theirs = handover.manner;
        let what = match () {
            () if theirs.cores != manner.cores => "the number of cores",
            () if theirs.io != manner.io => "the driver",
            () if theirs.is_by_cpu != manner.is_by_cpu => {
                "the distribution of connections to cores"
            }
            () => return Ok(Self(handover.listening.into_iter().map(Some).collect())),
        };
        Err(StartError::Handover(what))
    }

    /// Claims the address of `listen` if the other process has one with the same configured address.
    pub(super) fn claim(&mut self, listen: &Listener) -> Option<Claim> {
        if !listen.protocol.transport().has_tcp() {
            return None;
        }
        let written = listen.address.to_string();
        let is_meant = |handed: &&mut Option<HandedAddress>| {
            handed
                .as_ref()
                .is_some_and(|handed| handed.written == written)
        };
        let handed = self.0.iter_mut().find(is_meant)?.take()?;
        Some(Claim::inherit(handed.address, handed.sockets))
    }

    /// Indices of the claimed addresses in the handover.
    pub(super) fn taken(&self) -> Vec<usize> {
        let taken = self.0.iter().enumerate().filter(|(_, left)| left.is_none());
        taken.map(|(place, _)| place).collect()
    }
}

impl ListenSettings {
    pub(super) fn new(io: Io, cores: usize, accepting: Option<&Distribution>) -> Self {
        Self {
            cores,
            io,
            is_by_cpu: accepting.is_some_and(|accepting| accepting.by == DistributionMethod::Cpu),
        }
    }

    pub(super) fn by(self) -> DistributionMethod {
        match self.is_by_cpu {
            true => DistributionMethod::Cpu,
            false => DistributionMethod::Hash,
        }
    }
}
