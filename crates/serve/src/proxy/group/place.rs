//! A request's place on a server of a group.

use std::fmt;
use std::rc::Rc;

use super::{Group, Server};

/// A request's place on a server: it counts there until this is dropped.
pub(crate) struct Place {
    group: Rc<Group>,
    server: u32,
    errand: Errand,
}

/// Why a request goes to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Errand {
    /// It is in service.
    Ordinary,
    /// It is on trial, and this request shows whether it is well again.
    Trial,
    /// It has been taken out, and there is no other.
    LastResort,
}

impl Group {
    /// Requests a server has in flight: of all cores, when there is a bound on them.
    pub(super) fn load(&self, server: u32) -> u32 {
        if self.is_limited {
            return self.roster.seats()[server as usize].in_flight();
        }
        self.server(server).in_flight.get()
    }

    /// One more request on a server; `None` when it has as many connections as it may have.
    pub(super) fn take(self: &Rc<Self>, server: u32, errand: Errand) -> Option<Place> {
        if self.is_limited && !self.roster.seats()[server as usize].acquire() {
            return None;
        }
        let counter = &self.server(server).in_flight;
        counter.set(counter.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        Some(Place {
            group: Rc::clone(self),
            server,
            errand,
        })
    }
}

impl Place {
    /// The server's index in its group.
    pub(crate) fn index(&self) -> u32 {
        self.server
    }

    pub(crate) fn errand(&self) -> Errand {
        self.errand
    }

    pub(crate) fn server(&self) -> &Server {
        self.group.server(self.server)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counter = &self.server().in_flight;
        counter.set(counter.get() - 1);
        self.group.in_flight.set(self.group.in_flight.get() - 1);
        if self.group.is_limited {
            self.group.roster.release(self.server);
        }
        if self.errand == Errand::Trial {
            // Unless it has shown how the server is.
            self.group.roster.give_trial_back(self.server);
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({} of {})", self.server, self.group.plan.name)
    }
}
