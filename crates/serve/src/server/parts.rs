//! What a server is made of, each by itself: the driver, what there is room for, the access log, the claims on addresses.

use std::sync::Arc;
use std::thread;

use onrush_config::Plan;
use onrush_config::plan::{Address as PlanAddress, Io as PlanIo, Listen};
use onrush_engine::{Address, Claim, Error, Io};

use crate::accept::{Accepting, By};
use crate::check::Found;
use crate::descriptors::{Shares, needed};
use crate::limits::{CLAIM_ATTEMPTS, CLAIM_PAUSE};
use crate::observe::access_log::AccessLog;
use crate::observe::trace::Tracing;
use crate::observe::trace::spans::SpanCounts;
use crate::site::Resources;
use crate::start_error::StartError;

pub(super) fn io_of(io: PlanIo) -> Io {
    match io {
        PlanIo::Auto => Io::Auto,
        PlanIo::Epoll => Io::Epoll,
        PlanIo::IoUring => Io::IoUring,
    }
}

/// What `limit` has room for with `plan`. A server that could not accept anybody would be half a start.
///
/// # Errors
/// When there are too few: how many it takes at least, and how many there are.
pub(super) fn shares(limit: Option<u64>, plan: &Plan, cores: usize) -> Result<Shares, (u64, u64)> {
    let needed = needed(plan, cores);
    match limit.filter(|&limit| limit < needed) {
        Some(limit) => Err((needed, limit)),
        None => Ok(Shares::new(limit, plan, cores)),
    }
}

/// The access log that `plan` asks for.
///
/// # Errors
/// When it cannot be opened.
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

/// The traces that `plan` asks for, with what its files say.
///
/// # Errors
/// When there is no thread for them.
pub(super) fn tracing(
    plan: &Plan,
    found: &Found,
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
    let opened = Tracing::open(tracing, to, (cores, counts), before);
    opened.map(Some).map_err(StartError::Tracing)
}

/// A claim on the address of `listen`: the `inherited` one, if there is any.
pub(super) fn claim(
    listen: &Listen,
    inherited: Option<Claim>,
    accepting: Option<&Accepting>,
    cpus: &[Option<usize>],
) -> Result<Arc<Claim>, StartError> {
    let claim = match inherited {
        Some(claim) => claim,
        None => {
            let address = match &listen.address {
                PlanAddress::Tcp(address) => Address::Tcp(*address),
                PlanAddress::Unix(path) => Address::Unix(path.clone()),
            };
            claim_patiently(&address).map_err(|error| StartError::Listen(address, error))?
        }
    };
    let is_by_cpu = accepting.is_some_and(|accepting| accepting.by == By::Cpu);
    Ok(Arc::new(match is_by_cpu {
        true => {
            let cpus: Vec<usize> = cpus.iter().copied().flatten().collect();
            claim.by_cpu(&cpus)
        }
        false => claim,
    }))
}

/// Claims an address that may still be in use by a server which has been killed: io_uring gives sockets back a moment
/// after its process has gone, and whoever supervises servers starts the next one at once.
fn claim_patiently(address: &Address) -> Result<Claim, Error> {
    let mut attempts_left = CLAIM_ATTEMPTS;
    loop {
        attempts_left -= 1;
        match Claim::new(address) {
            Err(error) if error.is_address_in_use() && attempts_left > 0 => {
                thread::sleep(CLAIM_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
