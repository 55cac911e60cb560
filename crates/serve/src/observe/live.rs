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
        client: Option<IpAddr>,
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

    pub(crate) fn views(&self, core: usize, now: Instant) -> Vec<RequestView> {
        let slots = self.0.borrow();
        let live = slots.all.iter().filter_map(|slot| {
            let request = slot.request.as_ref()?;
            let (method, target) = slot.line.split_once(' ')?;
            Some(RequestView {
                core,
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
        let first = live.begin(("GET", "/a"), None, at(1), Stage::Waiting);
        let long = "é".repeat(150);
        let second = live.begin(("POST", &long), None, at(5), Stage::Queued);
        second.is_at(Stage::Connecting);
        let views = live.views(3, at(11));
        assert_eq!(views.len(), 2);
        assert_eq!(
            (views[0].age, views[0].stage),
            (Duration::from_nanos(10), Stage::Waiting)
        );
        assert_eq!(views[1].target.len(), TARGET_MAX);
        assert_eq!(views[1].stage, Stage::Connecting);
        drop(first);
        let third = live.begin(("PUT", "/c"), None, at(9), Stage::Responding);
        let views = live.views(3, at(11));
        assert_eq!(views[0].method, "PUT");
        drop((second, third));
        assert!(live.views(3, at(11)).is_empty());
    }
}
