//! One core's part of a run from its start to its end: its connections, and the task that tells once a second what was
//! counted.
//!
//! It starts connections (`connection.rs`), users of journeys, lanes of HTTP/2 or UDP sockets; the rest of the run
//! does not know which.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use onrush_engine::{Address, Core};

use crate::connection;
use crate::connection::core_run::CoreRun;
use crate::connection::http2;
use crate::connection::outcome::Outcome;
use crate::connection::socket::{self, Room};
use crate::connection::user::{self, Users};
use crate::limits::{BEAT, SOFT_STOP, SPARE_SECONDS};
use crate::pace::gate::Gate;
use crate::plan::Plan;
use crate::record::rows::Reading;
use crate::record::standing::Thread;
use crate::record::times::Times;
use crate::record::unanswered::Unanswered;
use crate::requests::memcached::Carrier;

/// What a core tells the thread that waits.
pub(crate) enum Message {
    /// Its part of the run has begun.
    Began(Thread),
    /// A second has passed.
    Second(usize, Reading, Option<Measured>),
    /// It has ended; for how long what has no response has waited.
    Ended(usize, Reading, Box<Unanswered>),
}

/// What a core tells of a second.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) times: Box<Times>,
    /// At its end, for how long what has no response had waited.
    pub(crate) unanswered: Unanswered,
}

/// What a core measured in a second.
pub(crate) struct Measured {
    pub(crate) told: Box<Told>,
    /// Where to send it when it is empty again, so that the core needs no new memory.
    pub(crate) back: Sender<Box<Told>>,
}

impl Measured {
    /// `told`, to be sent `back`.
    pub(crate) fn new(told: Box<Told>, back: Sender<Box<Told>>) -> Measured {
        Measured { told, back }
    }
}

/// Empty memory for what is told of seconds, and where it comes back to.
struct Spares {
    back: Sender<Box<Told>>,
    empty: Receiver<Box<Told>>,
}

impl Spares {
    /// So many as [`SPARE_SECONDS`] says. To zero them takes milliseconds.
    fn new() -> Spares {
        let (back, empty) = channel();
        for _ in 0..SPARE_SECONDS {
            let _ = back.send(Box::default());
        }
        Spares { back, empty }
    }
}

/// Who asks over the connections of a core.
enum Askers {
    /// Each connection itself, one request behind the other.
    Connections,
    /// A user on its journey.
    Users(Rc<Users>),
    /// Lanes of each connection.
    Lanes,
    /// Each socket itself, in datagrams.
    Sockets(Rc<Room>),
}

impl Askers {
    fn of(plan: &Plan) -> Askers {
        match (Users::of(plan), plan.carrier()) {
            (Some(users), _) => Askers::Users(users),
            (None, Carrier::Streams) if plan.protocol.is_http2() => Askers::Lanes,
            (None, Carrier::Streams) => Askers::Connections,
            (None, Carrier::Datagrams) => Askers::Sockets(Rc::new(Room::new())),
        }
    }
}

/// Core `core.id()`'s part of the run, from its start to its end.
pub(crate) fn run_core(
    core: &Core,
    plan: &Arc<Plan>,
    address: Address,
    gate: &Arc<Gate>,
    messages: &Sender<Message>,
) -> Outcome {
    let run = CoreRun::new(core, plan, address);
    let askers = Askers::of(plan);
    // What takes milliseconds comes before the first connection: while one is being made, it would be part of its time.
    let spares = Spares::new();
    if let Some(connector) = &plan.connector {
        connector.prepare_thread();
    }
    for (index, number) in (0..).zip(plan.connections_of(core.id())) {
        let run = Rc::clone(&run);
        match &askers {
            Askers::Connections => core.spawn(connection::run(run, index, number)),
            Askers::Users(users) => core.spawn(user::run(Rc::clone(users), run, index, number)),
            Askers::Lanes => core.spawn(http2::run(run, index, number)),
            Askers::Sockets(room) => core.spawn(socket::run(run, Rc::clone(room), index, number)),
        }
    }
    run.spawn_release();
    core.spawn(lead(
        core.clone(),
        Rc::clone(&run),
        Arc::clone(gate),
        messages.clone(),
        spares,
    ));
    core.spawn(end_early(core.clone(), Rc::clone(&run)));
    core.run();
    let end = run.finish();
    // Whoever does not listen any more does not want to know.
    let mut unanswered = Box::<Unanswered>::default();
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

/// Begins the core's part of the run together with the other cores', tells once a second what was counted, and ends it
/// when the time is over.
async fn lead(
    core: Core,
    run: Rc<CoreRun>,
    gate: Arc<Gate>,
    messages: Sender<Message>,
    spares: Spares,
) {
    run.dialer.opened().await;
    run.start(gate.pass(&core).await);
    if let Some(thread) = run.thread() {
        let _ = messages.send(Message::Began(thread));
    }
    core.spawn(beat(core.clone()));
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
            // The last row ends with the run, not with the responses that are late.
            return;
        }
        let reading = run.read();
        run.recorder.next_second();
        // None has come back when the waiting thread has had no CPU for seconds: this one is then joined with the next,
        // so that the run's memory does not grow.
        let measured = spares.empty.try_recv().ok().map(|mut empty| {
            run.unanswered(&mut empty.unanswered);
            empty.times = run.recorder.take_times(empty.times);
            Measured::new(empty, spares.back.clone())
        });
        let _ = messages.send(Message::Second(core.id(), reading, measured));
    }
}

/// Always has a timer that is due soon: a thread that was stopped, or waited for a CPU, sees by how much it is late.
async fn beat(core: Core) {
    loop {
        core.sleep(BEAT).await;
    }
}

/// Ends the core's part of the run when somebody asks for it.
async fn end_early(core: Core, run: Rc<CoreRun>) {
    core.stopped().await;
    stop_softly(&core, &run).await;
}

/// Gives responses that are on their way some time to arrive; with the last one the supply stops the core.
async fn stop_softly(core: &Core, run: &CoreRun) {
    if run.finish().unfinished > 0 {
        core.sleep(SOFT_STOP).await;
    }
    core.stop(Duration::ZERO);
}
