//! What records what comes of a core's requests and connections: the core's counters, and what is known of each
//! connection beside them.

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

/// A response that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) response: Response,
    /// When it was known what it says.
    pub(crate) first_byte: Instant,
    /// Whether it is its connection's first.
    pub(crate) is_first: bool,
    /// How many there are of it, to requests that follow each other and are of one kind.
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

/// What one core has recorded.
pub(crate) struct Recorder {
    pub(crate) record: RefCell<Record>,
    /// From when on responses are measured.
    measured_from: Cell<Instant>,
    /// Whether the first response of each connection is not.
    skips_first: bool,
    /// How many of those who wait for answers are of one connection.
    lanes: usize,
    /// When the last response came.
    last_response: Cell<Instant>,
    /// What had been counted when responses began to be measured, and how long the run had taken then.
    before: Cell<(Tally, Duration)>,
    /// Seconds of the run, for what is looked at once in each.
    second: Cell<u32>,
    /// Responses that each of those who wait for answers has had.
    responses: Box<[Cell<u64>]>,
    /// What TCP said last about the first few connections.
    samples: Box<[Cell<Option<TcpInfo>>]>,
}

impl Recorder {
    pub(super) fn new(plan: &Plan, lanes: usize) -> Recorder {
        Recorder {
            record: RefCell::new(Record::of_plan(plan)),
            measured_from: Cell::default(),
            skips_first: plan.options.skip_first,
            lanes: plan.lanes(),
            last_response: Cell::default(),
            before: Cell::default(),
            second: Cell::new(0),
            responses: vec![Cell::new(0); lanes].into(),
            samples: vec![Cell::new(None); lanes.min(TCP_SAMPLES)].into(),
        }
    }

    /// Responses to requests that start from `moment` on are measured.
    pub(super) fn measure_from(&self, moment: Instant) {
        self.measured_from.set(moment);
    }

    /// When the responses that are measured may begin to come.
    pub(crate) fn measured_from(&self) -> Instant {
        self.measured_from.get()
    }

    /// Responses are measured from now on, `elapsed` after the beginning.
    pub(super) fn begin_measuring(&self, elapsed: Duration) {
        let tally = self.record.borrow().tally;
        self.before.set((tally, elapsed));
    }

    /// What had been counted when responses began to be measured, and how long the run had taken then.
    pub(crate) fn before(&self) -> (Tally, Duration) {
        self.before.get()
    }

    /// Whether the response to a request that started at `start` is measured.
    pub(super) fn measured(&self, start: Instant, received: &Received) -> Measured {
        let is_skipped = received.is_first && self.skips_first;
        if start >= self.measured_from.get() && !is_skipped {
            Measured::Yes
        } else {
            Measured::No
        }
    }

    /// So many responses came over connection `index` at `now`.
    pub(super) fn note_responses(&self, index: u32, count: u64, now: Instant) {
        self.last_response.set(now);
        let responses = &self.responses[index as usize];
        responses.set(responses.get() + count);
    }

    /// How long after `begin` the last response came; none without one.
    pub(super) fn answered_until(&self, begin: Instant) -> Option<Duration> {
        let last = self.last_response.get();
        (last != Instant::default()).then(|| last.since(begin))
    }

    /// The responses of each connection.
    pub(crate) fn responses_by_connection(&self) -> Vec<u64> {
        let lanes = self.responses.chunks(self.lanes);
        lanes
            .map(|lanes| lanes.iter().map(Cell::get).sum())
            .collect()
    }

    /// A second has passed.
    pub(crate) fn next_second(&self) {
        self.second.set(self.second.get() + 1);
    }

    /// Hands out what was measured since this was last called, for `empty` in return.
    pub(crate) fn take_times(&self, empty: Box<Times>) -> Box<Times> {
        let mut record = self.record.borrow_mut();
        record.settle();
        std::mem::replace(&mut record.times, empty)
    }

    /// Looks at what TCP counts on the connection, once a second, if it is one of the first few.
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

    /// What TCP said last about the connections that are still open.
    pub(super) fn samples(&self) -> impl Iterator<Item = TcpInfo> + '_ {
        self.samples.iter().filter_map(Cell::get)
    }

    /// What TCP counted on all connections so far.
    pub(super) fn tcp(&self) -> Option<TcpTotal> {
        let mut tcp = self.record.borrow().tcp;
        for info in self.samples() {
            *tcp.get_or_insert_default() += TcpTotal::of(info);
        }
        tcp
    }

    /// A connection has ended.
    pub(super) fn disconnected(&self, stream: &Transport, work: &Work) {
        self.sample(stream, work);
        let mut record = self.record.borrow_mut();
        if let Some(info) = self.samples.get(work.index as usize).and_then(Cell::take) {
            record.add_tcp(info);
        }
        record.tally.connections_open -= 1;
    }
}
