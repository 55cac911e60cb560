//! What all cores know of a group's servers: where they are, who may get requests, how many connections they have. One
//! per group and configuration; everything about it that a request reads is an atomic.
//!
//! A server of the configuration is one seat, or, when it is a name, as many seats as its name may have addresses; those
//! that have none at present are vacant.
//!
//! A seat is what its configuration says of the server, and its state. A server that stands in the next configuration,
//! too, keeps its state, which the rosters of both share as long as requests of the old one are under way:
//!
//! ```text
//!   roster before:  seat A   seat B   seat C      notice
//!                     │        │                    │
//!                   state    state                (shared)
//!                     │        │                    │
//!   roster after:   seat A   seat B   seat D      notice
//! ```

mod ejection;
mod location;
mod names;
mod room;
mod seat;
mod state;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onrush_config::plan::Upstream;
use onrush_engine::Instant;

use super::eject::Census;
use super::line::Line;
use names::Names;
use seat::{Judges, fixed_address, seats_of};

pub(crate) use ejection::Out;
pub(crate) use location::At;
pub(crate) use seat::{Seat, Standing};
pub(crate) use state::Presence;

/// The servers of one group.
#[derive(Debug)]
pub(crate) struct Roster {
    /// What tells its servers from each other in every configuration.
    names: Names,
    seats: Vec<Seat>,
    /// Which seats belong to each server of the configuration: the index behind its last.
    ends: Vec<usize>,
    notice: Arc<Notice>,
}

/// What tells cores that something has changed; one for all rosters that may share seats.
#[derive(Debug)]
struct Notice {
    /// Grows with every change that has to do with who may get requests. Cores compare it with what they have seen.
    version: AtomicU64,
    /// Who waits for room.
    line: Line,
}

impl Roster {
    /// The seats of `upstream`. Servers that are in `before`, too, the roster that the group has had so far, keep their
    /// state; of the others, names have no address yet, and servers with active checks have not passed one.
    pub(crate) fn new(upstream: &Upstream, before: Option<&Roster>) -> Self {
        let names = Names::of(upstream);
        let known = before.map(|before| (before, names.places_in(&before.names)));
        let judges = Judges::of(upstream);
        let mut seats = Vec::new();
        let mut ends = Vec::new();
        for (index, server) in upstream.servers.iter().enumerate() {
            let known = known
                .as_ref()
                .and_then(|(before, places)| Some(before.seats_of(places[index]?).1));
            let fixed = fixed_address(server);
            seats.extend((0..seats_of(server)).map(|place| {
                let known = known.map(|seats| &seats[place]);
                Seat::new(server, fixed.clone(), judges, known)
            }));
            ends.push(seats.len());
        }
        Self {
            names,
            seats,
            ends,
            notice: before.map_or_else(Arc::default, |before| Arc::clone(&before.notice)),
        }
    }

    /// Of each seat, which one of `before` it shares its state with. O(n).
    pub(crate) fn seats_in(&self, before: &Roster) -> Vec<Option<usize>> {
        let states = before.seats.iter().zip(0..);
        let places: HashMap<_, usize> = states
            .map(|(seat, index)| (Arc::as_ptr(&seat.state), index))
            .collect();
        let place = |seat: &Seat| places.get(&Arc::as_ptr(&seat.state)).copied();
        self.seats.iter().map(place).collect()
    }

    pub(crate) fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// The seats of a server of the configuration, with the index of the first.
    pub(crate) fn seats_of(&self, server: usize) -> (usize, &[Seat]) {
        let start = server.checked_sub(1).map_or(0, |before| self.ends[before]);
        (start, &self.seats[start..self.ends[server]])
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // Acquire: what was changed before it grew is seen, too.
        self.notice.version.load(Ordering::Acquire)
    }

    /// Tells the cores to look again, through whichever roster.
    pub(crate) fn changed(&self) {
        self.notice.version.fetch_add(1, Ordering::AcqRel);
        self.notice.line.call_all();
    }

    /// Gives the seats of a name to `found`, in that order and as far as they go. An address keeps its seat, so that
    /// its connections and what is known of it stay; of one that is new nothing is known. Returns how many found none.
    pub(crate) fn place(&self, server: usize, found: &[At], now: Instant) -> usize {
        let (_, seats) = self.seats_of(server);
        let mut left: Vec<&At> = found.iter().collect();
        let mut has_changed = false;
        for seat in seats {
            let mut at = seat.state.lock();
            let Some(seated) = at.as_mut() else { continue };
            match left.iter().position(|new| new.address == seated.address) {
                Some(position) => {
                    let new = left.remove(position);
                    has_changed |= *seated != *new;
                    seated.clone_from(new);
                }
                None => {
                    *at = None;
                    has_changed = true;
                }
            }
        }
        let mut left = left.into_iter();
        for seat in seats {
            let mut at = seat.state.lock();
            if at.is_none()
                && let Some(new) = left.next()
            {
                *at = Some(new.clone());
                seat.is_healthy.store(true, Ordering::Relaxed);
                seat.state.begin_anew();
                seat.state.since.store(now.nanoseconds(), Ordering::Relaxed);
                has_changed = true;
            }
        }
        if has_changed {
            self.changed();
        }
        left.len()
    }

