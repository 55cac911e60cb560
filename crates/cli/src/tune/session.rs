//! The session that changes are made from: one that comes in over the network must not cut itself off.

use std::net::IpAddr;

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
    /// What sshd says in `SSH_CONNECTION`: the client's address and port, and ours.
    pub(super) fn of(tree: &Tree, facts: &Facts) -> Session {
        let Some(connection) = std::env::var("SSH_CONNECTION")
            .ok()
            .filter(|_| tree.is_live())
        else {
            return Session::Local;
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
