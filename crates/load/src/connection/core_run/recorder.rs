//! Records a core's requests and connections: counters, and data of individual connections.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use onrush_engine::{Instant, TcpInfo};
use onrush_measure::second::Tally;
use onrush_tls::Transport;

use crate::connection::work::Work;
use crate::limits::TCP_SAMPLES;
use crate::plan::Plan;
use crate::record::times::Times;
use crate::record::{Measured, Record, TcpTotal};
use crate::requests::response::Response;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) response: Response,
    /// When its outcome was known.
    pub(crate) first_byte: Instant,
    pub(crate) is_first: bool,
    /// Number of identical responses to consecutive requests of one kind.
    pub(crate) count: u64,
}

impl Received {
    pub(crate) fn new(response: Response, first_byte: Instant) -> Received {
        Received {
            response,
            first_byte,
            is_first: false,
            count: 1,
        }
    }
}

pub(crate) struct Recorder {
    pub(crate) record: RefCell<Record>,
    /// Start of the measurement.
    measured_from: Cell<Instant>,
    /// Whether the first response of each connection is not measured.
    skips_first: bool,
    /// Lanes per connection.
    lanes: usize,
    last_response: Cell<Instant>,
    /// Counters at the start of the measurement, and the time since the start of the run.
    before: Cell<(Tally, Duration)>,
    /// Number of the current second, for what is done once per second.
    second: Cell<u32>,
    /// Responses of each lane.
    responses: Box<[Cell<u64>]>,
    /// Last TCP counters of the first few connections.
    samples: Box<[Cell<Option<TcpInfo>>]>,
}

impl Recorder {
    pub(super) fn new(plan: &Plan, lanes: usize) -> Recorder {
        Recorder {
            record: RefCell::new(Record::of_plan(plan)),
            measured_from: Cell::default(),
            skips_first: plan.options.skip_first,
            lanes: plan.concurrency(),
            last_response: Cell::default(),
            before: Cell::default(),
            second: Cell::new(0),
            responses: vec![Cell::new(0); lanes].into(),
            samples: vec![Cell::new(None); lanes.min(TCP_SAMPLES)].into(),
        }
    }

    /// Measures responses to requests that start from `moment` on.
    pub(super) fn measure_from(&self, moment: Instant) {
        self.measured_from.set(moment);
    }

    pub(crate) fn measured_from(&self) -> Instant {
        self.measured_from.get()
    }

    /// Starts the measurement, `elapsed` after the start of the run.
    pub(super) fn begin_measuring(&self, elapsed: Duration) {
        let tally = self.record.borrow().tally;
        self.before.set((tally, elapsed));
    }

    pub(crate) fn before(&self) -> (Tally, Duration) {
        self.before.get()
    }

    /// Returns whether the response to a request that started at `start` is measured.
    pub(super) fn measured(&self, start: Instant, received: &Received) -> Measured {
        let is_skipped = received.is_first && self.skips_first;
        if start >= self.measured_from.get() && !is_skipped {
            Measured::Yes
        } else {
            Measured::No
        }
    }

    pub(super) fn note_responses(&self, index: u32, count: u64, now: Instant) {
        self.last_response.set(now);
        let responses = &self.responses[index as usize];
        responses.set(responses.get() + count);
    }

    /// Returns the time of the last response since `begin`; `None` without one.
    pub(super) fn answered_until(&self, begin: Instant) -> Option<Duration> {
        let last = self.last_response.get();
        (last != Instant::default()).then(|| last.since(begin))
    }

    pub(crate) fn responses_by_connection(&self) -> Vec<u64> {
        let lanes = self.responses.chunks(self.lanes);
        lanes
            .map(|lanes| lanes.iter().map(Cell::get).sum())
            .collect()
    }

    pub(crate) fn next_second(&self) {
        self.second.set(self.second.get() + 1);
    }

    /// Returns what was measured since the last call, and continues with `empty`.
    pub(crate) fn take_times(&self, empty: Box<Times>) -> Box<Times> {
        let mut record = self.record.borrow_mut();
        record.flush_times();
        std::mem::replace(&mut record.times, empty)
    }

    /// Reads the connection's TCP counters once per second, if it is one of the first few.
    #[inline]
    pub(crate) fn sample_once(&self, stream: &Transport, work: &mut Work) {
        let second = self.second.get();
        if work.second != second {
            work.second = second;
            self.sample(stream, work);
        }
    }

    fn sample(&self, stream: &Transport, work: &Work) {
        if let Some(sample) = self.samples.get(work.index as usize) {
            sample.set(stream.tcp_info());
        }
    }

    /// Returns the last TCP counters of the open connections.
    pub(super) fn samples(&self) -> impl Iterator<Item = TcpInfo> + '_ {
        self.samples.iter().filter_map(Cell::get)
    }

    /// Returns the sum of the TCP counters of all connections.
    pub(super) fn tcp(&self) -> Option<TcpTotal> {
        let mut tcp = self.record.borrow().tcp;
        for info in self.samples() {
            *tcp.get_or_insert_default() += TcpTotal::of(info);
        }
        tcp
    }

    pub(super) fn disconnected(&self, stream: &Transport, work: &Work) {
        self.sample(stream, work);
        let mut record = self.record.borrow_mut();
        if let Some(info) = self.samples.get(work.index as usize).and_then(Cell::take) {
            record.add_tcp(info);
        }
        record.tally.connections_open -= 1;
    }
}
