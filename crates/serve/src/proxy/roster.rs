//! What all cores know of a group's servers: where they are, who may get requests, how many connections they have. One
//! per group and process; everything about it that a request reads is an atomic.
//!
//! A server of the configuration is one seat, or, when it is a name, as many seats as its name may have addresses; those
//! that have none at present are vacant.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use onrush_config::plan::{self, ServerAddress, Upstream};
use onrush_engine::{Address, Instant};

use crate::limits::ADDRESSES_PER_NAME;

/// The servers of one group.
#[derive(Debug)]
pub(crate) struct Roster {
    seats: Vec<Seat>,
    /// Which seats belong to each server of the configuration: the index behind its last.
    ends: Vec<usize>,
    /// Grows with every change that has to do with who may get requests. Cores compare it with what they have seen.
    version: AtomicU64,
}

/// A place for a server.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Connections with a request in flight that it may have; `u32::MAX` for no bound.
    pub(crate) connections_max: u32,
    /// Where it is, and its weight; `None` while the seat is vacant. Locked only when that changes and when a core looks
    /// after it has.
    at: Mutex<Option<At>>,
    /// By active checks.
    is_healthy: AtomicBool,
    /// Until when it is ejected, in nanoseconds of the clock; 0 when it is not.
    out_until: AtomicU64,
    /// Since when it may have requests, in nanoseconds of the clock; 0 for a server that was never away.
    since: AtomicU64,
    /// Requests in flight of all cores; counted only with a bound.
    in_flight: AtomicU32,
}

/// Where a server is and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// Whether it gets requests only when no other server can take them.
    pub(crate) backup: bool,
}

/// Whether a server may have requests now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may, since so many nanoseconds of the clock (0: always).
    In { since: u64 },
    /// It may not.
    Out,
}

impl Roster {
    /// The seats of `upstream`. Names have no address yet, and servers with active checks have not passed one.
    pub(crate) fn new(upstream: &Upstream) -> Self {
        let mut seats = Vec::new();
        let mut ends = Vec::new();
        for server in &upstream.servers {
            match fixed_address(server) {
                Some(at) => seats.push(Seat::new(server, Some(at))),
                None => seats.extend((0..ADDRESSES_PER_NAME).map(|_| Seat::new(server, None))),
            }
            ends.push(seats.len());
        }
        Self {
            seats,
            ends,
            version: AtomicU64::new(1),
        }
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
        self.version.load(Ordering::Acquire)
    }

    /// Tells the cores to look again.
    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Gives the seats of a server to `found`, in that order and as far as they go. An address keeps its seat, so that
    /// its connections and what is known of it stay; of one that is new nothing is known. Returns how many found none.
    pub(crate) fn place(&self, server: usize, found: &[At], now: Instant) -> usize {
        let (_, seats) = self.seats_of(server);
        let mut left: Vec<&At> = found.iter().collect();
        let mut has_changed = false;
        for seat in seats {
            let mut at = seat.lock();
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
            let mut at = seat.lock();
            if at.is_none()
                && let Some(new) = left.next()
            {
                *at = Some(new.clone());
                seat.is_healthy.store(true, Ordering::Relaxed);
                seat.out_until.store(0, Ordering::Relaxed);
                seat.since.store(now.nanoseconds(), Ordering::Relaxed);
                has_changed = true;
            }
        }
        if has_changed {
            self.changed();
        }
        left.len()
    }

    /// How many seats are taken and how many of them are ejected at `now`.
    pub(crate) fn ejected(&self, now: Instant) -> (usize, usize) {
        let taken = || self.seats.iter().filter(|seat| seat.at().is_some());
        (
            taken().count(),
            taken().filter(|seat| seat.is_out(now)).count(),
        )
    }

    /// Takes a server out until `until`.
    pub(crate) fn eject(&self, seat: u32, until: Instant) {
        let seat = &self.seats[seat as usize];
        seat.out_until.store(until.nanoseconds(), Ordering::Relaxed);
        seat.since.store(until.nanoseconds(), Ordering::Relaxed);
        self.changed();
    }

