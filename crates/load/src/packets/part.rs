//! One core's part of a run.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use onrush_engine::random::Random;
use onrush_engine::{Core, Datagram, Error, Instant, LiveFrames, ReceiveBatch, Segmentation};
use onrush_packet::header;
use onrush_packet::report::Report;
use onrush_packet::tally::FlowCounters;

use super::counts::{Counts, PacketTimes, Unsent};
use super::departure::SendMode;
use super::flow::{BusyWait, Flow, SendPath, Shared};
use super::frames::{self, Frames};
use super::path;
use super::report_request;
use super::schedule::{Schedule, SharedBudget};
use super::sending::SendBuffers;
use super::task::{FlowOutcome, RunContext, TargetCapability};
use crate::limits::{DATAGRAM_BYTES_MAX, ECHO_CHECKS, MESSAGES_PER_CALL, STALL_CHECK_INTERVAL};
use crate::pace::start_barrier::{Signal, StartBarrier};
use crate::pace::stop::Stop;
use crate::record::host::ThreadTime;

pub(crate) enum Message {
    /// A second has passed, or the last fraction of one.
    Second(usize, Duration, Counts),
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) times: PacketTimes,
    pub(crate) unsent: Unsent,
    /// Datagrams that were due and not sent.
    pub(crate) skipped: u64,
    pub(crate) echoes: FlowCounters,
    pub(crate) flows: Vec<FlowOutcome>,
    /// Time during which datagrams were sent.
    pub(crate) elapsed: Duration,
    /// CPU time of the thread for it.
    pub(crate) time: ThreadTime,
    /// Time during which the thread was stalled.
    pub(crate) stalled: Duration,
    /// Whether the kernel segmented messages until the end.
    pub(crate) segmentation: Segmentation,
}

struct Part {
    core: Core,
    task: Arc<RunContext>,
    shared: Rc<Shared>,
    flows: Vec<Rc<Flow>>,
    /// Their frames, in the same order, with XDP.
    frames: Option<Rc<RefCell<LiveFrames>>>,
    budget: SharedBudget,
    /// Number of flows that are still sending.
    sending: Cell<usize>,
    sent: Signal,
    begin: Cell<Instant>,
    time_before: Cell<ThreadTime>,
    /// Duration and CPU time of sending, once it has ended.
    end: Cell<Option<(Duration, ThreadTime)>>,
    skipped: Cell<u64>,
    /// Time during which the thread was stalled while sending.
    stalled: Cell<Duration>,
    reports: RefCell<Vec<(Option<Report>, Option<Report>)>>,
}

/// Runs the part of core `core.id()`.
pub(crate) fn run_core(
    core: &Core,
    task: &Arc<RunContext>,
    gate: &Arc<StartBarrier>,
    messages: &Sender<Message>,
) -> Result<Outcome, String> {
    let part = Part::new(core, task)?;
    let part = Rc::new(part);
    if task.plan.options.busy_poll {
        core.busy_poll();
    }
    for flow in &part.flows {
        let flow = Rc::clone(flow);
        core.spawn(async move { flow.receive().await });
    }
    core.spawn(drive(Rc::clone(&part), Arc::clone(gate), messages.clone()));
    core.spawn(end_early(Rc::clone(&part)));
    core.run();
    let (elapsed, time) = part.end_sending();
    let _ = messages.send(Message::Second(core.id(), elapsed, part.counts()));
    Ok(part.outcome(elapsed, time))
}

