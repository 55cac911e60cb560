//! What a server gives to the process that takes its place: the sockets that it listens with. Who waits in their queues is
//! accepted by either of them, so that nobody is refused or lost while one takes over from the other.

use onrush_config::plan::Listen;
use onrush_engine::{Address, Claim, ClaimSockets, Io};

use crate::site::accept::{Accepting, By};
use crate::site::start_error::StartError;

/// What another process needs to go on where this one listens.
#[derive(Debug)]
pub struct Handover {
    /// How it is listened.
    pub manner: Manner,
    /// In the order of the configuration.
    pub listening: Vec<Handed>,
}

/// What both processes must have in common: cores share the queues of the sockets that they listen with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// As many as there are listeners of each address.
    pub cores: usize,
    /// The kernel's accept differs.
    pub io: Io,
    /// Whether connections go to cores by CPU.
    pub is_by_cpu: bool,
}

/// One address.
#[derive(Debug)]
pub struct Handed {
    /// As the configuration has it: port 0 is a port that was chosen.
    pub written: String,
    /// What it is.
    pub address: Address,
    /// What is listened with.
    pub sockets: ClaimSockets,
}

/// Addresses of another process that are not claimed yet.
pub(super) struct Inheritance(Vec<Option<Handed>>);

impl Inheritance {
    /// What there is of a process that listened in `manner`, which this one does, too.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn new(handover: Option<Handover>, manner: Manner) -> Result<Self, StartError> {
        let Some(handover) = handover else {
            return Ok(Self(Vec::new()));
        };
        let theirs = handover.manner;
        let what = match () {
            () if theirs.cores != manner.cores => "the number of cores",
            () if theirs.io != manner.io => "the driver",
            () if theirs.is_by_cpu != manner.is_by_cpu => "how connections get to cores",
            () => return Ok(Self(handover.listening.into_iter().map(Some).collect())),
        };
        Err(StartError::Handover(what))
    }

    /// A claim on the address of `listen`, where the other process has one that is written in the same way.
    pub(super) fn claim(&mut self, listen: &Listen) -> Option<Claim> {
        if !listen.protocol.transport().has_tcp() {
            return None;
        }
        let written = listen.address.to_string();
        let is_meant = |handed: &&mut Option<Handed>| {
            handed
                .as_ref()
                .is_some_and(|handed| handed.written == written)
        };
        let handed = self.0.iter_mut().find(is_meant)?.take()?;
        Some(Claim::inherit(handed.address, handed.sockets))
    }

    /// The places of those in the handover that are claimed.
    pub(super) fn taken(&self) -> Vec<usize> {
        let taken = self.0.iter().enumerate().filter(|(_, left)| left.is_none());
        taken.map(|(place, _)| place).collect()
    }
}

impl Manner {
    pub(super) fn new(io: Io, cores: usize, accepting: Option<&Accepting>) -> Self {
        Self {
            cores,
            io,
            is_by_cpu: accepting.is_some_and(|accepting| accepting.by == By::Cpu),
        }
    }

    pub(super) fn by(self) -> By {
        match self.is_by_cpu {
            true => By::Cpu,
            false => By::Hash,
        }
    }
}
