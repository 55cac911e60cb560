//! The session that changes are made from: one that comes in over the network must not cut itself off.

use std::net::IpAddr;

use onrush_machine::process::field;
use onrush_tune::advise::{Note, Plan};
use onrush_tune::apply;
use onrush_tune::facts::{Facts, route};
use onrush_tune::tree::Tree;

/// Where this session comes in.
pub(super) enum Session {
    /// At the machine itself, or about another one.
    Local,
    /// By this interface, which stands on these devices.
    By(String, Vec<String>),
    /// Over the network, by an interface that no route names.
    Somehow,
}

impl Session {
    /// What sshd says in `SSH_CONNECTION`: the client's address and port, and ours. sudo does not hand it on, so who started
    /// us is asked for it, too.
    pub(super) fn of(tree: &Tree, facts: &Facts) -> Session {
        if !tree.is_live() {
            return Session::Local;
        }
        let own = std::env::var("SSH_CONNECTION").ok().map(Origin::Said);
        let connection = match own.or_else(origin) {
            Some(Origin::Said(connection)) => connection,
            Some(Origin::Daemon) => return Session::Somehow,
            None => return Session::Local,
        };
        let client = connection.split_whitespace().next().unwrap_or_default();
        // An address of the link has its interface behind it.
        let (client, zone) = client.split_once('%').unwrap_or((client, ""));
        let name = match (zone, client.parse::<IpAddr>()) {
            ("", Ok(address)) => route::towards(tree, address),
            ("", Err(_)) => None,
            (zone, _) => Some(zone.to_owned()),
        };
        let Some(name) = name else {
            return Session::Somehow;
        };
        let devices = facts.devices_of(&name).into_iter();
        let devices = devices.map(|device| device.name.clone()).collect();
        Session::By(name, devices)
    }

    /// What a plan should say of it.
    pub(super) fn note(&self) -> Option<Note> {
        let Session::By(name, _) = self else {
            return None;
        };
        Some(Note {
            about: name.clone(),
            text: "carries this session: apply wants --confirm-within to change it".to_owned(),
        })
    }

    /// Refuses what may cut it off without somebody to undo it.
    pub(super) fn check(&self, plan: &Plan) -> anyhow::Result<()> {
        let what = match self {
            Session::Local => return Ok(()),
            Session::By(name, devices) => {
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
                format!("this session comes in by {name}, which has {count} changes in the plan")
            }
            Session::Somehow => {
                let resets = apply::resets(plan);
                if resets.is_empty() {
                    return Ok(());
                }
                format!(
                    "this session is remote, and the plan resets {} for a moment",
                    resets.join(", ")
                )
            }
        };
        anyhow::bail!(
            "{what}: use --confirm-within 60s, so that it is undone if you are cut off, or --interface for others"
        )
    }

    /// Refuses to try numbers of queues on what it comes in by.
    pub(super) fn check_search(&self, plan: &Plan) -> anyhow::Result<()> {
        let mut names = plan.placement.interfaces.iter().map(|placed| &placed.name);
        let is_touched = match self {
            Session::Local => false,
            Session::By(name, devices) => {
                names.any(|placed| placed == name || devices.contains(placed))
            }
            Session::Somehow => true,
        };
        if !is_touched {
            return Ok(());
        }
        anyhow::bail!(
            "a search tries numbers of queues, which resets an interface for a moment, and this session may come in by it: \
             use --keep-queues, or --interface for others"
        )
    }
}

/// What is known of where a session comes from.
enum Origin {
    /// What sshd had said of it.
    Said(String),
    /// That sshd has started it.
    Daemon,
}

/// Looks through those that started us for what sshd had told them.
fn origin() -> Option<Origin> {
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
            return Some(Origin::Said(String::from_utf8_lossy(said).into_owned()));
        }
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        is_daemons |= name.starts_with("sshd");
    }
    is_daemons.then_some(Origin::Daemon)
}