impl Part {
    fn new(core: &Core, task: &Arc<RunContext>) -> Result<Part, String> {
        let (plan, options) = (&task.plan, &task.plan.options);
        let shared = Rc::new(Shared {
            core: core.clone(),
            counts: RefCell::default(),
            times: RefCell::default(),
            unsent: RefCell::default(),
            arrived: RefCell::new(ReceiveBatch::new(MESSAGES_PER_CALL, DATAGRAM_BYTES_MAX)),
            sizes: options.sizes.clone(),
            timeout: options.timeout,
            direction: task.direction,
            spins: match options.busy_poll {
                true => BusyWait::Yes,
                false => BusyWait::No,
            },
        });
        let nothing = Stop {
            after: Some(Duration::ZERO),
            count: None,
        };
        let now = core.now_exact();
        let budget = Rc::new(Cell::new(
            nothing.of_core(plan.share_of_core(core.id()), now),
        ));
        let turn = plan.turn();
        let flows: Result<Vec<Rc<Flow>>, String> = plan
            .flows_of(core.id())
            .map(|number| {
                let socket = open(core, task, number).map_err(|error| {
                    let target = task.target;
                    format!("cannot create a socket for datagrams to {target}: {error}")
                })?;
                let id = header::Flow {
                    run: task.run,
                    number,
                };
                let share = plan.share_of(number);
                let schedule = Schedule::new(&options.pace, share, turn, &budget);
                let random = Random::stream(options.seed, number.into());
                let flow = Flow::new(&shared, socket, id, schedule, random, plan.flight_max());
                Ok(Rc::new(flow))
            })
            .collect();
        let flows = flows?;
        let frames = match options.departure {
            SendMode::Single | SendMode::Batch | SendMode::Offload => None,
            SendMode::Xdp => {
                let ends = flows.iter().map(|flow| (flow.id, flow.socket.local()));
                Some(frames::of_flows(task, ends)?)
            }
        };
        Ok(Part {
            frames,
            core: core.clone(),
            task: Arc::clone(task),
            shared,
            reports: RefCell::new(vec![(None, None); flows.len()]),
            sending: Cell::new(flows.len()),
            flows,
            budget,
            sent: Signal::default(),
            begin: Cell::default(),
            time_before: Cell::default(),
            end: Cell::new(None),
            skipped: Cell::new(0),
            stalled: Cell::default(),
        })
    }

    fn start(self: &Rc<Part>, begin: Instant) {
        let plan = &self.task.plan;
        let options = &plan.options;
        self.begin.set(begin);
        let share = plan.share_of_core(self.core.id());
        self.budget.set(options.stop.of_core(share, begin));
        self.time_before.set(ThreadTime::now());
        self.core.take_stalled();
        self.core.spawn(keep_stall_timer(self.core.clone()));
        for (place, flow) in self.flows.iter().enumerate() {
            flow.schedule.begin(begin);
            let (flow, part) = (Rc::clone(flow), Rc::clone(self));
            self.core.spawn(async move {
                flow.send(&mut part.outlet(place)).await;
                part.sending.set(part.sending.get() - 1);
                if part.sending.get() == 0 {
                    part.sent.set();
                }
            });
        }
    }

    fn outlet(&self, place: usize) -> SendPath {
        let (plan, options) = (&self.task.plan, &self.task.plan.options);
        if let Some(live) = &self.frames {
            let size = options.sizes.largest();
            return SendPath::Interface(Frames::new(live, place, size, plan.turn()));
        }
        SendPath::Socket(SendBuffers::new(
            options.departure.messages(),
            plan.segments(),
            &options.sizes,
            Random::stream(options.seed, self.flows[place].id.number.into()),
        ))
    }

    /// Ends sending: returns its duration and CPU time, which are fixed by the first call.
    fn end_sending(&self) -> (Duration, ThreadTime) {
        if let Some(end) = self.end.get() {
            return end;
        }
        let now = self.core.now_exact();
        let end = (
            now.since(self.begin.get()),
            ThreadTime::now().since(self.time_before.get()),
        );
        self.end.set(Some(end));
        self.stalled.set(self.core.take_stalled());
        let until = self.budget.get().end().map_or(now, |end| end.min(now));
        let skipped = self.flows.iter().map(|flow| flow.schedule.skipped(until));
        self.skipped.set(skipped.sum());
        end
    }

    /// Returns the counters so far, including the flows' echoes.
    fn counts(&self) -> Counts {
        let echoes = self.echoes();
        Counts {
            received: echoes.received,
            received_bytes: echoes.bytes,
            duplicated: echoes.duplicated,
            reordered: echoes.reordered,
            too_late: echoes.too_late,
            ..*self.shared.counts.borrow()
        }
    }

    fn echoes(&self) -> FlowCounters {
        let mut sum = FlowCounters::default();
        self.flows.iter().for_each(|flow| sum.add(&flow.echoes()));
        sum
    }