    /// How the servers are now. O(n), for when one has failed.
    pub(crate) fn census(&self) -> Census {
        let mut census = Census {
            seated: 0,
            out: 0,
            in_service: 0,
        };
        for seat in self.seats.iter().filter(|seat| seat.is_taken()) {
            let is_out = seat.presence() != Presence::In;
            census.seated += 1;
            census.out += usize::from(is_out);
            census.in_service += usize::from(!is_out && seat.is_healthy());
        }
        census
    }

    /// What active checks say of a server from now on.
    pub(crate) fn set_healthy(&self, seat: u32, is_healthy: bool, now: Instant) {
        let seat = &self.seats[seat as usize];
        // Checks that begin anew, as with each configuration, say of most servers what is known.
        if is_healthy && !seat.is_healthy() {
            seat.state.since.store(now.nanoseconds(), Ordering::Relaxed);
        }
        if seat.is_healthy.swap(is_healthy, Ordering::Relaxed) != is_healthy {
            self.changed();
        }
    }
}

impl Default for Notice {
    fn default() -> Self {
        Self {
            // Not what a core begins with: it has seen nothing.
            version: AtomicU64::new(1),
            line: Line::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_config::plan;
    use onrush_engine::Address;
    use proptest::prelude::*;

    use super::*;
    use crate::limits::ADDRESSES_PER_NAME;
    use crate::proxy::absence::{Cause, Terms};

    fn roster(servers: &str) -> Roster {
        Roster::new(&upstream(servers, ""), None)
    }

    /// The servers and other keys of the group as they are written.
    fn upstream(servers: &str, keys: &str) -> Upstream {
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{servers}]\nbalance = \"random\"\n{keys}"
        );
        let parsed = onrush_config::parse(&text, std::path::Path::new("onrush.toml")).unwrap();
        parsed.plan.upstreams[0].clone()
    }

    fn at(last: u8) -> At {
        At {
            address: Address::Tcp(([10, 0, 0, last], 80).into()),
            weight: 1,
            backup: false,
        }
    }

    fn seated(roster: &Roster, server: usize) -> Vec<Option<At>> {
        let (_, seats) = roster.seats_of(server);
        seats.iter().map(Seat::at).take(3).collect()
    }

    #[test]
    fn an_address_keeps_its_seat_when_others_come_and_go() {
        let roster = roster("\"10.0.0.9:80\", \"app:80\"");
        let now = Instant::from_nanoseconds(1);
        assert_eq!(seated(&roster, 0), [Some(at(9))]);
        assert_eq!(seated(&roster, 1), [None, None, None]);
        assert_eq!(roster.place(1, &[at(1), at(2)], now), 0);
        assert_eq!(seated(&roster, 1), [Some(at(1)), Some(at(2)), None]);
        let before = roster.version();
        assert_eq!(roster.place(1, &[at(2), at(1)], now), 0);
        assert_eq!(roster.version(), before, "nothing has changed");
        assert_eq!(roster.place(1, &[at(3), at(2)], now), 0);
        assert_eq!(seated(&roster, 1), [Some(at(3)), Some(at(2)), None]);
        assert!(roster.version() > before);
        let many: Vec<At> = (1..=40).map(at).collect();
        assert_eq!(roster.place(1, &many, now), 40 - ADDRESSES_PER_NAME);
        assert_eq!(roster.place(1, &[], now), 0);
        assert_eq!(seated(&roster, 1), [None, None, None]);
    }

    #[test]
    fn an_address_does_not_inherit_what_was_known_of_the_one_before_it() {
        let roster = roster("\"app:80\"");
        let now = Instant::from_nanoseconds;
        roster.place(0, &[at(1), at(2)], now(1));
        roster.set_healthy(0, false, now(2));
        take_out(&roster, 1, 2);
        roster.place(0, &[at(3), at(2)], now(3));
        let seats = roster.seats();
        assert_eq!(seats[0].standing(), Standing::In { since: 3 });
        assert_eq!(seats[1].standing(), Standing::Out);
        roster.place(0, &[at(3), at(4)], now(5));
        assert_eq!(seats[1].standing(), Standing::In { since: 5 });
    }

