//! The access log: one line per ended request, written by a separate thread.
//!
//! ```text
//!   exchange begins ──> Entry    data of its head, kept with the request
//!   exchange ends   ──> a line, appended to the core's queue (a briefly held lock)
//!   the log's thread ──> takes the lines of all cores ──> Output: file, standard output, syslog
//! ```
//! A core never waits for an output: lines that exceed its queue are dropped, counted and logged.

mod clock;
pub(crate) mod entry;
mod escape;
mod format;
mod lines;
mod output;
mod writer;

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::{self, LogField, LogFilter, LogFormat, LogPiece};
use onrush_engine::Core;
use onrush_engine::random::Random;

use crate::observe::record::RequestEnd;
use crate::observe::trace::span::Trace;
use crate::observe::traffic::EndedRequest;
use clock::Clock;
use entry::{Entry, RoutingNames};
use format::{LineFormat, LogRecord};
use lines::Lines;
use writer::{WaitOutcome, Writer};

/// The log of one configuration, shared by all cores. When it is dropped, its thread writes the queued lines and ends.
pub(crate) struct AccessLog {
    pub(crate) plan: plan::AccessLog,
    lines: Arc<Lines>,
    writer: Writer,
}

pub(crate) struct CoreLog {
    log: Arc<AccessLog>,
    core: Core,
    /// Indices of routes excluded from the log, in ascending order.
    left_out: Vec<usize>,
    /// Request header fields that the format uses, in lower case.
    headers: Vec<String>,
    form: LineFormat,
    clock: RefCell<Clock>,
    chance: Random,
}

/// Whether a line was queued.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Line {
    /// The line was queued, or is excluded by the log's configuration.
    Kept,
    /// The queue is full.
    Lost,
}

impl AccessLog {
    /// Opens the log, or reuses `before`, the log of the previous configuration, if its options are the same.
    /// Fails if the output cannot be opened or the thread cannot be created.
    pub(crate) fn open(
        plan: &plan::AccessLog,
        cores: usize,
        before: Option<&Arc<AccessLog>>,
    ) -> io::Result<Arc<AccessLog>> {
        if let Some(before) = before.filter(|before| before.plan == *plan) {
            return Ok(Arc::clone(before));
        }
        let lines = Arc::new(Lines::new(cores));
        let writer = Writer::start(&plan.to, &lines)?;
        Ok(Arc::new(AccessLog {
            plan: plan.clone(),
            lines,
            writer,
        }))
    }

    /// Reopens the output after log rotation.
    pub(crate) fn reopen(&self) {
        self.lines.reopen();
    }

    /// Waits until all lines are written, for at most `patience`. Returns the number of lines lost since the start.
    pub(crate) fn close(&self, patience: Duration) -> u64 {
        self.lines.end();
        match self.writer.wait(patience) {
            WaitOutcome::Ended => self.lines.lost(),
            WaitOutcome::TimedOut => self.lines.lost() + self.lines.left(),
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.lines.end();
    }
}

impl CoreLog {
    pub(crate) fn new(log: &Arc<AccessLog>, routes: &[plan::Route], core: &Core) -> Self {
        let headers = match &log.plan.format {
            LogFormat::Json | LogFormat::Combined => {
                vec!["referer".to_owned(), "user-agent".to_owned()]
            }
            LogFormat::Template(pieces) => {
                let mut headers = Vec::new();
                for piece in pieces {
                    if let LogPiece::Field(LogField::Header(name)) = piece
                        && !headers.contains(name)
                    {
                        headers.push(name.clone());
                    }
                }
                headers
            }
        };
        Self {
            log: Arc::clone(log),
            core: core.clone(),
            left_out: (0..)
                .zip(routes)
                .filter(|(_, route)| !route.log)
                .map(|(index, _)| index)
                .collect(),
            form: LineFormat::new(&log.plan.format, &headers),
            headers,
            clock: RefCell::default(),
            chance: Random::stream(core.now_exact().nanoseconds() ^ core.id() as u64, 2),
        }
    }

    /// Whether requests of the route with this index are logged.
    pub(crate) fn includes(&self, route: usize) -> bool {
        self.left_out.binary_search(&route).is_err()
    }

    /// Header fields that an entry must keep.
    pub(crate) fn headers(&self) -> &[String] {
        &self.headers
    }

    /// Writes the line of an ended request; `entry` is `None` for input that was not a request.
    pub(crate) fn write(
        &self,
        ended: EndedRequest<'_>,
        (entry, trace): (Option<&Entry>, Option<&Trace>),
        way: RoutingNames<'_>,
    ) -> Line {
        if !self.selects(ended) {
            return Line::Kept;
        }
        let server = entry.map(|entry| entry.server.borrow());
        let clock = &mut *self.clock.borrow_mut();
        let facts = LogRecord {
            server: server.as_ref().map_or("", |server| server.as_str()),
            ended,
            entry,
            way,
            trace,
            core: self.core.id(),
            began: clock.wall(&self.core).saturating_sub(ended.duration),
        };
        let write = |lines: &mut Vec<u8>| self.form.write(&facts, clock, lines);
        match self.log.lines.push(self.core.id(), write) {
            true => Line::Kept,
            false => Line::Lost,
        }
    }

    fn selects(&self, ended: EndedRequest<'_>) -> bool {
        let LogFilter {
            errors,
            slower_than,
            sample,
        } = self.log.plan.select;
        let is_error = || {
            ended.end != RequestEnd::Complete
                || ended.record.status().is_none_or(|status| status >= 400)
        };
        sample == 10_000
            || errors && is_error()
            || slower_than.is_some_and(|bound| ended.duration >= bound)
            || sample > 0 && self.chance.below(10_000) < u64::from(sample)
    }
}
