//! The requests of a core that are under way: those whose response takes more than the turn in which they came.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::Instant;

/// Bytes of a target that are kept.
const TARGET_MAX: usize = 200;

/// Where a request is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Its password is being checked.
    Verifying,
    /// It waits for capacity of a server.
    Queued,
    /// A connection to its server is being made.
    Connecting,
    /// Its server has not begun to respond.
    Waiting,
    /// Its response is on its way to the client.
    Responding,
    /// Its connection has become a tunnel.
    Tunnel,
}

impl Stage {
    /// All of them, in the order in which a request comes to them.
    pub const ALL: [Stage; 6] = [
        Stage::Verifying,
        Stage::Queued,
        Stage::Connecting,
        Stage::Waiting,
        Stage::Responding,
        Stage::Tunnel,
    ];

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Verifying => "verifying",
            Stage::Queued => "queued",
            Stage::Connecting => "connecting",
            Stage::Waiting => "waiting",
            Stage::Responding => "responding",
            Stage::Tunnel => "tunnel",
        }
    }
}

/// Where a request is sent.
pub(crate) trait Destination: Debug {
    /// What tells it from others, for people.
    fn known_as(&self) -> Cow<'_, str>;
}

/// The requests under way.
#[derive(Debug, Default)]
pub(crate) struct Live(Rc<RefCell<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    all: Vec<Slot>,
    /// Places of slots without a request.
    free: Vec<u32>,
}

/// Keeps its memory from one request to the next.
#[derive(Debug)]
struct Slot {
    request: Option<Request>,
    /// Method and target, with a space between.
    line: String,
}

#[derive(Debug)]
struct Request {
    since: Instant,
    client: Option<IpAddr>,
    stage: Stage,
    /// The number of its connection.
    connection: u32,
    /// Where it is sent.
    server: Option<Rc<dyn Destination>>,
}

/// A request in the list, until it is dropped.
#[derive(Debug)]
pub(crate) struct Underway {
    slots: Rc<RefCell<Slots>>,
    slot: u32,
    /// As it was set last, so that setting it again costs nothing.
    stage: Cell<Stage>,
}

impl Live {
    /// A request goes on beyond this turn.
    pub(crate) fn begin(
        &self,
        (method, target): (&str, &str),
        (client, connection): (Option<IpAddr>, u32),
        since: Instant,
        stage: Stage,
    ) -> Underway {
        let slots = &mut *self.0.borrow_mut();
        let place = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(Slot {
                request: None,
                line: String::new(),
            });
            slots.all.len() as u32 - 1
        });
        let slot = &mut slots.all[place as usize];
        slot.request = Some(Request {
            since,
            client,
            stage,
            connection,
            server: None,
        });
        let end = target.floor_char_boundary(TARGET_MAX);
        slot.line.clear();
        slot.line.reserve_exact(method.len() + 1 + end);
        for part in [method, " ", &target[..end]] {
            slot.line.push_str(part);
        }
        Underway {
            slots: Rc::clone(&self.0),
            slot: place,
            stage: Cell::new(stage),
        }
    }

    /// Frees the memory of requests that have ended.
    pub(crate) fn drop_unused(&self) {
        let Slots { all, free } = &mut *self.0.borrow_mut();
        let used = all.iter().rposition(|slot| slot.request.is_some());
        all.truncate(used.map_or(0, |last| last + 1));
        all.shrink_to_fit();
        free.retain(|&place| (place as usize) < all.len());
        free.shrink_to_fit();
        for &place in &*free {
            all[place as usize].line = String::new();
        }
    }

    /// How many are at each stage.
    pub(crate) fn stages(&self) -> [u64; Stage::ALL.len()] {
        let mut counts = [0; Stage::ALL.len()];
        for request in self
            .0
            .borrow()
            .all
            .iter()
            .filter_map(|slot| slot.request.as_ref())
        {
            counts[request.stage as usize] += 1;
        }
        counts
    }

    pub(crate) fn views(&self, core: usize, now: Instant) -> Vec<RequestView> {
        self.views_of(core, now, |_| true)
    }

    /// Those of the connections with the numbers that are `wanted`.
    pub(crate) fn views_of(
        &self,
        core: usize,
        now: Instant,
        wanted: impl Fn(u32) -> bool,
    ) -> Vec<RequestView> {
        let slots = self.0.borrow();
        let live = slots.all.iter().filter_map(|slot| {
            let request = slot.request.as_ref()?;
            if !wanted(request.connection) {
                return None;
            }
            let (method, target) = slot.line.split_once(' ')?;
            Some(RequestView {
                core,
                connection: request.connection,
                age: now.since(request.since),
                stage: request.stage,
                client: request.client,
                method: method.to_owned(),
                target: target.to_owned(),
                server: request
                    .server
                    .as_ref()
                    .map(|server| server.known_as().into_owned()),
            })
        });
        live.collect()
    }
}