    fn take_out(roster: &Roster, seat: u32, now: u64) -> Option<Out> {
        let terms = Terms::from(&plan::Eject::default());
        let now = Instant::from_nanoseconds(now);
        roster.take_out(seat, Cause::Unreliable, &terms, now)
    }

    #[test]
    fn a_server_is_taken_out_once_and_is_back_when_it_is_brought_back() {
        let roster = roster("\"10.0.0.1:80\", \"10.0.0.2:80\"");
        let now = Instant::from_nanoseconds;
        let census = |out, in_service| Census {
            seated: 2,
            out,
            in_service,
        };
        assert_eq!(roster.census(), census(0, 2));
        let out = take_out(&roster, 1, 100).expect("it was in");
        assert!(take_out(&roster, 1, 101).is_none(), "it is out already");
        let seat = &roster.seats()[1];
        assert_eq!(seat.standing(), Standing::Out);
        assert_eq!(roster.census(), census(1, 1));
        assert!(roster.is_out(1, out.term));
        assert!(!roster.bring_back(1, Some(out.term + 1), now(200)));
        assert!(roster.bring_back(1, Some(out.term), now(200)));
        assert!(!roster.bring_back(1, None, now(201)), "it is back already");
        assert!(!roster.is_out(1, out.term));
        assert_eq!(seat.standing(), Standing::In { since: 200 });
        roster.set_healthy(1, false, now(300));
        assert_eq!(seat.standing(), Standing::Out);
        assert_eq!(roster.census(), census(0, 1));
        roster.set_healthy(1, true, now(400));
        assert_eq!(seat.standing(), Standing::In { since: 400 });
        roster.set_healthy(1, true, now(500));
        assert_eq!(seat.standing(), Standing::In { since: 400 }, "it has begun");
    }

    #[test]
    fn a_server_on_trial_gets_one_request_at_a_time() {
        let roster = roster("\"10.0.0.1:80\", \"10.0.0.2:80\"");
        let now = Instant::from_nanoseconds;
        let out = take_out(&roster, 0, 100).expect("it was in");
        assert!(!roster.claim_trial(0), "not yet");
        roster.put_on_trial(0, out.term, now(200));
        assert_eq!(roster.seats()[0].standing(), Standing::Out);
        assert!(roster.claim_trial(0));
        assert!(!roster.claim_trial(0), "another has it");
        roster.give_trial_back(0);
        assert!(roster.claim_trial(0));
        let again = take_out(&roster, 0, 300).expect("it failed its trial");
        assert_eq!(again.wait, 2 * out.wait);
        roster.give_trial_back(0);
        assert!(!roster.claim_trial(0), "it is out");
        roster.put_on_trial(0, out.term, now(400));
        assert!(!roster.claim_trial(0), "that absence has ended");
    }

    #[test]
    fn servers_keep_their_state_wherever_they_move_and_new_ones_have_none() {
        let now = Instant::from_nanoseconds;
        let before = roster("\"10.0.0.1:80\", \"10.0.0.2:80\", \"10.0.0.3:80\"");
        let out = take_out(&before, 1, 100).expect("it was in");
        let after = upstream(
            "\"10.0.0.4:80\", { address = \"10.0.0.2:80\", weight = 7 }, \"10.0.0.1:80\"",
            "",
        );
        let after = Roster::new(&after, Some(&before));
        let standing = |roster: &Roster| -> Vec<Standing> {
            roster.seats().iter().map(Seat::standing).collect()
        };
        let is_in = Standing::In { since: 0 };
        assert_eq!(standing(&after), [is_in, Standing::Out, is_in]);
        let weights = |roster: &Roster| -> Vec<u32> {
            let all = roster.seats().iter().filter_map(Seat::at);
            all.map(|at| at.weight).collect()
        };
        assert_eq!(
            (weights(&before), weights(&after)),
            (vec![1; 3], vec![1, 7, 1])
        );
        assert!(after.is_out(1, out.term));
        let seen = (before.version(), after.version());
        assert!(before.bring_back(1, Some(out.term), now(200)));
        assert!(before.version() > seen.0 && after.version() > seen.1);
        assert_eq!(after.seats()[1].standing(), Standing::In { since: 200 });
        take_out(&after, 2, 300).expect("it was in");
        assert_eq!(before.seats()[0].standing(), Standing::Out);
        take_out(&after, 0, 300).expect("it was in");
        assert_eq!(before.census().out, 1, "it does not know the new one");
    }

