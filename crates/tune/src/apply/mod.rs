//! Applies a plan to a machine, and undoes it.
//!
//! Each value is read, recorded in the journal, written, and read back, since the kernel may keep a different one.
//! Refused changes do not stop the others. Undoing leaves alone values that another program has changed.
//!
//! A run with an end (`--for`, `--confirm-within`) is undone by a second process (`watch.rs` of the crate `cli`) or by the next
//! command if this process is killed. Other changes stay until `revert`.

mod cpu_latency;
mod journal;
mod journal_scope;
mod machine;
mod persist;
mod remedy;
mod reset;
mod revert;

use std::io;

use serde::Serialize;

pub use cpu_latency::{CpuLatencyLimit, limit_cpu_latency};
pub use journal::{Change, Guard, Journal, JournalSummary, Run, RunCopy, UnreadableLine};
pub use journal_scope::{AskNamespace, JournalScope};
pub use machine::{Location, Machine, Root};
pub use persist::{check_persist, overridden, persist, persisted, unpersist};
pub use remedy::{User, remedy};
pub use reset::resets;
pub use revert::{
    ChangeStatus, Force, RevertOutcome, Reverted, change_status, revert, revert_run_copy,
    revert_since, status,
};

pub(crate) use self::reset::{lost_with, resets_queues};
use crate::Error;
use crate::advise::{self, Action, Plan, Request, Target, ValueFormat};

/// Result of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Target.
    #[serde(skip)]
    pub target: Target,
    /// Path.
    pub path: String,
    /// Value before.
    pub before: String,
    /// Value written.
    pub proposed: String,
    /// Outcome.
    pub outcome: Outcome,
}

/// Outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Has the proposed value.
    Done,
    /// The kernel kept this different value.
    Adjusted(String),
    /// The kernel refused it, or the target is gone; contains the reason and a remedy.
    Refused(String),
}

/// An apply that failed before its last change, because the journal could not be written or facts could not be read.
#[derive(Debug)]
pub struct ApplyError {
    /// Results so far. These changes stay in force, and in the journal.
    pub applied: Vec<Applied>,
    /// Error that ended it.
    pub cause: Error,
}

impl Applied {
    /// Whether it changed the machine.
    pub fn took_effect(&self) -> bool {
        !matches!(self.outcome, Outcome::Refused(_))
    }
}

/// Plans for the current state of the machine and applies the plan step by step in a safe order.
///
/// After changes that reset a device it plans again, because its interrupts have new numbers then. An error contains
/// the changes made so far, which stay in the journal.
pub fn apply(
    machine: &mut impl Machine,
    request: &Request,
    journal: &mut Journal,
) -> Result<Vec<Applied>, ApplyError> {
    let mut applied = Vec::new();
    match make(machine, request, journal, &mut applied) {
        Ok(()) => Ok(applied),
        Err(cause) => Err(ApplyError { applied, cause }),
    }
}

fn make(
    machine: &mut impl Machine,
    request: &Request,
    journal: &mut Journal,
    applied: &mut Vec<Applied>,
) -> Result<(), Error> {
    journal.record_request(request)?;
    let facts = machine.facts()?;
    journal.follow(&facts);
    let mut plan = advise::plan(&facts, request)?;
    let drivers: Vec<Action> = plan
        .actions
        .iter()
        .filter(|action| is_driver(&action.target))
        .cloned()
        .collect();
    if !drivers.is_empty() {
        for action in &drivers {
            keep_what_a_reset_loses(machine, &action.target, journal)?;
            change(machine, action, journal, applied)?;
        }
        plan = advise::plan(&machine.facts()?, request)?;
    }
    for action in plan
        .actions
        .iter()
        .filter(|action| !is_driver(&action.target))
    {
        change(machine, action, journal, applied)?;
    }
    Ok(())
}

/// Applies the actions of an existing plan.
pub fn apply_actions(
    machine: &mut impl Machine,
    plan: &Plan,
    journal: &mut Journal,
) -> Result<Vec<Applied>, Error> {
    journal.record_request(&plan.request)?;
    journal.follow(&machine.facts()?);
    let mut applied = Vec::new();
    for action in &plan.actions {
        keep_what_a_reset_loses(machine, &action.target, journal)?;
        change(machine, action, journal, &mut applied)?;
    }
    Ok(applied)
}

fn is_driver(target: &Target) -> bool {
    matches!(target, Target::Driver { .. })
}

