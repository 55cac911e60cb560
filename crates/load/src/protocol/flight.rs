//! Outstanding requests of one UDP socket by their ids, and the outcome of earlier ones. Pure.

use std::time::Duration;

use onrush_engine::Instant;

use crate::limits::socket::{IDS_ALL_MAX, IDS_MAX, IDS_MIN};

/// State of a request id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdState {
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
pub(crate) struct OutstandingRequests {
    /// State of each id. Most sockets use few ids, and untouched pages take no memory.
    states: Box<[u16]>,
    /// Candidate for the next id.
    next: usize,
    /// Id and send time of each lane's request.
    lanes: Box<[Option<(u16, Instant)>]>,
    /// Earliest moment at which a request can time out.
    due: Instant,
    timeout: Duration,
}

impl OutstandingRequests {
    /// For `lanes` concurrent requests and `ids` ids: a power of two, at most 65,536 and at least four times `lanes`.
    pub(crate) fn new(
        lanes: usize,
        ids: usize,
        timeout: Duration,
        now: Instant,
    ) -> OutstandingRequests {
        debug_assert!(ids.is_power_of_two() && ids <= 1 << 16 && lanes * 4 <= ids);
        OutstandingRequests {
            states: vec![UNUSED; ids].into(),
            next: 0,
            lanes: vec![None; lanes].into(),
            due: now + timeout,
            timeout,
        }
    }

    /// Starts a request of `lane` at `now`; returns its id. Ids of outstanding requests are not reused, and ids of lost
    /// requests only after one more round, since a late response would be taken for the response to another request.
    pub(crate) fn begin(&mut self, lane: usize, now: Instant) -> u16 {
        loop {
            let id = self.next;
            self.next = (id + 1) % self.states.len();
            match self.state(id as u16) {
                IdState::Waiting(_) => {}
                IdState::Lost => self.states[id] = LOST_LONG_AGO,
                IdState::Unused | IdState::Answered | IdState::LostLongAgo => {
                    self.states[id] = FIRST_LANE + lane as u16;
                    self.lanes[lane] = Some((id as u16, now));
                    return id as u16;
                }
            }
        }
    }

    pub(crate) fn state(&self, id: u16) -> IdState {
        match self.states.get(usize::from(id)).copied() {
            None | Some(UNUSED) => IdState::Unused,
            Some(ANSWERED) => IdState::Answered,
            Some(LOST) => IdState::Lost,
            Some(LOST_LONG_AGO) => IdState::LostLongAgo,
            Some(lane @ FIRST_LANE..) => IdState::Waiting(usize::from(lane - FIRST_LANE)),
        }
    }

    /// Records that the request of `lane` received its response.
    pub(crate) fn complete(&mut self, lane: usize) {
        self.end(lane, ANSWERED);
    }

    /// Gives up the request of `lane`; returns whether it was outstanding.
    pub(crate) fn give_up(&mut self, lane: usize) -> bool {
        self.end(lane, LOST)
    }

    fn end(&mut self, lane: usize, fate: u16) -> bool {
        let Some((id, _)) = self.lanes[lane].take() else {
            return false;
        };
        self.states[usize::from(id)] = fate;
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
                self.give_up(lane);
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

    fn flight(lanes: usize) -> OutstandingRequests {
        OutstandingRequests::new(lanes, 16, TIMEOUT, at(0))
    }

    fn expired(flight: &mut OutstandingRequests, ms: u64) -> Vec<usize> {
        let mut lanes = Vec::new();
        flight.expire(at(ms), |lane| lanes.push(lane));
        lanes
    }

    #[test]
    fn request_id_states_are_tracked() {
        let mut flight = flight(2);
        assert_eq!((flight.begin(1, at(0)), flight.begin(0, at(1))), (0, 1));
        assert_eq!(
            (flight.state(0), flight.state(1)),
            (IdState::Waiting(1), IdState::Waiting(0))
        );
        flight.complete(1);
        assert!(flight.give_up(0) && !flight.give_up(0));
        assert_eq!(
            (flight.state(0), flight.state(1)),
            (IdState::Answered, IdState::Lost)
        );
        assert_eq!(
            (flight.state(2), flight.state(60_000)),
            (IdState::Unused, IdState::Unused)
        );
    }

    #[test]
    fn outstanding_and_lost_ids_are_not_reused() {
        let mut flight = flight(3);
        assert_eq!((flight.begin(0, at(0)), flight.begin(1, at(0))), (0, 1));
        flight.give_up(1);
        let mut round = || -> Vec<u16> {
            let ids = (0..14).map(|_| {
                let id = flight.begin(2, at(0));
                flight.complete(2);
                id
            });
            ids.collect()
        };
        assert_eq!(round(), (2..16).collect::<Vec<_>>());
        assert_eq!(round(), (2..16).collect::<Vec<_>>());
        assert_eq!(round()[..2], [1, 2]);
    }

    #[test]
    fn timed_out_requests_expire_once() {
        let mut flight = flight(3);
        flight.begin(0, at(10));
        flight.begin(2, at(50));
        assert!(expired(&mut flight, 99).is_empty());
        assert_eq!((expired(&mut flight, 100), flight.due()), (vec![], at(110)));
        assert_eq!(
            (expired(&mut flight, 120), flight.due()),
            (vec![0], at(150))
        );
        assert_eq!(flight.state(0), IdState::Lost);
        flight.complete(2);
        assert_eq!((expired(&mut flight, 150), flight.due()), (vec![], at(250)));
    }
}
