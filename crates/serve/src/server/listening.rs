//! The addresses that one core listens on: each listener accepts until its core stops, or until a configuration without its
//! address is in force.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Address, Claim, Core, Error, Handshakes, Kind, Listener};

use crate::crowd::room::{is_want_of_room, wait_for_room};
use crate::limits::{ACCEPT_PAUSE, ACCEPTS_PER_TURN, STOP_HANDSHAKES, STOP_LOOK};
use crate::listen;
use crate::observe::work::ACCEPT;
use crate::service::Service;
use crate::site::Site;
use crate::site::place::Place;

/// The listener of one address.
pub(super) struct Listening {
    claim: Arc<Claim>,
    listener: Listener,
    /// What is said to those who come by it: as the site in force has it, or the last one that had the address.
    place: RefCell<Rc<Place>>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It has no task yet.
    Opened,
    Accepting,
}

/// The listeners of a core, in the order of the addresses that its configuration has.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Vec<Rc<Listening>>,
}

impl Listeners {
    /// Those of `claims` for the places of `site`: the ones of these listeners that are there already, and new ones. Nobody
    /// is accepted by the new ones before they [take over](Listeners::take_over).
    ///
    /// # Errors
    /// When the kernel refuses a listener, with its address.
    pub(super) fn with(
        &self,
        core: &Core,
        claims: &[Arc<Claim>],
        site: &Site,
    ) -> Result<Listeners, (Address, Error)> {
        let listening = |(claim, place): (&Arc<Claim>, &Rc<Place>)| {
            let mut all = self.all.iter();
            if let Some(there) = all.find(|listening| Arc::ptr_eq(&listening.claim, claim)) {
                return Ok(Rc::clone(there));
            }
            let listener = Listener::new(core, claim);
            let listener = listener.map_err(|error| (claim.address().clone(), error))?;
            Ok(Rc::new(Listening {
                claim: Arc::clone(claim),
                listener,
                place: RefCell::new(Rc::clone(place)),
                state: Cell::new(State::Opened),
            }))
        };
        let all: Result<_, _> = claims.iter().zip(&site.places).map(listening).collect();
        Ok(Listeners { all: all? })
    }

    /// Takes the place of `before`, with the site that is in force now: whom the listeners of addresses that are left have in
    /// their queues is served, and nobody after them.
    pub(super) fn take_over(&self, before: &Listeners, service: &Rc<Service>) {
        for (listening, place) in self.all.iter().zip(&service.site().places) {
            listening.place.replace(Rc::clone(place));
            if listening.state.replace(State::Accepting) == State::Opened {
                let accepting = accept_all(Rc::clone(listening), Rc::clone(service));
                service.worker.spawn_aside(ACCEPT, accepting);
            }
        }
        for listening in &before.all {
            let is_left = |other: &Rc<Listening>| Rc::ptr_eq(other, listening);
            if !self.all.iter().any(is_left) {
                listening.listener.end();
            }
        }
    }
}

async fn accept_all(listening: Rc<Listening>, service: Rc<Service>) {
    accept_until_ended(&listening, &service).await;
    accept_last(&listening, &service).await;
}

async fn accept_until_ended(listening: &Listening, service: &Rc<Service>) {
    let worker = &service.worker;
    let mut in_a_row = 0;
    loop {
        match listening.listener.accept().await {
            Ok(stream) => listen::greet(stream, &listening.place.borrow(), service),
            Err(Error {
                kind: Kind::Stopping,
                ..
            }) => return,
            Err(error) if is_want_of_room(&error) => wait_for_room(worker, error).await,
            Err(error) => {
                worker.log.failure(&worker.core, format_args!("{error}"));
                worker.core.sleep(ACCEPT_PAUSE).await;
            }
        }
        in_a_row += 1;
        if in_a_row == ACCEPTS_PER_TURN {
            in_a_row = 0;
            worker.core.yield_now().await;
        }
    }
}

/// Accepts those whose handshakes are under way while the listener ends: closing it would reset connections that their
/// clients believe to have. The queue is empty.
async fn accept_last(listening: &Listening, service: &Rc<Service>) {
    let patience = match listening.listener.refuse_handshakes() {
        Handshakes::None => return,
        Handshakes::Near => STOP_LOOK,
        Handshakes::Far => STOP_HANDSHAKES,
    };
    let core = &service.worker.core;
    let patience = patience.min(service.worker.drain.get() / 4);
    let until = core.now_exact() + patience;
    while core.now() < until {
        core.sleep(STOP_LOOK).await;
        while let Ok(stream) = listening.listener.accept().await {
            listen::greet(stream, &listening.place.borrow(), service);
        }
    }
}
