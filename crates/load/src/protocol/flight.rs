//! Outstanding requests of one UDP socket by their ids, and the outcome of earlier ones. Pure.

use std::time::Duration;

use onrush_engine::Instant;

use crate::limits::socket::{IDS_ALL_MAX, IDS_MAX, IDS_MIN};

/// State of a request id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Unused,
    /// Used by the outstanding request of this lane (one of the concurrent requests).
    Waiting(usize),
    /// The last request with this id received its response.
    Answered,
    /// The last request with this id timed out; its response may still arrive.
    Lost,
    /// As `Lost`, and all other ids have been used since.
    LostLongAgo,
}

/// Encoding of states; values from [`FIRST_LANE`] on are lanes with an outstanding request.
const UNUSED: u16 = 0;
const ANSWERED: u16 = 1;
const LOST: u16 = 2;
const LOST_LONG_AGO: u16 = 3;
const FIRST_LANE: u16 = 4;

/// Returns the number of request ids for each of `sockets` sockets.
pub(crate) fn ids_of(sockets: u64) -> usize {
    let fair = (IDS_ALL_MAX / sockets.max(1)).max(1);
    // Rounded down to a power of two.
    (1 << fair.ilog2()).clamp(IDS_MIN, IDS_MAX)
}

/// Outstanding requests of one socket.
#[derive(Debug)]
pub(crate) struct Flight {
    /// State of each id. Most sockets use few ids, and untouched pages take no memory.
    fates: Box<[u16]>,
    /// Candidate for the next id.
    next: usize,
    /// Id and send time of each lane's request.
    lanes: Box<[Option<(u16, Instant)>]>,
    /// Earliest moment at which a request can time out.
    due: Instant,
    timeout: Duration,
}

impl Flight {
    /// For `lanes` concurrent requests and `ids` ids: a power of two, at most 65,536 and at least four times `lanes`.
    pub(crate) fn new(lanes: usize, ids: usize, timeout: Duration, now: Instant) -> Flight {
        debug_assert!(ids.is_power_of_two() && ids <= 1 << 16 && lanes * 4 <= ids);
        Flight {
            fates: vec![UNUSED; ids].into(),
            next: 0,
            lanes: vec![None; lanes].into(),
            due: now + timeout,
            timeout,
        }
    }

    /// Starts a request of `lane` at `now`; returns its id. Ids of outstanding requests are not reused, and those of
    /// lost requests only after one more round, since a late response would be taken for that of another request.
    pub(crate) fn begin(&mut self, lane: usize, now: Instant) -> u16 {
        loop {
            let id = self.next;
            self.next = (id + 1) % self.fates.len();
            match self.fate(id as u16) {
                Fate::Waiting(_) => {}
                Fate::Lost => self.fates[id] = LOST_LONG_AGO,
                Fate::Unused | Fate::Answered | Fate::LostLongAgo => {
                    self.fates[id] = FIRST_LANE + lane as u16;
                    self.lanes[lane] = Some((id as u16, now));
                    return id as u16;
                }
            }
        }
    }

    pub(crate) fn fate(&self, id: u16) -> Fate {
        match self.fates.get(usize::from(id)).copied() {
            None | Some(UNUSED) => Fate::Unused,
            Some(ANSWERED) => Fate::Answered,
            Some(LOST) => Fate::Lost,
            Some(LOST_LONG_AGO) => Fate::LostLongAgo,
            Some(lane @ FIRST_LANE..) => Fate::Waiting(usize::from(lane - FIRST_LANE)),
        }
    }

    /// Records that the request of `lane` received its response.
    pub(crate) fn land(&mut self, lane: usize) {
        self.end(lane, ANSWERED);
    }

    /// Gives up the request of `lane`; returns whether it was outstanding.
    pub(crate) fn lose(&mut self, lane: usize) -> bool {
        self.end(lane, LOST)
    }

    fn end(&mut self, lane: usize, fate: u16) -> bool {
        let Some((id, _)) = self.lanes[lane].take() else {
            return false;
        };
        self.fates[usize::from(id)] = fate;
        true
    }

    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Gives up the requests that have timed out at `now`, and calls `tell` with their lanes. Checks every lane about
    /// once per timeout.
    pub(crate) fn expire(&mut self, now: Instant, mut tell: impl FnMut(usize)) {
        if now < self.due {
            return;
        }
        self.due = now + self.timeout;
        for lane in 0..self.lanes.len() {
            let Some((_, sent)) = self.lanes[lane] else {
                continue;
            };
            let due = sent + self.timeout;
            if due <= now {
                self.lose(lane);
                tell(lane);
            } else {
                self.due = self.due.min(due);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::from_nanoseconds(1_000_000_000 + ms * 1_000_000)
    }

    fn flight(lanes: usize) -> Flight {
        Flight::new(lanes, 16, TIMEOUT, at(0))
    }

    fn expired(flight: &mut Flight, ms: u64) -> Vec<usize> {
        let mut lanes = Vec::new();
        flight.expire(at(ms), |lane| lanes.push(lane));
        lanes
    }

    #[test]
    fn what_becomes_of_a_request_is_known_by_its_id() {
        let mut flight = flight(2);
        assert_eq!((flight.begin(1, at(0)), flight.begin(0, at(1))), (0, 1));
        assert_eq!(
            (flight.fate(0), flight.fate(1)),
            (Fate::Waiting(1), Fate::Waiting(0))
        );
        flight.land(1);
        assert!(flight.lose(0) && !flight.lose(0));
        assert_eq!(
            (flight.fate(0), flight.fate(1)),
            (Fate::Answered, Fate::Lost)
        );
        assert_eq!(
            (flight.fate(2), flight.fate(60_000)),
            (Fate::Unused, Fate::Unused)
        );
    }

    #[test]
    fn an_id_that_waits_is_not_given_and_one_that_was_lost_not_in_the_next_round() {
        let mut flight = flight(3);
        assert_eq!((flight.begin(0, at(0)), flight.begin(1, at(0))), (0, 1));
        flight.lose(1);
        let mut round = || -> Vec<u16> {
            let ids = (0..14).map(|_| {
                let id = flight.begin(2, at(0));
                flight.land(2);
                id
            });
            ids.collect()
        };
        assert_eq!(round(), (2..16).collect::<Vec<_>>());
        assert_eq!(round(), (2..16).collect::<Vec<_>>());
        assert_eq!(round()[..2], [1, 2]);
    }

    #[test]
    fn who_has_waited_for_too_long_is_given_up_and_told_once() {
        let mut flight = flight(3);
        flight.begin(0, at(10));
        flight.begin(2, at(50));
        assert!(expired(&mut flight, 99).is_empty());
        assert_eq!((expired(&mut flight, 100), flight.due()), (vec![], at(110)));
        assert_eq!(
            (expired(&mut flight, 120), flight.due()),
            (vec![0], at(150))
        );
        assert_eq!(flight.fate(0), Fate::Lost);
        flight.land(2);
        assert_eq!((expired(&mut flight, 150), flight.due()), (vec![], at(250)));
    }
}
