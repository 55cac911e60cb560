//! The listeners of one core. Each accepts until its core stops or its address is removed from the configuration.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Address, Claim, DatagramClaim, Error, Handshakes, Kind, Listener};
use onrush_load_targets::{Target, UdpSocketServer};

use super::listener_claims::ListenerClaims;
use crate::connection::listen;
use crate::limits::{ACCEPT_PAUSE, ACCEPTS_PER_TURN, STOP_CHECK_INTERVAL, STOP_HANDSHAKES};
use crate::observe::work::{ACCEPT, DATAGRAMS};
use crate::site::Site;
use crate::site::listener_settings::ListenerSettings;
use crate::site::service::Service;
use crate::worker::Worker;
use crate::worker::connection_budget::room::{is_resource_exhaustion, wait_for_room};

pub(super) struct ActiveListener {
    claim: Arc<Claim>,
    listener: Listener,
    /// Settings of the listener, from the latest configuration that has its address.
    place: RefCell<Rc<ListenerSettings>>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Without a task yet.
    Opened,
    Accepting,
}

struct AddressSockets {
    streams: Option<Rc<ActiveListener>>,
    datagrams: Option<Rc<UdpSocketServer>>,
}

/// The listeners of a core, in the order of the addresses in its configuration.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Vec<AddressSockets>,
}

impl Listeners {
    /// The listeners of `holds` for the places of `site`: existing ones where possible, and new ones. New ones accept
    /// and receive nothing before they [take over](Listeners::take_over). Fails if the kernel refuses a listener.
    pub(super) fn with(
        &self,
        worker: &Worker,
        holds: &[ListenerClaims],
        site: &Site,
    ) -> Result<Listeners, (Address, Error)> {
        let ends = |(hold, place): (&ListenerClaims, &Rc<ListenerSettings>)| {
            let streams = hold.streams.as_ref();
            let streams = streams.map(|claim| self.listening(worker, claim, place));
            let datagrams = hold.datagrams.as_ref();
            let datagrams = datagrams.zip(place.spoken.target());
            let datagrams =
                datagrams.map(|(claim, target)| self.port(worker, claim, (place, target)));
            Ok(AddressSockets {
                streams: streams.transpose()?,
                datagrams: datagrams.transpose()?,
            })
        };
        let all: Result<_, _> = holds.iter().zip(&site.places).map(ends).collect();
        Ok(Listeners { all: all? })
    }

    fn listening(
        &self,
        worker: &Worker,
        claim: &Arc<Claim>,
        place: &Rc<ListenerSettings>,
    ) -> Result<Rc<ActiveListener>, (Address, Error)> {
        let mut all = self.streams();
        if let Some(there) = all.find(|listening| Arc::ptr_eq(&listening.claim, claim)) {
            return Ok(Rc::clone(there));
        }
        let listener = Listener::new(&worker.core, claim);
        let listener = listener.map_err(|error| (claim.address().clone(), error))?;
        Ok(Rc::new(ActiveListener {
            claim: Arc::clone(claim),
            listener,
            place: RefCell::new(Rc::clone(place)),
            state: Cell::new(State::Opened),
        }))
    }

    fn port(
        &self,
        worker: &Worker,
        claim: &Arc<DatagramClaim>,
        (place, target): (&Rc<ListenerSettings>, &Target),
    ) -> Result<Rc<UdpSocketServer>, (Address, Error)> {
        let mut all = self.datagrams();
        if let Some(there) = all.find(|port| port.has_claim(claim)) {
            return Ok(Rc::clone(there));
        }
        let traffic = worker.registry.datagrams(&place.name);
        let port = UdpSocketServer::new(&worker.core, claim, target, traffic);
        port.map(Rc::new)
            .map_err(|error| (Address::Tcp(claim.address()), error))
    }

    fn streams(&self) -> impl Iterator<Item = &Rc<ActiveListener>> {
        self.all.iter().filter_map(|ends| ends.streams.as_ref())
    }

    fn datagrams(&self) -> impl Iterator<Item = &Rc<UdpSocketServer>> {
        self.all.iter().filter_map(|ends| ends.datagrams.as_ref())
    }

    /// Replaces `before` with the listeners of the site in force. Listeners of removed addresses accept their queue and
    /// end.
    pub(super) fn take_over(&self, before: &Listeners, service: &Rc<Service>) {
        let worker = &service.worker;
        for (ends, place) in self.all.iter().zip(&service.site().places) {
            if let Some(listening) = &ends.streams {
                listening.place.replace(Rc::clone(place));
                if listening.state.replace(State::Accepting) == State::Opened {
                    let accepting = accept_all(Rc::clone(listening), Rc::clone(service));
                    worker.spawn_background(ACCEPT, accepting);
                }
            }
            if let (Some(port), Some(target)) = (&ends.datagrams, place.spoken.target()) {
                port.take_over(target, worker.registry.datagrams(&place.name));
                if !before.datagrams().any(|other| Rc::ptr_eq(other, port)) {
                    let running = Rc::clone(port).run();
                    worker.spawn_background(DATAGRAMS, running);
                }
            }
        }
        for listening in before.streams() {
            if !self.streams().any(|other| Rc::ptr_eq(other, listening)) {
                listening.listener.end();
            }
        }
        for port in before.datagrams() {
            if !self.datagrams().any(|other| Rc::ptr_eq(other, port)) {
                port.end();
            }
        }
    }
}

async fn accept_all(listening: Rc<ActiveListener>, service: Rc<Service>) {
    accept_until_ended(&listening, &service).await;
    accept_last(&listening, &service).await;
}

async fn accept_until_ended(listening: &ActiveListener, service: &Rc<Service>) {
    let worker = &service.worker;
    let mut in_a_row = 0;
    loop {
        match listening.listener.accept().await {
            Ok(stream) => listen::start_connection(stream, &listening.place.borrow(), service),
            Err(Error {
                kind: Kind::Stopping,
                ..
            }) => return,
            Err(error) if is_resource_exhaustion(&error) => wait_for_room(worker, error).await,
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

/// After the queue is empty, accepts connections whose TCP handshake is in progress: closing the listener would reset
/// connections that are established for the client.
async fn accept_last(listening: &ActiveListener, service: &Rc<Service>) {
    let patience = match listening.listener.refuse_handshakes() {
        Handshakes::None => return,
        Handshakes::Local => STOP_CHECK_INTERVAL,
        Handshakes::Remote => STOP_HANDSHAKES,
    };
    let core = &service.worker.core;
    let patience = patience.min(service.worker.drain.get() / 4);
    let until = core.now_exact() + patience;
    while core.now() < until {
        core.sleep(STOP_CHECK_INTERVAL).await;
        while let Ok(stream) = listening.listener.accept().await {
            listen::start_connection(stream, &listening.place.borrow(), service);
        }
    }
}