    fn outcome(&self, elapsed: Duration, time: ThreadTime) -> Outcome {
        let by_engine = |flow: &Rc<Flow>| flow.socket.segmentation() == Segmentation::Engine;
        Outcome {
            counts: self.counts(),
            times: self.shared.times.take(),
            unsent: self.shared.unsent.take(),
            skipped: self.skipped.get(),
            echoes: self.echoes(),
            flows: self.flow_outcomes(),
            elapsed,
            time,
            stalled: self.stalled.get(),
            segmentation: match self.flows.iter().any(by_engine) {
                true => Segmentation::Engine,
                false => Segmentation::Kernel,
            },
        }
    }

    fn flow_outcomes(&self) -> Vec<FlowOutcome> {
        let of_flow = |(flow, reports): (&Rc<Flow>, _)| FlowOutcome {
            number: flow.id.number,
            local: flow.socket.local(),
            sent: flow.sent.get(),
            echoes: flow.echoes(),
            reports,
        };
        let reports = self.reports.take();
        self.flows.iter().zip(reports).map(of_flow).collect()
    }

    /// Requests reports of all flows concurrently.
    async fn ask(self: &Rc<Part>, when: When) {
        if self.task.capability == TargetCapability::Silent {
            return;
        }
        let done = Rc::new(Signal::default());
        let left = Rc::new(Cell::new(self.flows.len()));
        for (place, flow) in self.flows.iter().enumerate() {
            let (part, flow) = (Rc::clone(self), Rc::clone(flow));
            let (done, left) = (Rc::clone(&done), Rc::clone(&left));
            self.core.spawn(async move {
                let report = match when {
                    When::Before => report_request::ask(&flow).await,
                    When::After => report_request::ask_until_settled(&flow).await,
                };
                let reports = &mut part.reports.borrow_mut()[place];
                match when {
                    When::Before => reports.0 = report,
                    When::After => reports.1 = report,
                }
                left.set(left.get() - 1);
                if left.get() == 0 {
                    done.set();
                }
            });
        }
        done.wait().await;
    }

    /// Waits for outstanding echoes, at most for the timeout.
    async fn wait_for_echoes(&self) {
        let end = self.core.now_exact() + self.shared.timeout;
        let pause = self.shared.timeout / ECHO_CHECKS;
        while self.flows.iter().any(|flow| flow.waiting() > 0) {
            if self.core.now_exact() >= end {
                return;
            }
            self.core.sleep(pause).await;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Before,
    After,
}

async fn drive(part: Rc<Part>, gate: Arc<StartBarrier>, messages: Sender<Message>) {
    let core = part.core.clone();
    part.ask(When::Before).await;
    part.start(gate.pass(&core).await);
    core.spawn(report_seconds(Rc::clone(&part), messages));
    part.sent.wait().await;
    part.end_sending();
    part.wait_for_echoes().await;
    part.ask(When::After).await;
    core.stop(Duration::ZERO);
}

/// Reports the counters once a second.
async fn report_seconds(part: Rc<Part>, messages: Sender<Message>) {
    let mut next = part.begin.get();
    while part.end.get().is_none() {
        next = next + Duration::from_secs(1);
        part.core.sleep_until(next).await;
        if part.end.get().is_none() {
            let elapsed = next.since(part.begin.get());
            let _ = messages.send(Message::Second(part.core.id(), elapsed, part.counts()));
        }
    }
}

/// Keeps a short timer running, so that the engine notices when the thread was stalled and for how long.
async fn keep_stall_timer(core: Core) {
    loop {
        core.sleep(STALL_CHECK_INTERVAL).await;
    }
}

/// Stops sending when the run is interrupted; its results are still reported within the grace period.
async fn end_early(part: Rc<Part>) {
    part.core.stopped().await;
    part.end_sending();
}

fn open(core: &Core, task: &RunContext, number: u16) -> Result<Datagram, Error> {
    let path = task.path_of(number);
    let source = task.plan.options.sources.nth(number.into());
    let address = path::bind_address(source, path, task.target.ip());
    let socket = Datagram::bind(core, SocketAddr::new(address, 0))?;
    if let Some(index) = path::bind_index(path) {
        socket.bind_to_interface(index)?;
    }
    socket.connect(task.target)?;
    Ok(socket)
}
