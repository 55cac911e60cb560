//! Requests in flight on a core. Requests that complete before the next poll of the kernel are not listed.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::Instant;

/// Maximum length of a listed target in bytes.
const TARGET_MAX: usize = 200;

/// Stage of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The client's password is being checked.
    Verifying,
    /// The request waits for capacity of a server.
    Queued,
    /// A connection to the server is being opened.
    Connecting,
    /// The request waits for the server's response.
    Waiting,
    /// The response is being sent.
    Responding,
    /// The connection is a tunnel.
    Tunnel,
}

impl Stage {
    /// All stages, in the order in which a request passes them.
    pub const ALL: [Stage; 6] = [
        Stage::Verifying,
        Stage::Queued,
        Stage::Connecting,
        Stage::Waiting,
        Stage::Responding,
        Stage::Tunnel,
    ];

    /// Label in the admin interface.
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

/// A server that a request is sent to.
pub(crate) trait Destination: Debug {
    /// Name for users.
    fn display_name(&self) -> Cow<'_, str>;
}

/// The list of requests in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlightList(Rc<RefCell<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    all: Vec<Slot>,
    /// Indices of unused slots.
    free: Vec<u32>,
}

/// Keeps its memory when its request ends.
#[derive(Debug)]
struct Slot {
    request: Option<Request>,
    /// Method and target, separated by a space.
    line: String,
}

#[derive(Debug)]
struct Request {
    since: Instant,
    client: Option<IpAddr>,
    stage: Stage,
    /// Number of the client's connection.
    connection: u32,
    server: Option<Rc<dyn Destination>>,
}

/// Entry of a request in the list, removed on drop.
#[derive(Debug)]
pub(crate) struct InFlight {
    slots: Rc<RefCell<Slots>>,
    slot: u32,
    /// Copy of the request's stage, so that setting it again costs nothing.
    stage: Cell<Stage>,
}

impl InFlightList {
    /// Adds a request that does not complete before the next poll of the kernel.
    pub(crate) fn begin(
        &self,
        (method, target): (&str, &str),
        (client, connection): (Option<IpAddr>, u32),
        since: Instant,
        stage: Stage,
    ) -> InFlight {
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
        InFlight {
            slots: Rc::clone(&self.0),
            slot: place,
            stage: Cell::new(stage),
        }
    }

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

    /// Requests of connections whose numbers are `wanted`.
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
                    .map(|server| server.display_name().into_owned()),
            })
        });
        live.collect()
    }
}

impl InFlight {
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

    pub(crate) fn goes_to(&self, server: Rc<dyn Destination>) {
        let slot = &mut self.slots.borrow_mut().all[self.slot as usize];
        if let Some(request) = &mut slot.request {
            request.server = Some(server);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut slots = self.slots.borrow_mut();
        slots.free.push(self.slot);
        let ended = slots.all[self.slot as usize].request.take();
        // After releasing the borrow: this may drop a server and its connections.
        drop(slots);
        drop(ended);
    }
}

/// A request in flight.
#[derive(Clone, Debug)]
pub struct RequestView {
    /// Number of its core.
    pub core: usize,
    /// Number of its connection among those accepted by the core.
    pub connection: u32,
    /// Time since its head arrived.
    pub age: Duration,
    /// Stage of the request.
    pub stage: Stage,
    /// The client's address, which trusted proxies may have reported.
    pub client: Option<IpAddr>,
    /// Method, as received.
    pub method: String,
    /// Target, as received; cut at 200 bytes.
    pub target: String,
    /// The server it is sent to.
    pub server: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_while_in_flight() {
        let live = InFlightList::default();
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
