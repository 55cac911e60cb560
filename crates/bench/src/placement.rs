//! Assigns CPUs to roles by a fixed rule, which is printed with every result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::{Role, Sharing};

/// Description of the rule for reports.
pub const RULE: &str = "Every role is pinned and stays where it is. With enough CPUs each role has its own: equal \
    neighbouring shares in the order client, proxy, server, the rest to the role under test. With fewer CPUs than roles \
    the role under test has the last CPU to itself and all others share the rest. The control client has a CPU of its \
    own when one is left, else it shares the client's. In works with `placement = \"together\"` all roles share the same CPUs.";

/// CPUs available to roles.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuAllotment {
    /// Whether roles share CPUs.
    pub sharing: Sharing,
    /// Maximum number of CPUs per role, so that a single-threaded program does not migrate between CPUs.
    pub each_max: Option<usize>,
}

impl From<Option<usize>> for CpuAllotment {
    /// Separate CPUs for each role, up to the maximum.
    fn from(each_max: Option<usize>) -> CpuAllotment {
        CpuAllotment {
            sharing: Sharing::Apart,
            each_max,
        }
    }
}

/// CPUs by role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Placement {
    /// CPUs of each participating role, in ascending order.
    pub cpus: BTreeMap<Role, Vec<usize>>,
}

impl Placement {
    /// CPUs of a role; empty if it does not participate.
    pub fn of(&self, role: Role) -> &[usize] {
        self.cpus.get(&role).map_or(&[], Vec::as_slice)
    }

    /// Roles that may use a CPU.
    pub fn roles_on(&self, cpu: usize) -> Vec<Role> {
        let on = |(role, cpus): (&Role, &Vec<usize>)| cpus.contains(&cpu).then_some(*role);
        self.cpus.iter().filter_map(on).collect()
    }

    /// CPUs of all roles.
    pub fn all(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.cpus.values().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Distributes `cpus`, in which SMT siblings are adjacent, by [`RULE`].
pub fn place(
    cpus: &[usize],
    roles: &[Role],
    under_test: Role,
    room: impl Into<CpuAllotment>,
) -> Placement {
    assert!(!cpus.is_empty(), "a process has at least one CPU");
    let CpuAllotment { sharing, each_max } = room.into();
    match sharing {
        Sharing::Apart => apart(cpus, roles, under_test, each_max),
        Sharing::Together => together(cpus, roles, each_max),
    }
}

fn together(cpus: &[usize], roles: &[Role], each_max: Option<usize>) -> Placement {
    let count = each_max.unwrap_or(cpus.len()).clamp(1, cpus.len());
    let mut shared = cpus[..count].to_vec();
    shared.sort_unstable();
    let shares = roles.iter().map(|role| (*role, shared.clone()));
    Placement {
        cpus: shares.collect(),
    }
}

fn apart(cpus: &[usize], roles: &[Role], under_test: Role, each_max: Option<usize>) -> Placement {
    let mains: Vec<Role> = roles
        .iter()
        .copied()
        .filter(|role| *role != Role::Control)
        .collect();
    let has_control = roles.contains(&Role::Control);
    let control_alone = has_control && cpus.len() > mains.len();
    let for_mains = &cpus[..cpus.len() - usize::from(control_alone)];

    let mut shares = if for_mains.len() >= mains.len() {
        own_shares(for_mains, &mains, under_test, each_max)
    } else {
        shared(for_mains, &mains, under_test)
    };
    if control_alone {
        shares.insert(Role::Control, vec![cpus[cpus.len() - 1]]);
    } else if has_control {
        let beside = shares.get(&Role::Client).cloned().unwrap_or_default();
        shares.insert(Role::Control, beside);
    }
    for share in shares.values_mut() {
        share.sort_unstable();
    }
    Placement { cpus: shares }
}

fn own_shares(
    cpus: &[usize],
    mains: &[Role],
    under_test: Role,
    each_max: Option<usize>,
) -> BTreeMap<Role, Vec<usize>> {
    let equal = cpus.len() / mains.len();
    let spare = cpus.len() % mains.len();
    let mut rest = cpus;
    let mut shares = BTreeMap::new();
    for role in mains {
        let size = equal + if *role == under_test { spare } else { 0 };
        let (own, others) = rest.split_at(size);
        let kept = own.len().min(each_max.unwrap_or(usize::MAX)).max(1);
        shares.insert(*role, own[..kept].to_vec());
        rest = others;
    }
    shares
}

fn shared(cpus: &[usize], mains: &[Role], under_test: Role) -> BTreeMap<Role, Vec<usize>> {
    let Some((last, others)) = cpus.split_last().filter(|(_, others)| !others.is_empty()) else {
        return mains.iter().map(|role| (*role, cpus.to_vec())).collect();
    };
    let share = |role: &Role| {
        if *role == under_test {
            vec![*last]
        } else {
            others.to_vec()
        }
    };
    mains.iter().map(|role| (*role, share(role))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Client, Control, Proxy, Server};

    fn placed(cpus: usize, roles: &[Role], under_test: Role, each_max: Option<usize>) -> String {
        let cpus: Vec<_> = (0..cpus).collect();
        let placement = place(&cpus, roles, under_test, each_max);
        let words: Vec<_> = placement
            .cpus
            .iter()
            .map(|(role, cpus)| format!("{} {cpus:?}", role.name()))
            .collect();
        words.join(", ")
    }

    #[test]
    fn tested_role_gets_own_cpu_of_two() {
        assert_eq!(
            placed(2, &[Client, Proxy, Server, Control], Proxy, None),
            "client [0], proxy [1], server [0], control [0]"
        );
        assert_eq!(
            placed(2, &[Client, Server, Control], Server, None),
            "client [0], server [1], control [0]"
        );
        assert_eq!(
            placed(2, &[Client, Server], Client, Some(1)),
            "client [0], server [1]"
        );
    }

    #[test]
    fn all_roles_share_single_cpu() {
        assert_eq!(
            placed(1, &[Client, Proxy, Server, Control], Proxy, None),
            "client [0], proxy [0], server [0], control [0]"
        );
    }

    #[test]
    fn shared_placement_uses_first_cpus() {
        let place = |each_max| {
            let room = CpuAllotment {
                sharing: Sharing::Together,
                each_max,
            };
            place(&[4, 6, 5], &[Client, Proxy, Server], Proxy, room)
        };
        for (each_max, cpus) in [
            (Some(1), vec![4]),
            (Some(2), vec![4, 6]),
            (None, vec![4, 5, 6]),
        ] {
            let placement = place(each_max);
            assert!(
                placement.cpus.values().all(|of| *of == cpus),
                "{placement:?}"
            );
            assert_eq!(placement.cpus.len(), 3);
        }
        assert_eq!(place(Some(8)).of(Client), [4, 5, 6]);
    }

    #[test]
    fn four_roles_get_separate_cpus() {
        assert_eq!(
            placed(4, &[Client, Proxy, Server, Control], Proxy, None),
            "client [0], proxy [1], server [2], control [3]"
        );
        assert_eq!(
            placed(3, &[Client, Proxy, Server, Control], Proxy, None),
            "client [0], proxy [1], server [2], control [0]"
        );
    }

    #[test]
    fn many_cpus_are_divided_up_to_limit() {
        assert_eq!(
            placed(9, &[Client, Proxy, Server, Control], Proxy, None),
            "client [0, 1], proxy [2, 3, 4, 5], server [6, 7], control [8]"
        );
        assert_eq!(
            placed(8, &[Client, Server], Server, Some(1)),
            "client [0], server [4]"
        );
    }
}
