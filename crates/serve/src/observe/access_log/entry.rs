//! Data for an access log line that is gone when the request ends: parts of its head and of the forwarding.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::time::Duration;

use onrush_http::Version;
use onrush_http::request::RequestHead;

use crate::routing::route::values;

/// Size limit of each part; longer ones are cut.
const PART_MAX: usize = 2048;

/// Kept with a request from its head to its end.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Method, target, host, then the configured header fields.
    text: Vec<u8>,
    /// End of each part.
    ends: Vec<u32>,
    pub(in crate::observe) version: Version,
    pub(in crate::observe) client: Option<IpAddr>,
    pub(super) queued: Cell<Option<Duration>>,
    pub(super) connected: Cell<Option<Duration>>,
    pub(super) first_byte: Cell<Option<Duration>>,
    pub(super) server: RefCell<String>,
    /// Number of bytes of the response up to the end of its head.
    pub(super) head_sent: Cell<u64>,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            ends: Vec::new(),
            version: Version::Http11,
            client: None,
            queued: Cell::default(),
            connected: Cell::default(),
            first_byte: Cell::default(),
            server: RefCell::default(),
            head_sent: Cell::default(),
        }
    }
}

impl Entry {
    /// Reinitializes the entry with this head and its fields in `names`.
    pub(crate) fn begin(
        &mut self,
        head: &RequestHead<'_, '_>,
        client: Option<IpAddr>,
        names: &[String],
    ) {
        self.text.clear();
        self.ends.clear();
        self.queued.take();
        self.connected.take();
        self.first_byte.take();
        self.server.get_mut().clear();
        self.head_sent.take();
        self.version = head.version;
        self.client = client;
        self.push(head.method_text.as_bytes());
        self.push(head.target.as_bytes());
        self.push(head.authority.unwrap_or("").as_bytes());
        for name in names {
            let value = values(head, name).next();
            self.push(value.unwrap_or(b""));
        }
    }

    /// Reinitializes the entry for input without a request head.
    pub(crate) fn begin_without_head(&mut self, client: Option<IpAddr>, headers: usize) {
        *self = Self {
            client,
            ends: vec![0; 3 + headers],
            ..Self::default()
        };
    }

    pub(super) fn has_head(&self) -> bool {
        !self.method().is_empty()
    }

    fn push(&mut self, part: &[u8]) {
        self.text
            .extend_from_slice(&part[..part.len().min(PART_MAX)]);
        self.ends.push(self.text.len() as u32);
    }

    fn part(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    pub(in crate::observe) fn method(&self) -> &[u8] {
        self.part(0)
    }

    pub(in crate::observe) fn target(&self) -> &[u8] {
        self.part(1)
    }

    pub(in crate::observe) fn host(&self) -> &[u8] {
        self.part(2)
    }

    /// The header field with this index in the configured list.
    pub(in crate::observe) fn header(&self, number: usize) -> &[u8] {
        self.part(3 + number)
    }

    /// Heap memory in bytes.
    pub(in crate::observe) fn bytes(&self) -> usize {
        self.text.capacity() + size_of_val(&self.ends[..])
    }

    /// Time spent waiting for capacity of a server.
    pub(in crate::observe) fn queued(&self) -> Option<Duration> {
        self.queued.get()
    }

    /// Adds time spent waiting for capacity of a server.
    pub(crate) fn queue(&self, duration: Duration) {
        let before = self.queued.get().unwrap_or_default();
        self.queued.set(Some(before + duration));
    }

    pub(crate) fn connect(&self, duration: Duration) {
        self.connected.set(Some(duration));
    }

    pub(crate) fn begin_response(&self, duration: Duration) {
        self.first_byte.set(Some(duration));
    }

    /// Records the end of the response head; `written` is the number of bytes of the response so far.
    pub(crate) fn end_head(&self, written: u64) {
        self.head_sent.set(written);
    }

    /// Records the server that the request is sent to.
    pub(crate) fn forward(&self, server: &str) {
        let mut name = self.server.borrow_mut();
        name.clear();
        name.push_str(server);
    }
}

/// The listener, route and group of a request.
#[derive(Clone, Copy)]
pub(crate) struct RoutingNames<'a> {
    pub(crate) listener: &'a str,
    pub(crate) route: Option<&'a str>,
    pub(crate) group: Option<&'a str>,
}