    /// What active checks say of a server from now on.
    pub(crate) fn set_healthy(&self, seat: u32, is_healthy: bool, now: Instant) {
        let seat = &self.seats[seat as usize];
        if is_healthy {
            seat.since.store(now.nanoseconds(), Ordering::Relaxed);
        }
        if seat.is_healthy.swap(is_healthy, Ordering::Relaxed) != is_healthy {
            self.changed();
        }
    }
}

/// Where a server is whose address needs no resolving.
fn fixed_address(server: &plan::Server) -> Option<At> {
    let address = match &server.address {
        ServerAddress::Ip(address) => Address::Tcp(*address),
        ServerAddress::Unix(path) => Address::Unix(path.clone()),
        ServerAddress::Name { .. } | ServerAddress::Srv(_) => return None,
    };
    Some(At {
        address,
        weight: server.weight,
        backup: server.backup,
    })
}

impl Seat {
    fn new(server: &plan::Server, at: Option<At>) -> Self {
        Self {
            connections_max: server.connections_max.map_or(u32::MAX, Into::into),
            at: Mutex::new(at),
            is_healthy: AtomicBool::new(true),
            out_until: AtomicU64::new(0),
            since: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<At>> {
        // Nothing can panic while it is held; and a panic ends the process.
        self.at
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Where the server is and its weight.
    pub(crate) fn at(&self) -> Option<At> {
        self.lock().clone()
    }

    fn is_out(&self, now: Instant) -> bool {
        self.out_until.load(Ordering::Relaxed) > now.nanoseconds()
    }

    /// Whether active checks have it in.
    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed)
    }

    /// Whether it may have requests at `now`, apart from being vacant.
    pub(crate) fn standing(&self, now: Instant) -> Standing {
        if !self.is_healthy() || self.is_out(now) {
            return Standing::Out;
        }
        Standing::In {
            since: self.since.load(Ordering::Relaxed),
        }
    }

    /// Whether its ejection has ended, which is said once.
    pub(crate) fn has_returned(&self, now: Instant) -> bool {
        let until = self.out_until.load(Ordering::Relaxed);
        if until == 0 || until > now.nanoseconds() {
            return false;
        }
        self.out_until
            .compare_exchange(until, 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Requests in flight of all cores, when there is a bound.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Takes one of the connections it may have, if any is left.
    pub(crate) fn acquire(&self) -> bool {
        self.in_flight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < self.connections_max).then(|| count + 1)
            })
            .is_ok()
    }

    /// Gives it back.
    pub(crate) fn release(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(servers: &str) -> Roster {
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{servers}]\nbalance = \"random\""
        );
        let parsed = onrush_config::parse(&text, std::path::Path::new("onrush.toml")).unwrap();
        Roster::new(&parsed.plan.upstreams[0])
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
        roster.eject(1, now(100));
        roster.place(0, &[at(3), at(2)], now(3));
        let seats = roster.seats();
        assert_eq!(seats[0].standing(now(4)), Standing::In { since: 3 });
        assert_eq!(seats[1].standing(now(4)), Standing::Out);
    }

    #[test]
    fn an_ejected_server_comes_back_when_its_time_is_over() {
        let roster = roster("\"10.0.0.1:80\", \"10.0.0.2:80\"");
        let at = Instant::from_nanoseconds;
        roster.eject(1, at(100));
        let seat = &roster.seats()[1];
        assert_eq!(seat.standing(at(99)), Standing::Out);
        assert_eq!(roster.ejected(at(99)), (2, 1));
        assert_eq!(seat.standing(at(100)), Standing::In { since: 100 });
        assert_eq!(roster.ejected(at(100)), (2, 0));
        roster.set_healthy(1, false, at(200));
        assert_eq!(seat.standing(at(300)), Standing::Out);
        roster.set_healthy(1, true, at(400));
        assert_eq!(seat.standing(at(400)), Standing::In { since: 400 });
    }
}
