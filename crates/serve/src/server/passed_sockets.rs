//! Sockets passed by a service manager, matched with the addresses of a plan.

use onrush_config::Plan;
use onrush_config::plan::{Address as PlanAddress, Listener};
use onrush_engine::{Address, Claim, PassedSocket, SocketOwner};

use super::handover::Handover;
use crate::site::start_error::StartError;

/// Passed sockets that are not claimed yet.
pub(super) struct PassedSockets {
    left: Vec<PassedSocket>,
    /// All addresses whose sockets belong to a manager.
    kept: Vec<Address>,
}

impl PassedSockets {
    /// Sockets passed to this process or to the one it replaces.
    pub(super) fn new(passed: Vec<PassedSocket>, handover: Option<&Handover>) -> Self {
        let handed = handover
            .into_iter()
            .flat_map(|handover| &handover.listening);
        let handed = handed.filter(|handed| handed.sockets.keeper == SocketOwner::Manager);
        let own = passed.iter().map(|passed| passed.address.clone());
        Self {
            kept: own
                .chain(handed.map(|handed| handed.address.clone()))
                .collect(),
            left: passed,
        }
    }

    /// A TCP address whose queue all cores share.
    pub(super) fn first(&self) -> Option<&Address> {
        let mut kept = self.kept.iter();
        kept.find(|address| matches!(address, Address::Tcp(_)))
    }

    /// Listeners whose sockets do not belong to a manager.
    pub(super) fn unmanaged(&self, all: &[Listener]) -> Vec<Listener> {
        unmanaged(&self.kept, all)
    }

    /// Claims the address of `listen` if its socket was passed. Fails if the kernel refuses it.
    pub(super) fn claim(&mut self, listen: &Listener) -> Result<Option<Claim>, StartError> {
        let mut left = self.left.iter();
        let Some(at) = left.position(|passed| is_meant(&passed.address, listen)) else {
            return Ok(None);
        };
        let passed = self.left.swap_remove(at);
        let address = passed.address.clone();
        let claim = Claim::of_passed(passed);
        claim
            .map(Some)
            .map_err(|error| StartError::Listen(address, error))
    }

    /// Checks that the plan has the address of every socket: clients of others would wait forever. Call it before
    /// anything is bound, because such a socket could make the bind fail. Fails if the plan lacks an address.
    pub(super) fn check_all_wanted(&self, plan: &Plan) -> Result<(), StartError> {
        let mut unwanted: Vec<&PassedSocket> = self.left.iter().collect();
        let mut without = Vec::new();
        for listen in &plan.listen {
            match unwanted.iter().position(|it| is_meant(&it.address, listen)) {
                Some(at) => {
                    unwanted.remove(at);
                }
                None => without.push(listen.address.to_string()),
            }
        }
        if unwanted.is_empty() {
            return Ok(());
        }
        let named = |passed: &&PassedSocket| (passed.address.clone(), passed.name.clone());
        Err(StartError::Passed {
            unwanted: unwanted.iter().map(named).collect(),
            without,
        })
    }
}

/// Listeners at none of the `kept` addresses.
pub(super) fn unmanaged(kept: &[Address], all: &[Listener]) -> Vec<Listener> {
    let is_other = |listen: &&Listener| !kept.iter().any(|kept| is_meant(kept, listen));
    all.iter().filter(is_other).cloned().collect()
}

fn is_meant(address: &Address, listen: &Listener) -> bool {
    if !listen.protocol.transport().has_tcp() {
        return false;
    }
    match (address, &listen.address) {
        (Address::Tcp(passed), PlanAddress::Tcp(planned)) => passed == planned,
        (Address::Unix(passed), PlanAddress::Unix(planned)) => passed == planned,
        (Address::Tcp(_), PlanAddress::Unix(_)) | (Address::Unix(_), PlanAddress::Tcp(_)) => false,
    }
}
