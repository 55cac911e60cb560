//! The traffic counters of a core by name. They continue across configurations that use the same name.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use onrush_load_targets::{DatagramTraffic, DatagramView};

use super::close_counts::Cuts;
use super::handshakes::Handshakes;
use super::latency::class;
use super::traffic::{EndedRequest, Traffic, TrafficView};
use crate::limits::SERIES_MAX;
use onrush_engine::{Core, Instant};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SeriesKind {
    Listener,
    Route,
    Group,
}

/// Counters of one kind. Names beyond the limit share the last one.
#[derive(Debug, Default)]
struct Names {
    all: Vec<Rc<Traffic>>,
    places: HashMap<String, usize>,
    /// Whether unused names were searched for since the last configuration was prepared. A search takes time in
    /// proportion to the number of names.
    was_swept: bool,
}

/// Listener addresses. An address keeps its number in every configuration, even if the listener is renamed.
#[derive(Debug, Default)]
struct Places {
    numbers: HashMap<String, u16>,
    /// The current listener at each address.
    listeners: Vec<Rc<Traffic>>,
}

/// All traffic counters of a core.
#[derive(Debug)]
pub(crate) struct Registry {
    listeners: RefCell<Names>,
    /// The listeners by address.
    places: RefCell<Places>,
    routes: RefCell<Names>,
    groups: RefCell<Names>,
    /// Datagram counters of listeners. Names beyond the limit share the last one.
    datagrams: RefCell<Vec<Rc<DatagramTraffic>>>,
    /// Requests without a route.
    unrouted: Rc<Traffic>,
    /// TLS handshakes of clients.
    pub(crate) handshakes: Handshakes,
    /// HTTP/2 connections that were closed because of their client.
    pub(crate) cuts: Cuts,
    /// Requests that have started and not ended.
    in_flight: Cell<u64>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            listeners: RefCell::default(),
            places: RefCell::default(),
            routes: RefCell::default(),
            groups: RefCell::default(),
            datagrams: RefCell::default(),
            unrouted: Rc::new(Traffic::new(NO_ROUTE.to_owned())),
            handshakes: Handshakes::default(),
            cuts: Cuts::default(),
            in_flight: Cell::new(0),
        }
    }
}

/// No configuration can use these names: names contain no parentheses, and paths start with `/`.
const NO_ROUTE: &str = "(none)";
const OTHERS: &str = "(others)";

impl Registry {
    fn names(&self, kind: SeriesKind) -> &RefCell<Names> {
        match kind {
            SeriesKind::Listener => &self.listeners,
            SeriesKind::Route => &self.routes,
            SeriesKind::Group => &self.groups,
        }
    }

    /// Allows one more removal of unused names, if the configuration being prepared needs room.
    pub(crate) fn prepare(&self) {
        for names in [&self.listeners, &self.routes, &self.groups] {
            names.borrow_mut().was_swept = false;
        }
    }

    pub(crate) fn traffic(&self, kind: SeriesKind, name: &str) -> Rc<Traffic> {
        let names = &mut *self.names(kind).borrow_mut();
        let place = names.place(name);
        Rc::clone(&names.all[place])
    }

    pub(crate) fn datagrams(&self, name: &str) -> Rc<DatagramTraffic> {
        let all = &mut *self.datagrams.borrow_mut();
        if let Some(known) = all.iter().find(|traffic| traffic.name() == name) {
            return Rc::clone(known);
        }
        if all.len() >= SERIES_MAX {
            all.retain(|traffic| Rc::strong_count(traffic) > 1);
        }
        if let Some(last) = all.get(SERIES_MAX - 1) {
            return Rc::clone(last);
        }
        let name = match all.len() {
            length if length < SERIES_MAX - 1 => name,
            _ => OTHERS,
        };
        let traffic = Rc::new(DatagramTraffic::new(name.to_owned()));
        all.push(Rc::clone(&traffic));
        traffic
    }

    pub(crate) fn datagram_views(&self) -> Vec<DatagramView> {
        let all = self.datagrams.borrow();
        all.iter().map(|traffic| traffic.view()).collect()
    }

    /// Number of a listener address, stable for the lifetime of the core; `name` is used for a new one. After 65,534
    /// addresses, which takes as many reloads, further ones share a number without counters, and no route condition
    /// matches them.
    pub(crate) fn listener_number(&self, address: &str, name: &str) -> u16 {
        let places = &mut *self.places.borrow_mut();
        if let Some(&number) = places.numbers.get(address) {
            return number;
        }
        let number = places.listeners.len().try_into().unwrap_or(u16::MAX);
        if number < u16::MAX {
            places.numbers.insert(address.to_owned(), number);
            places
                .listeners
                .push(self.traffic(SeriesKind::Listener, name));
        }
        number
    }

    /// Renames the listener at this address.
    pub(crate) fn rename_listener(&self, place: u16, name: &str) {
        let traffic = self.traffic(SeriesKind::Listener, name);
        if let Some(listener) = self
            .places
            .borrow_mut()
            .listeners
            .get_mut(usize::from(place))
        {
            *listener = traffic;
        }
    }

    pub(crate) fn listener_at(&self, place: u16) -> Option<Rc<Traffic>> {
        let places = self.places.borrow();
        places.listeners.get(usize::from(place)).cloned()
    }