/// Makes one change and appends its result, before the journal is written, which may fail.
fn change(
    machine: &mut impl Machine,
    action: &Action,
    journal: &mut Journal,
    applied: &mut Vec<Applied>,
) -> Result<(), Error> {
    let became = |before: &str, outcome: Outcome| Applied {
        target: action.target.clone(),
        path: action.path.clone(),
        before: before.trim().to_owned(),
        proposed: action.proposed.clone(),
        outcome,
    };
    let place = place_of(action);
    let before = match machine.get(&place) {
        Ok(before) => before,
        Err(error) => {
            applied.push(became("", Outcome::Refused(words(&error, &action.target))));
            return Ok(());
        }
    };
    journal.change(&action.target, &before, &action.proposed)?;
    let written = machine.put(&place, &format!("{}\n", action.proposed));
    let kept = machine.get(&place);
    let spelling = ValueFormat::of(&action.path);
    match (written, kept) {
        (Err(error), kept) => {
            applied.push(became(
                &before,
                Outcome::Refused(words(&error, &action.target)),
            ));
            // A refusal usually changes nothing, but check.
            match kept {
                Ok(kept) if !spelling.is_same(&kept, &before) => {
                    journal.kept(&action.target, &kept)
                }
                _ => journal.refused(&action.target),
            }
        }
        (Ok(()), Ok(kept)) => {
            let outcome = match spelling.is_same(&kept, &action.proposed) {
                true => Outcome::Done,
                false => Outcome::Adjusted(kept.trim().to_owned()),
            };
            applied.push(became(&before, outcome));
            journal.kept(&action.target, &kept)
        }
        // Written, but it cannot be read back: revert will check it.
        (Ok(()), Err(_)) => {
            applied.push(became(&before, Outcome::Done));
            Ok(())
        }
    }
}

fn place_of(action: &Action) -> Location {
    match &action.target {
        Target::Driver { interface, knob } => Location::Driver(interface.clone(), *knob),
        Target::Service { unit } => Location::Service(unit.clone()),
        Target::Thread {
            process,
            thread,
            started,
        } => Location::Thread(*process, *thread, *started),
        _ => Location::File(action.path.clone()),
    }
}

/// Records the values that a change of the number of queues will reset: masks and interrupt affinity of the queues.
fn keep_what_a_reset_loses(
    machine: &impl Machine,
    target: &Target,
    journal: &mut Journal,
) -> Result<(), Error> {
    if !resets_queues(target) {
        return Ok(());
    }
    let facts = machine.facts()?;
    for target in lost_with(target, &facts) {
        let place = Location::of(&target, &facts);
        if let Some(before) = place.and_then(|place| machine.get(&place).ok()) {
            journal.keep(&target, &before)?;
        }
    }
    Ok(())
}

/// Message with the reason of a refusal and a remedy.
fn words(error: &io::Error, target: &Target) -> String {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) => match target {
            Target::Driver { .. } | Target::Steering { .. } | Target::Flows { .. } | Target::Senders { .. } => {
                "not permitted: needs root or the capability CAP_NET_ADMIN".to_owned()
            }
            Target::Setting { file } if file.starts_with("net/") => {
                "not permitted: needs root or the capability CAP_NET_ADMIN in this network namespace".to_owned()
            }
            Target::Thread { .. } => "not permitted: needs root or the capability CAP_SYS_NICE".to_owned(),
            Target::Interrupt { .. } | Target::Setting { .. } | Target::File { .. } | Target::Service { .. } => {
                "not permitted: needs root, outside of a container".to_owned()
            }
        },
        Some(Errno::ROFS) => "the file system is mounted read-only, as in most containers: do it on the host".to_owned(),
        Some(Errno::NOENT) if matches!(target, Target::Service { .. }) => {
            "systemctl is not installed: stop the service manually".to_owned()
        }
        Some(Errno::NOENT | Errno::SRCH) if matches!(target, Target::Thread { .. }) => {
            "has ended".to_owned()
        }
        Some(Errno::INVAL) if matches!(target, Target::Thread { .. }) => {
            "its cpuset has none of these CPUs (EINVAL)".to_owned()
        }
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => "is gone, or this kernel does not support it".to_owned(),
        Some(Errno::IO) => match target {
            Target::Interrupt { .. } => "the kernel manages this interrupt and does not allow moving it (EIO)".to_owned(),
            _ => "the device refused it (EIO)".to_owned(),
        },
        Some(Errno::INVAL) => "the kernel rejects this value (EINVAL)".to_owned(),
        Some(Errno::OPNOTSUPP) => "the driver does not support it".to_owned(),
        Some(Errno::BUSY) => "the device is busy; another program is changing it".to_owned(),
        _ => error.to_string(),
    }
}
