//! The login session that changes are made from: a session over the network must not cut itself off.

use std::net::IpAddr;

use onrush_machine::process::field;
use onrush_tune::advise::{Note, Plan};
use onrush_tune::apply;
use onrush_tune::facts::{Facts, route};
use onrush_tune::tree::Tree;

/// How the session reaches this machine.
pub(super) enum Session {
    /// Locally; or the changes are for another machine.
    Local,
    /// Through this interface, which consists of these devices, as with a bond or a VLAN.
    Interface(String, Vec<String>),
    /// Over the network, through an unknown interface.
    UnknownInterface,
}

impl Session {
    /// Finds the session by `SSH_CONNECTION`, which sshd sets to the client's address and port, and ours. sudo does not
    /// pass it on, so the environment of parent processes is read, too.
    pub(super) fn of(tree: &Tree, facts: &Facts) -> Session {
        if !tree.is_live() {
            return Session::Local;
        }
        let own = std::env::var("SSH_CONNECTION")
            .ok()
            .map(SessionOrigin::Said);
        let connection = match own.or_else(origin) {
            Some(SessionOrigin::Said(connection)) => connection,
            Some(SessionOrigin::Daemon) => return Session::UnknownInterface,
            None => return Session::Local,
        };
        let client = connection.split_whitespace().next().unwrap_or_default();
        // A link-local address carries its interface as zone.
        let (client, zone) = client.split_once('%').unwrap_or((client, ""));
        let name = match (zone, client.parse::<IpAddr>()) {
            ("", Ok(address)) => route::interface_to(tree, address),
            ("", Err(_)) => None,
            (zone, _) => Some(zone.to_owned()),
        };
        let Some(name) = name else {
            return Session::UnknownInterface;
        };
        let devices = facts.devices_of(&name).into_iter();
        let devices = devices.map(|device| device.name.clone()).collect();
        Session::Interface(name, devices)
    }

    /// Note for the plan.
    pub(super) fn note(&self) -> Option<Note> {
        let Session::Interface(name, _) = self else {
            return None;
        };
        Some(Note {
            about: name.clone(),
            text: "carries this SSH session: apply requires --confirm-within to change it"
                .to_owned(),
        })
    }

    /// Refuses changes that could cut the session off without being undone.
    pub(super) fn check(&self, plan: &Plan) -> anyhow::Result<()> {
        let what = match self {
            Session::Local => return Ok(()),
            Session::Interface(name, devices) => {
                let is_ours = |interface: &str| {
                    interface == name || devices.iter().any(|device| device == interface)
                };
                let changed = plan
                    .actions
                    .iter()
                    .filter_map(|action| action.target.interface());
                let count = changed.filter(|interface| is_ours(interface)).count();
                if count == 0 {
                    return Ok(());
                }
                format!("this session arrives on {name}, and the plan has {count} changes for it")
            }
            Session::UnknownInterface => {
                let resets = apply::resets(plan);
                if resets.is_empty() {
                    return Ok(());
                }
                format!(
                    "this session is remote, and the plan briefly resets {}",
                    resets.join(", ")
                )
            }
        };
        anyhow::bail!(
            "{what}: use --confirm-within 60s, which undoes the changes if the session is cut off, or choose other interfaces with --interface"
        )
    }

    /// Refuses to try numbers of queues on the session's interface.
    pub(super) fn check_search(&self, plan: &Plan) -> anyhow::Result<()> {
        let mut names = plan.placement.interfaces.iter().map(|placed| &placed.name);
        let is_touched = match self {
            Session::Local => false,
            Session::Interface(name, devices) => {
                names.any(|placed| placed == name || devices.contains(placed))
            }
            Session::UnknownInterface => true,
        };
        if !is_touched {
            return Ok(());
        }
        anyhow::bail!(
            "a search tries numbers of queues, which briefly resets an interface, and this session may use it: pass --keep-queues, or choose other interfaces with --interface"
        )
    }
}

/// Where a session comes from.
enum SessionOrigin {
    /// The value of `SSH_CONNECTION`.
    Said(String),
    /// A child of sshd.
    Daemon,
}

/// Searches the parent processes for sshd's variable.
fn origin() -> Option<SessionOrigin> {
    const ANCESTORS_MAX: usize = 64;
    let mut process = std::process::id();
    let mut is_daemons = false;
    for _ in 0..ANCESTORS_MAX {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        process = u32::try_from(field(&stat, 4)?).ok()?;
        if process == 0 {
            break;
        }
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let said = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="));
        if let Some(said) = said {
            return Some(SessionOrigin::Said(
                String::from_utf8_lossy(said).into_owned(),
            ));
        }
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        is_daemons |= name.starts_with("sshd");
    }
    is_daemons.then_some(SessionOrigin::Daemon)
}