impl Underway {
    /// It has come so far.
    #[inline]
    pub(crate) fn is_at(&self, stage: Stage) {
        if self.stage.replace(stage) == stage {
            return;
        }
        let slot = &mut self.slots.borrow_mut().all[self.slot as usize];
        if let Some(request) = &mut slot.request {
            request.stage = stage;
        }
    }

    /// It goes to this server.
    pub(crate) fn goes_to(&self, server: Rc<dyn Destination>) {
        let slot = &mut self.slots.borrow_mut().all[self.slot as usize];
        if let Some(request) = &mut slot.request {
            request.server = Some(server);
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut slots = self.slots.borrow_mut();
        slots.free.push(self.slot);
        let ended = slots.all[self.slot as usize].request.take();
        // Outside of the borrow: with it a server may go, and its connections.
        drop(slots);
        drop(ended);
    }
}

/// A request that is under way.
#[derive(Clone, Debug)]
pub struct RequestView {
    /// The number of its core.
    pub core: usize,
    /// The number of its connection among those that the core has accepted. It has no other request under way.
    pub connection: u32,
    /// How long ago its head had come.
    pub age: Duration,
    /// Where it is.
    pub stage: Stage,
    /// Its client's address, as far as trusted proxies say it.
    pub client: Option<IpAddr>,
    /// As received.
    pub method: String,
    /// As received; cut at 200 bytes.
    pub target: String,
    /// The server that it goes to.
    pub server: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_from_their_beginning_to_their_end() {
        let live = Live::default();
        let at = Instant::from_nanoseconds;
        let first = live.begin(("GET", "/a"), (None, 1), at(1), Stage::Waiting);
        let long = "é".repeat(150);
        let second = live.begin(("POST", &long), (None, 2), at(5), Stage::Queued);
        second.is_at(Stage::Connecting);
        let views = live.views(3, at(11));
        assert_eq!(views.len(), 2);
        assert_eq!(
            (views[0].age, views[0].stage),
            (Duration::from_nanos(10), Stage::Waiting)
        );
        assert_eq!(views[1].target.len(), TARGET_MAX);
        assert_eq!(views[1].stage, Stage::Connecting);
        assert_eq!(live.stages(), [0, 0, 1, 1, 0, 0]);
        let of_second = live.views_of(3, at(11), |connection| connection == 2);
        assert_eq!(of_second.len(), 1);
        assert_eq!(of_second[0].method, "POST");
        drop(first);
        let third = live.begin(("PUT", "/c"), (None, 3), at(9), Stage::Responding);
        let views = live.views(3, at(11));
        assert_eq!(views[0].method, "PUT");
        drop(second);
        live.drop_unused();
        assert_eq!(live.0.borrow().all.len(), 1, "one is in use");
        assert_eq!(live.views(3, at(11))[0].method, "PUT");
        let fourth = live.begin(("GET", "/d"), (None, 4), at(10), Stage::Waiting);
        assert_eq!(live.views(3, at(11)).len(), 2);
        drop((third, fourth));
        assert!(live.views(3, at(11)).is_empty());
        live.drop_unused();
        assert_eq!(live.0.borrow().all.capacity(), 0);
    }
}