    /// Counts an ended request for its listener, route and group.
    #[inline]
    pub(crate) fn observe(
        &self,
        ended: EndedRequest<'_>,
        listener: u16,
        route: Option<&Traffic>,
        group: Option<&Traffic>,
    ) {
        if let Some(listener) = self.places.borrow().listeners.get(usize::from(listener)) {
            listener.observe(ended);
        }
        route.unwrap_or(&self.unrouted).observe(ended);
        if let Some(group) = group {
            group.observe(ended);
        }
    }

    /// Records the time to first byte of a response that completes in a later turn; the request arrived at `since`.
    pub(crate) fn first_byte(
        &self,
        (core, since): (&Core, Instant),
        listener: u16,
        route: Option<&Traffic>,
        group: Option<&Traffic>,
    ) {
        let duration = core.now_exact().since(since);
        let class = class(duration);
        let places = self.places.borrow();
        let listener = places.listeners.get(usize::from(listener));
        let listener = listener.map(|listener| &**listener);
        let all = [listener, Some(route.unwrap_or(&self.unrouted)), group];
        for traffic in all.into_iter().flatten() {
            traffic.first_byte(class, duration);
        }
    }

    pub(crate) fn views(&self, kind: SeriesKind) -> Vec<TrafficView> {
        let names = self.names(kind).borrow();
        let unrouted = (kind == SeriesKind::Route).then_some(&self.unrouted);
        let all = names.all.iter().chain(unrouted);
        all.map(|traffic| traffic.view()).collect()
    }

    #[inline]
    pub(crate) fn request_started(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
    }

    #[inline]
    pub(crate) fn request_ended(&self) {
        self.in_flight.set(self.in_flight.get() - 1);
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        if self.all.len() >= SERIES_MAX - 1 && !self.was_swept {
            self.was_swept = true;
            self.forget_unused();
        }
        let name = match self.all.len() {
            length if length < SERIES_MAX - 1 => name,
            _ => OTHERS,
        };
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        self.all.push(Rc::new(Traffic::new(name.to_owned())));
        self.places.insert(name.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }

    /// Removes names that no configuration in use has.
    fn forget_unused(&mut self) {
        self.all.retain(|traffic| Rc::strong_count(traffic) > 1);
        let names = self.all.iter().map(|traffic| traffic.name().to_owned());
        self.places = names.zip(0..).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_listener_keeps_its_id() {
        let registry = Registry::default();
        let place = |address| registry.listener_number(address, address);
        let numbers = ["127.0.0.1:80", "127.0.0.1:81"].map(place);
        registry.rename_listener(numbers[0], "public");
        assert_eq!(place("127.0.0.1:80"), numbers[0]);
        let name = |place| registry.listener_at(place).map(|it| it.name().to_owned());
        let names = [0, 1, 2].map(|place| name(place).unwrap_or_default());
        assert_eq!(names, ["public", "127.0.0.1:81", ""]);
    }

    #[test]
    fn datagram_counter_series_are_limited() {
        let registry = Registry::default();
        let first = registry.datagrams("sink");
        first.received(100);
        assert!(Rc::ptr_eq(&first, &registry.datagrams("sink")));
        let used: Vec<_> = (0..2 * SERIES_MAX)
            .map(|number| registry.datagrams(&number.to_string()))
            .collect();
        assert_eq!(registry.datagram_views().len(), SERIES_MAX);
        assert_eq!(used[2 * SERIES_MAX - 1].name(), OTHERS);
        drop(used);
        assert_eq!(registry.datagrams("echo").name(), "echo");
        let views = registry.datagram_views();
        assert_eq!((&*views[0].name, views[0].received), ("sink", 1));
    }

    #[test]
    fn traffic_series_are_reused_and_limited() {
        let registry = Registry::default();
        let first = registry.traffic(SeriesKind::Route, "/");
        assert!(Rc::ptr_eq(
            &first,
            &registry.traffic(SeriesKind::Route, "/")
        ));
        let routes = |of: &str| -> Vec<Rc<Traffic>> {
            let names = (0..2 * SERIES_MAX).map(|number| format!("{of}{number}"));
            names
                .map(|name| registry.traffic(SeriesKind::Route, &name))
                .collect()
        };
        let used = routes("a");
        assert_eq!(used[SERIES_MAX - 3].name(), format!("a{}", SERIES_MAX - 3));
        assert_eq!(used[SERIES_MAX - 2].name(), OTHERS);
        assert_eq!(used[2 * SERIES_MAX - 1].name(), OTHERS);
        assert!(Rc::ptr_eq(
            &first,
            &registry.traffic(SeriesKind::Route, "/")
        ));
        assert_eq!(registry.views(SeriesKind::Route).len(), SERIES_MAX + 1);
        assert!(registry.views(SeriesKind::Group).is_empty());
        // Unused names are removed to make room.
        drop(used);
        let early = registry.traffic(SeriesKind::Route, "b");
        assert_eq!(early.name(), OTHERS, "one look for each configuration");
        drop(early);
        registry.prepare();
        let later = registry.traffic(SeriesKind::Route, "b");
        assert_eq!(later.name(), "b");
        assert!(Rc::ptr_eq(
            &first,
            &registry.traffic(SeriesKind::Route, "/")
        ));
        assert_eq!(registry.views(SeriesKind::Route).len(), 3);
    }
}
