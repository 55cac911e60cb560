//! A request's reservation of a server's capacity.

use std::fmt;
use std::rc::Rc;

use super::{Group, Server};
use crate::proxy::ejection::Purpose;
use crate::worker::admit::concurrency::Place;

/// Capacity of a server, reserved until this is dropped.
pub(crate) struct Reservation {
    group: Rc<Group>,
    server: u32,
    purpose: Purpose,
    /// The request's place in the count of its client.
    of_client: Option<Place>,
}

impl Group {
    /// Requests in flight at a server: of all cores if connections are limited, else of this core.
    pub(super) fn load(&self, server: u32) -> u32 {
        if self.is_limited {
            return self.endpoints.all()[server as usize].in_flight();
        }
        self.server(server).in_flight.get()
    }

    /// Counts one more request at a server; `None` if the server's limit on connections is reached.
    pub(super) fn take(self: &Rc<Self>, server: u32, purpose: Purpose) -> Option<Reservation> {
        if self.is_limited && !self.endpoints.all()[server as usize].acquire() {
            return None;
        }
        let counter = &self.server(server).in_flight;
        counter.set(counter.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        Some(Reservation {
            group: Rc::clone(self),
            server,
            purpose,
            of_client: None,
        })
    }
}

impl Reservation {
    /// Also counts the request for its client.
    pub(super) fn counts_for_client(mut self, place: Option<Place>) -> Self {
        self.of_client = place;
        self
    }

    pub(crate) fn index(&self) -> u32 {
        self.server
    }

    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub(crate) fn server(&self) -> &Server {
        self.group.server(self.server)
    }

    pub(crate) fn shared_server(&self) -> &Rc<Server> {
        &self.group.servers()[self.server as usize]
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let counter = &self.server().in_flight;
        counter.set(counter.get() - 1);
        self.group.in_flight.set(self.group.in_flight.get() - 1);
        if let Some(place) = self.of_client.take() {
            self.group.clients.leave(place);
        }
        if self.group.is_limited {
            self.group.endpoints.release(self.server);
        }
        self.group.wake_if_all_beyond_share();
        if self.purpose == Purpose::Trial {
            // Has no effect once the outcome of the trial is known.
            self.group.endpoints.release_trial(self.server);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Reservation({} of {})",
            self.server, self.group.plan.name
        )
    }
}
