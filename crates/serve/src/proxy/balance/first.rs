//! The policy `first`: fills the servers in the order of the group, so that the last ones are idle at low load.

use super::Member;

/// O(n) in the number of full servers, one comparison each.
pub(super) fn choose(members: &[Member], fits: impl Fn(&Member) -> bool) -> Option<usize> {
    members.iter().position(fits)
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::simulation::{Draws, Queues};

    #[test]
    fn first_policy_fills_servers_in_order() {
        for (full, avoid, expected) in [
            (&[][..], &[][..], Some(0)),
            (&[0], &[], Some(1)),
            (&[0, 1], &[], Some(2)),
            (&[1], &[], Some(0)),
            (&[0], &[1], Some(2)),
            (&[0, 2], &[1], None),
            (&[0, 1, 2], &[], None),
        ] {
            let draws = Draws {
                full,
                avoid,
                ..Draws::idle(Policy::First, &[1, 5, 1], 0)
            };
            let chosen = draws.choose(&mut draws.balancer(), 0);
            assert_eq!(chosen, expected, "{draws:?}");
        }
    }

    #[test]
    fn first_policy_leaves_last_servers_idle() {
        let queues = Queues {
            load_max: 10,
            ..Queues::even(Policy::First, 10, 0.15, 1)
        };
        let taken = queues.run().taken;
        assert!(taken[0] > taken[1], "{taken:?}");
        assert_eq!(taken[4..], [0; 6]);
    }
}
