//! A response that is rendered once and copied for each request; only its date changes.

use std::cell::{Cell, RefCell};

use onrush_http::Version;
use onrush_http::date::DATE_BYTES;
use onrush_http::write::HeadWriter;

use crate::exchange::reply::fields::Fields;
use crate::worker::Worker;

/// The `Server` field of every response that Onrush generates.
pub(crate) const SERVER: &[u8] = b"Server: onrush\r\n";

/// Head and body of a response to an HTTP/1.1 request on a persistent connection.
#[derive(Debug)]
pub(crate) struct Rendered {
    bytes: RefCell<Vec<u8>>,
    head_length: usize,
    date_at: usize,
    date_version: Cell<u64>,
}

impl Rendered {
    /// Renders a response; `fields` writes the fields after the date.
    pub(crate) fn new(status: u16, fields: impl Fn(&mut Fields<'_>), body: &[u8]) -> Self {
        const DATE: &[u8; DATE_BYTES] = b"Thu, 01 Jan 1970 00:00:00 GMT";
        let mut room = vec![0; 1024];
        let head_length = loop {
            let mut head = HeadWriter::new(&mut room);
            head.status_line(status).raw(SERVER).date(DATE);
            let mut head = Fields::http1(head, Version::Http11);
            fields(&mut head);
            if let Some(length) = head.into_writer().end().finish() {
                break length;
            }
            room.resize(room.len() * 2, 0);
        };
        room.truncate(head_length);
        let date_at = memchr::memmem::find(&room, DATE).expect("written above");
        room.extend_from_slice(body);
        room.shrink_to_fit();
        Self {
            bytes: RefCell::new(room),
            head_length,
            date_at,
            date_version: Cell::new(0),
        }
    }

    /// Length of head and body.
    pub(crate) fn length(&self) -> usize {
        self.bytes.borrow().len()
    }

    pub(crate) fn body_length(&self) -> usize {
        self.length() - self.head_length
    }

    /// Calls `take` with the head, updated to the current date, and the body.
    #[inline]
    pub(crate) fn with<T>(&self, worker: &Worker, take: impl FnOnce(&[u8], &[u8]) -> T) -> T {
        let (version, date) = worker.date_versioned();
        if self.date_version.replace(version) != version {
            self.bytes.borrow_mut()[self.date_at..self.date_at + DATE_BYTES].copy_from_slice(&date);
        }
        let bytes = self.bytes.borrow();
        let (head, body) = bytes.split_at(self.head_length);
        take(head, body)
    }
}
