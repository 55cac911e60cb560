//! Building blocks of a server: driver, descriptor shares, access log, tracing and address claims.

use std::sync::Arc;
use std::thread;

use onrush_config::Plan;
use onrush_config::plan::{Address as PlanAddress, Io as PlanIo, Listener, Protocol};
use onrush_engine::{Address, Claim, DatagramClaim, Error, Io};

use super::listener_claims::ListenerClaims;
use crate::limits::{CLAIM_ATTEMPTS, CLAIM_PAUSE};
use crate::observe::access_log::AccessLog;
use crate::observe::trace::Tracing;
use crate::observe::trace::spans::SpanCounts;
use crate::proxy::resolve;
use crate::site::Resources;
use crate::site::accept::{Distribution, DistributionMethod};
use crate::site::check::PlanFiles;
use crate::site::start_error::StartError;
use crate::worker::descriptor_shares::{Shares, needed};

pub(super) fn io_of(io: PlanIo) -> Io {
    match io {
        PlanIo::Auto => Io::Auto,
        PlanIo::Epoll => Io::Epoll,
        PlanIo::IoUring => Io::IoUring,
    }
}

/// Divides `limit` for `plan`.
/// Fails if the limit is too low to accept any connection: the number needed, and the limit.
pub(super) fn shares(limit: Option<u64>, plan: &Plan, cores: usize) -> Result<Shares, (u64, u64)> {
    let needed = needed(plan, cores);
    match limit.filter(|&limit| limit < needed) {
        Some(limit) => Err((needed, limit)),
        None => Ok(Shares::new(limit, plan, cores)),
    }
}

pub(super) fn access_log(
    plan: &Plan,
    cores: usize,
    before: Option<&Resources>,
) -> Result<Option<Arc<AccessLog>>, StartError> {
    let Some(log) = &plan.access_log else {
        return Ok(None);
    };
    let before = before.and_then(|before| before.access_log.as_ref());
    let opened = AccessLog::open(log, cores, before);
    opened
        .map(Some)
        .map_err(|error| StartError::AccessLog(log.to.clone(), error))
}

/// Opens the tracing of `plan`, if configured. Fails if the exporter cannot be started.
pub(super) fn tracing(
    plan: &Plan,
    found: &PlanFiles,
    (cores, counts): (usize, &Arc<SpanCounts>),
    before: Option<&Resources>,
) -> Result<Option<Arc<Tracing>>, StartError> {
    let Some(tracing) = &plan.tracing else {
        return Ok(None);
    };
    let before = before.and_then(|before| before.tracing.as_ref());
    let to = (
        &*found.collector_fields,
        found.encryption.collector.as_ref(),
    );
    let opened = Tracing::open(tracing, to, (cores, counts), before, resolve::lookup);
    opened.map(Some).map_err(StartError::Tracing)
}

pub(super) struct ClaimOptions<'a> {
    pub(super) accepting: Option<&'a Distribution>,
    pub(super) cpus: &'a [Option<usize>],
}

impl ClaimOptions<'_> {
    /// Claims the address of `listen`: reuses parts of `before`, a hold of the same address, then the `inherited`
    /// claim, then makes new claims.
    pub(super) fn hold(
        &self,
        listen: &Listener,
        before: Option<&ListenerClaims>,
        inherited: Option<Claim>,
    ) -> Result<ListenerClaims, StartError> {
        let mut attempts_left = CLAIM_ATTEMPTS;
        let mut inherited = inherited;
        loop {
            attempts_left -= 1;
            let held = self.hold_once(listen, before, inherited.take());
            match held {
                // The port chosen for TCP is in use for UDP.
                Err(StartError::Listen(_, error))
                    if listen.has_ephemeral_port()
                        && error.is_address_in_use()
                        && attempts_left > 0 => {}
                held => return held,
            }
        }
    }

    fn hold_once(
        &self,
        listen: &Listener,
        before: Option<&ListenerClaims>,
        inherited: Option<Claim>,
    ) -> Result<ListenerClaims, StartError> {
        let transport = listen.protocol.transport();
        let streams = match before.and_then(|before| before.streams.as_ref()) {
            _ if !transport.has_tcp() => None,
            Some(there) => Some(Arc::clone(there)),
            None => Some(self.streams(listen, inherited)?),
        };
        let datagrams = match before.and_then(|before| before.datagrams.as_ref()) {
            _ if !transport.has_udp() => None,
            Some(there) => Some(Arc::clone(there)),
            None => {
                let beside = streams.as_ref().map(|claim| claim.address());
                Some(self.datagrams(listen, beside)?)
            }
        };
        Ok(ListenerClaims { streams, datagrams })
    }

    fn streams(
        &self,
        listen: &Listener,
        inherited: Option<Claim>,
    ) -> Result<Arc<Claim>, StartError> {
        let claim = match inherited {
            Some(claim) => claim,
            None => {
                let address = address_of(listen);
                claim_patiently(|| Claim::new(&address))
                    .map_err(|error| StartError::Listen(address, error))?
            }
        };
        let is_by_cpu = self
            .accepting
            .is_some_and(|it| it.by == DistributionMethod::Cpu);
        Ok(Arc::new(match is_by_cpu {
            true => {
                let cpus: Vec<usize> = self.cpus.iter().copied().flatten().collect();
                claim.by_cpu(&cpus)
            }
            false => claim,
        }))
    }

    /// Claims the UDP port, the same as the claim `beside` it if there is one.
    fn datagrams(
        &self,
        listen: &Listener,
        beside: Option<&Address>,
    ) -> Result<Arc<DatagramClaim>, StartError> {
        let address = beside.cloned().unwrap_or_else(|| address_of(listen));
        let Address::Tcp(socket) = address else {
            unreachable!("no plan has datagrams at a Unix socket")
        };
        let asked = match &listen.protocol {
            Protocol::Memcached(_, far_end) | Protocol::Echo(far_end) | Protocol::Sink(far_end) => {
                far_end.receive_buffer
            }
            Protocol::Http(_) | Protocol::Responder(_) => None,
        };
        let claim = claim_patiently(|| DatagramClaim::new(socket, self.cpus.len(), asked));
        let claim = claim.map_err(|error| StartError::Listen(address, error))?;
        let given = claim.receive_buffer();
        if let Some(asked) = asked.filter(|&asked| given < asked as usize) {
            tracing::warn!(
                "{socket}: receive_buffer is {given} bytes instead of {asked} (limit: sysctl net.core.rmem_max); raise the limit, or start as root"
            );
        }
        Ok(Arc::new(claim))
    }
}

fn address_of(listen: &Listener) -> Address {
    match &listen.address {
        PlanAddress::Tcp(address) => Address::Tcp(*address),
        PlanAddress::Unix(path) => Address::Unix(path.clone()),
    }
}

/// Claims an address that a killed server may still hold: io_uring releases sockets shortly after its process has
/// ended, and supervisors restart at once.
fn claim_patiently<T>(claim: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let mut attempts_left = CLAIM_ATTEMPTS;
    loop {
        attempts_left -= 1;
        match claim() {
            Err(error) if error.is_address_in_use() && attempts_left > 0 => {
                thread::sleep(CLAIM_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