    #[test]
    fn a_name_keeps_its_addresses() {
        let now = Instant::from_nanoseconds(1);
        let before = roster("\"app:80\", \"db:80\"");
        before.place(0, &[at(1), at(2)], now);
        let after = upstream("\"new:80\", \"app:80\"", "");
        let after = Roster::new(&after, Some(&before));
        assert_eq!(seated(&after, 0), [None, None, None]);
        assert_eq!(seated(&after, 1), [Some(at(1)), Some(at(2)), None]);
        after.place(1, &[at(2), at(3)], now);
        assert_eq!(seated(&before, 0), [Some(at(3)), Some(at(2)), None]);
    }

    #[test]
    fn health_is_kept_as_long_as_checks_say_how_it_is() {
        const CHECKED: &str = "health = { path = \"/\" }";
        const ONE: &str = "\"10.0.0.1:80\"";
        let now = Instant::from_nanoseconds(1);
        let checked = |before| Roster::new(&upstream(ONE, CHECKED), before);
        let first = checked(None);
        first.set_healthy(0, false, now);
        let second = checked(Some(&first));
        assert!(!second.seats()[0].is_healthy());
        let unchecked = Roster::new(&upstream(ONE, ""), Some(&second));
        assert!(unchecked.seats()[0].is_healthy());
        assert!(
            !second.seats()[0].is_healthy(),
            "its requests go elsewhere as before"
        );
        let third = checked(Some(&unchecked));
        assert!(third.seats()[0].is_healthy(), "that was long ago");
        assert!(checked(Some(&third)).seats()[0].is_healthy());
    }

    #[test]
    fn a_server_that_is_out_is_in_where_requests_do_not_judge() {
        const TWO: &str = "\"10.0.0.1:80\", \"10.0.0.2:80\"";
        let two = |before| Roster::new(&upstream(TWO, ""), before);
        let first = two(None);
        let out = take_out(&first, 0, 100).expect("it was in");
        let second = two(Some(&first));
        assert_eq!(second.seats()[0].presence(), Presence::Out);
        for (servers, keys) in [(TWO, "eject = false"), ("\"10.0.0.1:80\"", "")] {
            let unjudged = Roster::new(&upstream(servers, keys), Some(&second));
            assert_eq!(unjudged.seats()[0].standing(), Standing::In { since: 0 });
            assert!(
                second.is_out(0, out.term),
                "its requests go elsewhere as before"
            );
        }
        let unjudged = Roster::new(&upstream(TWO, "eject = false"), Some(&second));
        let third = two(Some(&unjudged));
        assert_eq!(third.seats()[0].presence(), Presence::In);
        assert!(!first.is_out(0, out.term), "that absence has ended");
    }

    #[test]
    fn a_server_has_its_connections_once_whatever_the_configuration() {
        let limited = |max| {
            let server = format!("{{ address = \"10.0.0.1:80\", connections_max = {max} }}");
            upstream(&server, "")
        };
        let before = Roster::new(&limited(2), None);
        let after = Roster::new(&limited(3), Some(&before));
        let (old, new) = (&before.seats()[0], &after.seats()[0]);
        assert!(old.acquire() && new.acquire());
        assert!(!old.acquire(), "two have been acquired");
        assert!(new.acquire(), "three is its bound now");
        assert!(!new.acquire());
        before.release(0);
        assert!(!old.acquire(), "two are left");
        assert!(new.acquire() && !new.acquire());
    }

    proptest! {
        #[test]
        fn whatever_comes_and_goes_a_server_keeps_what_is_known_of_it(
            configurations in prop::collection::vec(
                prop::sample::subsequence((1..=9_u8).collect::<Vec<_>>(), 2..9).prop_shuffle(),
                1..12,
            ),
            falls in prop::collection::vec(0..9_usize, 12),
        ) {
            let mut out: Vec<u8> = Vec::new();
            let mut before: Option<Roster> = None;
            for (servers, fall) in configurations.iter().zip(falls) {
                let written: Vec<String> =
                    servers.iter().map(|last| format!("\"10.0.0.{last}:80\"")).collect();
                let roster = Roster::new(&upstream(&written.join(", "), ""), before.as_ref());
                out.retain(|last| servers.contains(last));
                let fallen = fall % servers.len();
                let is_news = take_out(&roster, fallen as u32, 1).is_some();
                prop_assert_eq!(is_news, !out.contains(&servers[fallen]));
                if is_news {
                    out.push(servers[fallen]);
                }
                for (seat, last) in roster.seats().iter().zip(servers) {
                    let is_out = seat.presence() == Presence::Out;
                    prop_assert_eq!(is_out, out.contains(last), "10.0.0.{}", last);
                }
                before = Some(roster);
            }
        }
    }
}
