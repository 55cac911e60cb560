//! Identity of a group's servers across configurations: the configured address, and its occurrence if repeated.

use std::collections::HashMap;

use onrush_config::plan::{ServerAddress, Upstream};

#[derive(Debug)]
pub(super) struct Names(Vec<Name>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Name {
    address: ServerAddress,
    /// Number of equal addresses before it.
    occurrence: usize,
}

impl Names {
    pub(super) fn of(upstream: &Upstream) -> Self {
        let mut counts: HashMap<&ServerAddress, usize> = HashMap::new();
        let names = upstream.servers.iter().map(|server| {
            let count = counts.entry(&server.address).or_default();
            *count += 1;
            Name {
                address: server.address.clone(),
                occurrence: *count - 1,
            }
        });
        Self(names.collect())
    }

    /// Index of each name in `before`.
    pub(super) fn positions_in(&self, before: &Names) -> Vec<Option<usize>> {
        let positions: HashMap<&Name, usize> = before.0.iter().zip(0..).collect();
        let place = |name| positions.get(name).copied();
        self.0.iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::Server;

    fn names(last: &[u8]) -> Names {
        let server = |&last: &u8| Server::at(ServerAddress::Ip(([10, 0, 0, last], 80).into()));
        let servers = last.iter().map(server).collect();
        Names::of(&Upstream::new("app".into(), servers))
    }

    #[test]
    fn duplicate_names_are_matched_in_order() {
        for (before, now, positions) in [
            (&[1, 2, 3][..], &[3, 1][..], &[Some(2), Some(0)][..]),
            (&[1], &[2, 1], &[None, Some(0)]),
            (
                &[1, 2, 1],
                &[1, 1, 1, 2],
                &[Some(0), Some(2), None, Some(1)],
            ),
            (&[], &[1], &[None]),
        ] {
            let found = names(now).positions_in(&names(before));
            assert_eq!(found, positions, "{now:?} in {before:?}");
        }
    }
}
