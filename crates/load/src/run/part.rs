//! One core's part of a run: its connections, and a task that sends the counters once a second.
//!
//! It starts plain connections (`connection.rs`), users of journeys, lanes of HTTP/2 or UDP sockets; no other part of
//! the run depends on which.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use onrush_engine::{Address, Core};

use crate::connection;
use crate::connection::core_run::CoreRun;
use crate::connection::http2;
use crate::connection::outcome::Outcome;
use crate::connection::socket::{self, SharedBuffers};
use crate::connection::user::{self, Users};
use crate::limits::{SOFT_STOP, SPARE_SECONDS, STALL_CHECK_INTERVAL};
use crate::pace::start_barrier::StartBarrier;
use crate::plan::Plan;
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::live_counters::Thread;
use crate::record::rows::Reading;
use crate::record::times::Times;
use crate::requests::memcached::TransportKind;

/// Message of a core to the collecting thread.
pub(crate) enum Message {
    Began(Thread),
    /// A second has passed: core, counters, and histograms of the second.
    Second(usize, Reading, Option<SecondBatch>),
    /// The core has ended: core, counters, and waits of requests without a response.
    Ended(usize, Reading, Box<IncompleteWaits>),
}

/// Histograms of one second of a core.
#[derive(Default)]
pub(crate) struct SecondHistograms {
    pub(crate) times: Box<Times>,
    /// Waits of requests without a response at the end of the second.
    pub(crate) unanswered: IncompleteWaits,
}

/// Histograms of one second of a core, in reusable memory.
pub(crate) struct SecondBatch {
    pub(crate) told: Box<SecondHistograms>,
    /// Returns the memory to the core after use, so that the core allocates nothing.
    pub(crate) back: Sender<Box<SecondHistograms>>,
}

impl SecondBatch {
    pub(crate) fn new(
        told: Box<SecondHistograms>,
        back: Sender<Box<SecondHistograms>>,
    ) -> SecondBatch {
        SecondBatch { told, back }
    }
}

/// Empty buffers for the histograms of seconds, and the sender that returns them.
struct SpareHistograms {
    back: Sender<Box<SecondHistograms>>,
    empty: Receiver<Box<SecondHistograms>>,
}

impl SpareHistograms {
    /// Allocates [`SPARE_SECONDS`] buffers. Zeroing them takes milliseconds.
    fn new() -> SpareHistograms {
        let (back, empty) = channel();
        for _ in 0..SPARE_SECONDS {
            let _ = back.send(Box::default());
        }
        SpareHistograms { back, empty }
    }
}

/// Kind of task that sends requests on the connections of a core.
enum RequestTasks {
    /// One task per connection.
    Connections,
    /// One task per user of a journey.
    Users(Rc<Users>),
    /// Several lanes per HTTP/2 connection.
    Lanes,
    /// One task per UDP socket.
    Sockets(Rc<SharedBuffers>),
}

impl RequestTasks {
    fn of(plan: &Plan) -> RequestTasks {
        match (Users::of(plan), plan.carrier()) {
            (Some(users), _) => RequestTasks::Users(users),
            (None, TransportKind::Streams) if plan.protocol.is_http2() => RequestTasks::Lanes,
            (None, TransportKind::Streams) => RequestTasks::Connections,
            (None, TransportKind::Datagrams) => {
                RequestTasks::Sockets(Rc::new(SharedBuffers::new()))
            }
        }
    }
}

/// Runs the part of core `core.id()` from start to end.
pub(crate) fn run_core(
    core: &Core,
    plan: &Arc<Plan>,
    address: Address,
    gate: &Arc<StartBarrier>,
    messages: &Sender<Message>,
) -> Outcome {
    let run = CoreRun::new(core, plan, address);
    let askers = RequestTasks::of(plan);
    // Work that takes milliseconds is done before the first connection, whose connect time would include it.
    let spares = SpareHistograms::new();
    if let Some(connector) = &plan.connector {
        connector.prepare_thread();
    }
    for (index, number) in (0..).zip(plan.connections_of(core.id())) {
        let run = Rc::clone(&run);
        match &askers {
            RequestTasks::Connections => core.spawn(connection::run(run, index, number)),
            RequestTasks::Users(users) => {
                core.spawn(user::run(Rc::clone(users), run, index, number))
            }
            RequestTasks::Lanes => core.spawn(http2::run(run, index, number)),
            RequestTasks::Sockets(room) => {
                core.spawn(socket::run(run, Rc::clone(room), index, number))
            }
        }
    }
    run.spawn_release();
    core.spawn(drive(
        core.clone(),
        Rc::clone(&run),
        Arc::clone(gate),
        messages.clone(),
        spares,
    ));
    core.spawn(end_early(core.clone(), Rc::clone(&run)));
    core.run();
    let end = run.finish();
    // The receiver may be gone; ignore the error.
    let mut unanswered = Box::<IncompleteWaits>::default();
    run.unanswered(&mut unanswered);
    let _ = messages.send(Message::Ended(core.id(), run.read(), unanswered));
    Outcome {
        record: run.take_record(),
        end,
        missed: run.supply.missed(),
        before: run.recorder.before(),
        answered_until: run.answered_until(),
        responses: run.recorder.responses_by_connection(),
        counts: run.codec.counts(),
    }
}

/// Starts the part together with the other cores, sends the counters once a second, and stops the core at the end.
async fn drive(
    core: Core,
    run: Rc<CoreRun>,
    gate: Arc<StartBarrier>,
    messages: Sender<Message>,
    spares: SpareHistograms,
) {
    run.dialer.connected_before_start().await;
    run.start(gate.pass(&core).await);
    if let Some(thread) = run.thread() {
        let _ = messages.send(Message::Began(thread));
    }
    core.spawn(keep_timer_due(core.clone()));
    if run.recorder.measured_from() > run.began() {
        let (own, beginning) = (core.clone(), Rc::clone(&run));
        core.spawn(async move {
            own.sleep_until(beginning.recorder.measured_from()).await;
            beginning.begin_measuring();
        });
    }
    let mut next = run.began();
    loop {
        next = next + Duration::from_secs(1);
        if let Some(end) = run.supply.end().filter(|&end| end <= next) {
            core.sleep_until(end).await;
            return stop_softly(&core, &run).await;
        }
        core.sleep_until(next).await;
        if core.is_stopping() {
            // The last row ends with the run, before the late responses.
            return;
        }
        let reading = run.read();
        run.recorder.next_second();
        // No buffer is free if the collecting thread had no CPU for seconds: join this second with the next.
        let measured = spares.empty.try_recv().ok().map(|mut empty| {
            run.unanswered(&mut empty.unanswered);
            empty.times = run.recorder.take_times(empty.times);
            SecondBatch::new(empty, spares.back.clone())
        });
        let _ = messages.send(Message::Second(core.id(), reading, measured));
    }
}

/// Keeps a short timer running, so that a thread that was stopped or waited for a CPU can measure the delay.
async fn keep_timer_due(core: Core) {
    loop {
        core.sleep(STALL_CHECK_INTERVAL).await;
    }
}

/// Ends the core's part of the run when it is stopped from outside.
async fn end_early(core: Core, run: Rc<CoreRun>) {
    core.stopped().await;
    stop_softly(&core, &run).await;
}

/// Waits for responses in flight, then stops the core. The supply stops it earlier with the last response.
async fn stop_softly(core: &Core, run: &CoreRun) {
    if run.finish().unfinished > 0 {
        core.sleep(SOFT_STOP).await;
    }
    core.stop(Duration::ZERO);
}
