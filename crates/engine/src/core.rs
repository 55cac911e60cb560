//! One core: a thread pinned to a CPU, its tasks, its sockets, its driver, its timers.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::block::{Blocks, InBlock};
use crate::buffer::{Buffer, Pool};
use crate::clock::{self, Clock, Instant};
use crate::cpu;
use crate::driver::simulated::{Simulated, Simulation};
use crate::driver::{Driver, Event, Io};
use crate::error::{Error, Kind, Op};
use crate::limits::{STALL_MIN, TASKS_PER_TURN, WAIT_MAX};
use crate::mailbox::{Mailbox, NotPosted, Place};
use crate::pipe::Pipes;
use crate::reply::{self, Promise, Reply};
use crate::socket::{Key, Sockets};
use crate::task::{TaskId, Tasks};
use crate::timer::{TimerId, Wheel};

/// A core, seen from its own thread. Cloning it is cheap.
#[derive(Clone)]
pub struct Core(Rc<Inner>);

pub(crate) struct Inner {
    id: usize,
    pub(crate) tasks: Tasks,
    pub(crate) state: RefCell<State>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) pipes: Rc<Pipes>,
    blocks: Rc<Blocks>,
    clock: Clock,
    /// The time at the start of this turn.
    now: Cell<Instant>,
    /// See [`Core::take_busy_max`].
    busy_max: Cell<Duration>,
    /// See [`Core::lateness`].
    lateness: Cell<Duration>,
    /// See [`Core::stalled`].
    stalled: Cell<Duration>,
    /// See [`Core::poll_busily`].
    polls: Cell<bool>,
    /// See [`Core::take_worked`].
    worked: Cell<Duration>,
    /// Whether the look at the kernel before this turn gave it something to do.
    has_work: Cell<bool>,
    shared: Arc<Shared>,
    /// When the mail that has come is delivered, on a simulated core.
    mail_due: Cell<Option<Instant>>,
    _place: Place,
}

/// Everything that operations change.
pub(crate) struct State {
    pub(crate) driver: Driver,
    pub(crate) sockets: Sockets,
    pub(crate) timers: Wheel<Timer>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) now: Instant,
    /// Sockets with sends that wait for the end of the turn; some may have left by themselves meanwhile.
    pub(crate) due: Vec<Key>,
    /// Whether the moment of each send is kept.
    pub(crate) notes_writes: bool,
    /// No new work is wanted; waits that are interruptible end.
    pub(crate) stopping: bool,
    stop_waiters: Vec<TaskId>,
    sleeps: Vec<SleepState>,
    sleeps_unused: Vec<u32>,
    events: Vec<Event>,
    expired: Vec<Timer>,
}

/// Whom a timer wakes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    Socket(Key),
    Sleep(u32),
}

#[derive(Clone, Copy)]
enum SleepState {
    Unused,
    Waiting(TaskId),
    Over,
}

/// What other threads may touch.
pub(crate) struct Shared {
    /// 0: go on. Otherwise stop, and let tasks finish for this many nanoseconds less one.
    stop: AtomicU64,
    pub(crate) mailbox: Mailbox,
    /// Ends the core's wait for the kernel.
    pub(crate) wake: OwnedFd,
}

/// A core, seen from other threads.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Asks the core to stop: interruptible waits end at once, the other tasks have `drain` to finish. Asking again can
    /// shorten that, not prolong it.
    pub fn stop(&self, drain: Duration) {
        let nanoseconds = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX - 1);
        let wish = nanoseconds.saturating_add(1);
        // Two threads may ask at the same time, and the less patient one come first.
        let _ = self
            .0
            .stop
            .fetch_update(Ordering::Release, Ordering::Relaxed, |earlier| {
                Some(if earlier == 0 {
                    wish
                } else {
                    wish.min(earlier)
                })
            });
        // An eventfd's counter cannot overflow by ones; and a core that is gone needs no waking.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }

    /// Has the core run `mail` on its thread, between two turns and outside of any task; it must not block. Mail of one
    /// thread runs in the order in which it was posted. A core that stops before it has run it drops it.
    ///
    /// # Errors
    /// When the core has too much mail that it has not run yet, or has ended. The mail is dropped then.
    pub fn post(&self, mail: impl FnOnce(&Core) + Send + 'static) -> Result<(), NotPosted> {
        self.0.mailbox.post(Box::new(mail), &self.0.wake)
    }
}

impl Core {
    /// A core on the calling thread.
    ///
    /// # Errors
    /// When the kernel refuses what the driver needs.
    pub fn new(id: usize, io: Io) -> Result<Self, Error> {
        Self::with(id, Driver::new(io)?, Clock::Real)
    }

    /// A core on a simulated network with a virtual clock.
    pub fn simulated(options: Simulation) -> Self {
        let nanoseconds = Rc::new(Cell::new(1_000_000_000));
        let driver = Simulated::new(options, Rc::clone(&nanoseconds));
        Self::with(
            0,
            Driver::Simulated(Box::new(driver)),
            Clock::Virtual(nanoseconds),
        )
        .expect("a simulation asks the kernel for an event descriptor only")
    }

    fn with(id: usize, driver: Driver, clock: Clock) -> Result<Self, Error> {
        let wake = match &driver {
            Driver::Epoll(driver) => driver.wake_descriptor().try_clone(),
            Driver::Uring(driver) => driver.wake_descriptor().try_clone(),
            Driver::Simulated(_) => {
                rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).map_err(Into::into)
            }
        };
        let wake = wake.map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            Error::os(Op::Start, errno)
        })?;
        let shared = Arc::new(Shared {
            stop: AtomicU64::new(0),
            mailbox: Mailbox::new(),
            wake,
        });
        let too_many = Error::os(Op::Start, rustix::io::Errno::MFILE);
        let place = Place::of(&shared).ok_or(too_many)?;
        let now = clock.now();
        let pool = Pool::new();
        let state = State {
            driver,
            sockets: Sockets::new(),
            timers: Wheel::new(now),
            pool: Rc::clone(&pool),
            now,
            due: Vec::new(),
            notes_writes: false,
            stopping: false,
            stop_waiters: Vec::new(),
            sleeps: Vec::new(),
            sleeps_unused: Vec::new(),
            events: Vec::new(),
            expired: Vec::new(),
        };
        Ok(Self(Rc::new(Inner {
            id,
            tasks: Tasks::new(place.number()),
            state: RefCell::new(state),
            pool,
            pipes: Pipes::new(),
            blocks: Rc::default(),
            clock,
            now: Cell::new(now),
            busy_max: Cell::new(Duration::ZERO),
            lateness: Cell::new(Duration::ZERO),
            stalled: Cell::new(Duration::ZERO),
            polls: Cell::new(false),
            worked: Cell::new(Duration::ZERO),
            has_work: Cell::new(false),
            shared,
            mail_due: Cell::new(None),
            _place: place,
        })))
    }

    /// The core's number, from 0.
    pub fn id(&self) -> usize {
        self.0.id
    }

    /// What other threads use to stop the core.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.0.shared))
    }

    /// Adds a task. It starts when the present one pauses.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.0.tasks.spawn(Box::pin(future));
    }

    /// The time at the start of this turn of the core: free, and precise enough for timeouts.
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// The time right now: a read of the clock.
    pub fn now_exact(&self) -> Instant {
        self.0.clock.now()
    }

    /// From now on [`Stream::written`](crate::Stream::written) knows when the kernel was handed what was sent: a read of the
    /// clock for each send where no ring is.
    pub fn note_writes(&self) {
        self.0.state.borrow_mut().notes_writes = true;
    }

    /// For how long what this turn has found may have waited to be seen: the time that the turn before took, and that by
    /// which the wait between them went on behind the earliest timer. A thread that was stopped, or had no CPU, shows here
    /// as far as a timer was due meanwhile.
    #[inline]
    pub fn lateness(&self) -> Duration {
        self.0.lateness.get()
    }

    /// The sum of all [latenesses](Core::lateness) that were longer than [`STALL_MIN`] since this was last asked.
    pub fn take_stalled(&self) -> Duration {
        self.0.stalled.take()
    }

    /// The same, without asking to start anew.
    pub fn stalled(&self) -> Duration {
        self.0.stalled.get()
    }

    /// The longest [lateness](Core::lateness) since this was last asked: what a socket or a timer may have had to wait
    /// for.
    pub fn take_busy_max(&self) -> Duration {
        self.0.busy_max.take()
    }

    /// The same, without asking to start anew.
    pub fn busy_max(&self) -> Duration {
        self.0.busy_max.get()
    }

    /// From now on the core asks the kernel again and again instead of waiting: nothing that happens has to wake its
    /// thread first, and timers end on time. It takes the whole CPU. A simulated core has no thread to wake.
    pub fn poll_busily(&self) {
        let is_simulated = matches!(self.0.state.borrow().driver, Driver::Simulated(_));
        self.0.polls.set(!is_simulated);
    }

    /// How long the core had something to do since this was last asked, where it polls busily and its thread's time on
    /// a CPU says nothing.
    pub fn take_worked(&self) -> Duration {
        self.0.worked.take()
    }

    /// The same, without asking to start anew.
    pub fn worked(&self) -> Duration {
        self.0.worked.get()
    }

    /// Seconds since 1970, for dates.
    pub fn unix_seconds(&self) -> u64 {
        self.0.clock.unix_seconds()
    }

    /// An empty buffer.
    ///
    /// # Errors
    /// [`Kind::NoBuffers`] when the core's bound is reached.
    pub fn buffer(&self) -> Result<Buffer, Error> {
        self.0.pool.take()
    }

    /// The core's buffers.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.0.tasks.count()
    }

    /// Whether the core was asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.0.state.borrow().stopping
    }

    /// Asks this core to stop, as [`Handle::stop`] does.
    pub fn stop(&self, drain: Duration) {
        self.handle().stop(drain);
    }

    /// `future` in memory that the core keeps for the next one: for those that are made for every request. A step of it
    /// costs no more than one of a boxed future.
    pub fn in_block<F: Future>(&self, future: F) -> InBlock<F> {
        InBlock::new(future, &self.0.blocks)
    }

    /// Pauses until the core is asked to stop.
    pub fn stopped(&self) -> Stopped<'_> {
        Stopped {
            core: self,
            waits: None,
        }
    }

    /// Pauses for at least `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.now_exact() + duration)
    }

    /// Pauses until `when`, at least.
    pub fn sleep_until(&self, when: Instant) -> Sleep {
        Sleep {
            core: self.clone(),
            when,
            timer: None,
        }
    }

    /// Pauses for at least `duration`, or until the core is asked to stop.
    pub async fn sleep_unless_stopping(&self, duration: Duration) {
        let mut sleep = self.sleep(duration);
        let mut stopped = self.stopped();
        poll_fn(|context| {
            if Pin::new(&mut stopped).poll(context).is_ready() {
                return Poll::Ready(());
            }
            Pin::new(&mut sleep).poll(context)
        })
        .await;
    }

    /// Lets the other ready tasks and the kernel have their turn, and those that have paused before.
    pub async fn pause(&self) {
        let mut paused = false;
        poll_fn(|_| {
            if paused {
                return Poll::Ready(());
            }
            paused = true;
            self.0.tasks.pause();
            Poll::Pending
        })
        .await
    }

    /// Runs the core until all tasks have ended, or it was asked to stop and the time to finish has passed. Returns the
    /// number of tasks that were cut off.
    pub fn run(&self) -> usize {
        let mut drained_by = None;
        loop {
            self.0.tasks.run(TASKS_PER_TURN);
            let has_work = self.0.tasks.count() > 0 || self.0.shared.mailbox.is_filled();
            if (!has_work && !self.is_sending())
                || drained_by.is_some_and(|deadline| self.0.now.get() >= deadline)
            {
                break;
            }
            self.turn(drained_by);
            if self.has_mail() {
                self.run_mail();
            }
            let Some(drain) = self.asked_to_stop() else {
                continue;
            };
            if drained_by.is_none() {
                self.interrupt();
            }
            // Asked again with less patience, the core has less; a later look at the same wish changes nothing.
            let deadline = self.0.now.get() + drain;
            drained_by =
                Some(drained_by.map_or(deadline, |earlier: Instant| earlier.min(deadline)));
        }
        let cut_off = self.0.tasks.count();
        self.0.tasks.clear();
        cut_off
    }

    /// Whether last answers of closed streams are still on their way.
    fn is_sending(&self) -> bool {
        let state = &mut *self.0.state.borrow_mut();
        state
            .sockets
            .iter_mut()
            .any(|socket| socket.closing && socket.is_sending())
    }

    /// Sends what the tasks of this turn have left, then one look at the kernel and the clock.
    fn turn(&self, drained_by: Option<Instant>) {
        let Inner { tasks, state, .. } = &*self.0;
        let state = &mut *state.borrow_mut();
        state.send_due(tasks);
        let until = earlier(state.timers.next(), drained_by);
        let now = self.0.clock.now();
        let busy = now.since(self.0.now.get());
        let timeout = if tasks.has_ready() || self.0.polls.get() {
            Some(Duration::ZERO)
        } else {
            until.map(|until| until.since(now).min(WAIT_MAX))
        };
        let due = until.map(|until| until.max(now));
        let mut events = std::mem::take(&mut state.events);
        match &mut state.driver {
            Driver::Epoll(driver) => driver.wait(timeout, &mut events),
            Driver::Uring(driver) => driver.turn(
                now,
                timeout,
                &mut state.sockets,
                tasks,
                &state.pool,
                &mut events,
            ),
            Driver::Simulated(driver) => {
                let until = if tasks.has_ready() {
                    // Running them took time, too.
                    Some(self.0.clock.now() + Duration::from_micros(1))
                } else {
                    until
                };
                let until = earlier(until, self.mail_due(driver));
                // The stop of a simulated core comes from one of its own tasks.
                let stop_asked =
                    self.0.shared.stop.load(Ordering::Acquire) != 0 && drained_by.is_none();
                if stop_asked {
                    events.push(Event::Wake);
                } else {
                    driver.wait(until, &mut state.sockets, &mut events);
                }
            }
        }
        state.now = self.0.clock.now();
        self.0.now.set(state.now);
        let overslept = due.map_or(Duration::ZERO, |due| state.now.since(due));
        self.note_lateness(busy + overslept);
        for event in events.drain(..) {
            state.act(event, tasks);
        }
        state.events = events;
        state.expire(tasks);
        if self.0.polls.get() {
            self.note_work(busy, state.now.since(now));
        }
    }

    fn note_lateness(&self, lateness: Duration) {
        self.0.lateness.set(lateness);
        self.0.busy_max.set(self.0.busy_max.get().max(lateness));
        if lateness > STALL_MIN {
            self.0.stalled.set(self.0.stalled.get() + lateness);
        }
    }

    /// Whether mail has come and may be looked at.
    fn has_mail(&self) -> bool {
        if !self.0.shared.mailbox.is_filled() {
            return false;
        }
        match &self.0.clock {
            Clock::Real => true,
            Clock::Virtual(_) => self
                .0
                .mail_due
                .get()
                .is_some_and(|due| self.0.now.get() >= due),
        }
    }

    /// When the mail of a simulated core is delivered, if there is any: the seed decides how long it travels. What real
    /// threads have promised is waited for first, in real time, so that the run depends on the seed and not on them.
    fn mail_due(&self, driver: &Simulated) -> Option<Instant> {
        let mailbox = &self.0.shared.mailbox;
        mailbox.await_promised(&self.0.shared.wake);
        if !mailbox.is_filled() {
            return None;
        }
        if self.0.mail_due.get().is_none() {
            self.0
                .mail_due
                .set(Some(self.0.clock.now() + driver.delay()));
        }
        self.0.mail_due.get()
    }

    /// Runs what other threads have posted, and wakes the tasks that they have woken.
    fn run_mail(&self) {
        let tasks = &self.0.tasks;
        self.0.mail_due.set(None);
        let _here = tasks.are_here();
        for mail in self.0.shared.mailbox.take(tasks) {
            mail(self);
        }
        tasks.wake_woken();
    }

    /// A value that another thread will give to a task of this core: the end to give it by, and the end that waits.
    pub fn promise<T: Send + 'static>(&self) -> (Promise<T>, Reply<T>) {
        reply::promise(Arc::clone(&self.0.shared))
    }

    /// A turn has had `busy` to do, and then asked the kernel for `asked`.
    fn note_work(&self, busy: Duration, asked: Duration) {
        let mut worked = self.0.worked.get();
        if self.0.has_work.replace(self.0.tasks.has_ready()) {
            worked += busy;
        }
        // What came of asking was done in asking.
        if self.0.has_work.get() {
            worked += asked;
        }
        self.0.worked.set(worked);
    }

    fn asked_to_stop(&self) -> Option<Duration> {
        match self.0.shared.stop.load(Ordering::Acquire) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds - 1)),
        }
    }

    /// Wakes everybody who wants to know that the core is stopping.
    fn interrupt(&self) {
        let Inner { tasks, state, .. } = &*self.0;
        let state = &mut *state.borrow_mut();
        state.stopping = true;
        for task in std::mem::take(&mut state.stop_waiters) {
            tasks.wake(task);
        }
        for socket in state
            .sockets
            .iter_mut()
            .filter(|socket| socket.interruptible)
        {
            tasks.wake_once(&mut socket.recv_waiter);
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl State {
    fn act(&mut self, event: Event, tasks: &Tasks) {
        let Event::Ready {
            key,
            readable,
            writable,
            ended,
            urgent,
        } = event
        else {
            return;
        };
        let socket = &mut self.sockets[key];
        socket.ended |= ended;
        socket.urgent |= urgent;
        if readable {
            socket.readable = true;
            tasks.wake_once(&mut socket.recv_waiter);
        }
        if writable {
            self.is_writable_again(key, tasks);
        }
    }

    fn expire(&mut self, tasks: &Tasks) {
        let mut expired = std::mem::take(&mut self.expired);
        self.timers.expire(self.now, &mut expired);
        for timer in expired.drain(..) {
            match timer {
                Timer::Socket(key) => self.socket_timer_expired(key, tasks),
                Timer::Sleep(index) => {
                    let state = &mut self.sleeps[index as usize];
                    if let SleepState::Waiting(task) = *state {
                        tasks.wake(task);
                    }
                    *state = SleepState::Over;
                }
            }
        }
        self.expired = expired;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Inner { tasks, state, .. } = self;
        let State {
            driver,
            sockets,
            pool,
            ..
        } = state.get_mut();
        if let Driver::Uring(driver) = driver {
            driver.shut_down(sockets, tasks, pool);
        }
        drop(self.shared.mailbox.end());
    }
}

/// A wait for the end of a core. Dropping it takes the wish to be woken back.
pub struct Stopped<'a> {
    core: &'a Core,
    /// Who stands in the core's list for it.
    waits: Option<TaskId>,
}

impl Stopped<'_> {
    fn leave(&mut self) {
        let Some(task) = self.waits.take() else {
            return;
        };
        let waiters = &mut self.core.0.state.borrow_mut().stop_waiters;
        // Nobody stands there any more when all were woken. Whoever came last often leaves first.
        if let Some(at) = waiters.iter().rposition(|&waiter| waiter == task) {
            waiters.swap_remove(at);
        }
    }
}

impl Future for Stopped<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.core.is_stopping() {
            return Poll::Ready(());
        }
        let task = self.core.0.tasks.current();
        if self.waits != Some(task) {
            self.leave();
            self.core.0.state.borrow_mut().stop_waiters.push(task);
            self.waits = Some(task);
        }
        Poll::Pending
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}

/// A pause. Dropping it takes its timer back.
pub struct Sleep {
    core: Core,
    when: Instant,
    timer: Option<(TimerId, u32)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let core = self.core.clone();
        let state = &mut *core.0.state.borrow_mut();
        let task = core.0.tasks.current();
        if let Some((_, index)) = self.timer {
            return match state.sleeps[index as usize] {
                // What lies beyond the wheel comes out of it early.
                SleepState::Over if self.when > state.now => {
                    state.sleeps[index as usize] = SleepState::Waiting(task);
                    let timer = state.timers.insert(self.when, Timer::Sleep(index));
                    self.timer = Some((timer, index));
                    Poll::Pending
                }
                SleepState::Over => Poll::Ready(()),
                SleepState::Waiting(_) | SleepState::Unused => {
                    state.sleeps[index as usize] = SleepState::Waiting(task);
                    Poll::Pending
                }
            };
        }
        if self.when <= core.0.clock.now() {
            return Poll::Ready(());
        }
        let index = state.sleeps_unused.pop().unwrap_or_else(|| {
            state.sleeps.push(SleepState::Unused);
            (state.sleeps.len() - 1) as u32
        });
        state.sleeps[index as usize] = SleepState::Waiting(task);
        self.timer = Some((state.timers.insert(self.when, Timer::Sleep(index)), index));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some((timer, index)) = self.timer else {
            return;
        };
        let state = &mut *self.core.0.state.borrow_mut();
        if matches!(state.sleeps[index as usize], SleepState::Waiting(_)) {
            state.timers.cancel(timer);
        }
        state.sleeps[index as usize] = SleepState::Unused;
        state.sleeps_unused.push(index);
    }
}

/// What the threads of [`start`] run on.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Never [`Io::Auto`] when the choice was made with [`crate::choose`].
    pub io: Io,
    /// The CPU of each core; `None` leaves a core unpinned.
    pub cpus: Vec<Option<usize>>,
}

/// Running cores.
pub struct Cores<T> {
    handles: Vec<Handle>,
    /// `None` is returned only by a core that could not be made, and then there is no `Cores`.
    threads: Vec<JoinHandle<Option<T>>>,
}

/// Starts one thread per entry of `setup.cpus`, makes a core on each and calls `main` with it; what `main` returns comes
/// out of [`Cores::join`]. `main` spawns its tasks and calls [`Core::run`].
///
/// # Errors
/// When a core cannot be made; those already started are stopped.
pub fn start<T, F>(setup: &Setup, main: F) -> Result<Cores<T>, Error>
where
    T: Send + 'static,
    F: Fn(Core) -> T + Send + Clone + 'static,
{
    let (report, reports) = std::sync::mpsc::channel();
    let mut threads = Vec::new();
    for (id, &cpu) in setup.cpus.iter().enumerate() {
        let (main, own_report, io) = (main.clone(), report.clone(), setup.io);
        let run = move || {
            let core = pinned_core(id, io, cpu);
            // The receiver lives until all cores have reported.
            let _ = own_report.send(core.as_ref().map(Core::handle).map_err(|&error| error));
            drop(own_report);
            // Whoever called `start` has got the error and joins nobody.
            core.ok().map(main)
        };
        let spawned = std::thread::Builder::new()
            .name(format!("core-{id}"))
            .spawn(run);
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                let errno =
                    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN);
                // As a core would that cannot be made; those before it are stopped below.
                let _ = report.send(Err(Error::os(Op::Start, errno)));
                break;
            }
        }
    }
    drop(report);
    let outcomes: Vec<Result<Handle, Error>> = reports.iter().collect();
    let handles: Vec<Handle> = outcomes
        .iter()
        .filter_map(|outcome| outcome.clone().ok())
        .collect();
    if let Some(error) = outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
        handles
            .iter()
            .for_each(|handle| handle.stop(Duration::ZERO));
        return Err(*error);
    }
    Ok(Cores { handles, threads })
}

fn pinned_core(id: usize, io: Io, cpu: Option<usize>) -> Result<Core, Error> {
    if let Some(cpu) = cpu {
        cpu::pin(cpu).map_err(|errno| Error::new(Op::Start, Kind::Os(errno)))?;
    }
    clock::sharpen_timers();
    Core::new(id, io)
}

impl<T> Cores<T> {
    /// Asks all cores to stop and gives their tasks `drain` to finish.
    pub fn stop(&self, drain: Duration) {
        self.handles.iter().for_each(|handle| handle.stop(drain));
    }

    /// What stops the cores from another thread.
    pub fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }

    /// Whether all cores have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for all cores and returns what their `main` returned, in the order of the cores.
    ///
    /// # Panics
    /// When a core panicked.
    pub fn join(self) -> Vec<T> {
        self.threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(value) => value.expect("every core was made, or `start` had failed"),
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Cores of every kind that can be had here.
    fn cores() -> impl Iterator<Item = Core> {
        let kernel = [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok());
        let simulated = Core::simulated(Simulation::with_seed(1));
        kernel.into_iter().chain([Some(simulated)]).flatten()
    }

    #[test]
    fn who_gives_up_waiting_for_the_end_leaves_nothing_behind() {
        for core in cores() {
            let mut context = Context::from_waker(Waker::noop());
            let mut kept = core.stopped();
            assert!(Pin::new(&mut kept).poll(&mut context).is_pending());
            for _ in 0..100 {
                let mut given_up = core.stopped();
                assert!(Pin::new(&mut given_up).poll(&mut context).is_pending());
                let mut sleep = Box::pin(core.sleep_unless_stopping(Duration::from_secs(3600)));
                assert!(sleep.as_mut().poll(&mut context).is_pending());
            }
            assert_eq!(core.0.state.borrow().stop_waiters.len(), 1);
            drop(kept);
            assert_eq!(core.0.state.borrow().stop_waiters.len(), 0);
        }
    }

    #[test]
    fn a_sleep_of_months_ends_when_they_have_passed() {
        let core = Core::simulated(Simulation::with_seed(1));
        let (sleeping, begun) = (core.clone(), core.now());
        let (months, for_ever) = (Duration::from_secs(100 * 24 * 3600), Duration::MAX);
        core.spawn(async move {
            sleeping.sleep(months).await;
            assert!(sleeping.now().since(begun) >= months);
            sleeping.stop(Duration::ZERO);
        });
        let sleeping = core.clone();
        core.spawn(async move { sleeping.sleep(for_ever).await });
        assert_eq!(core.run(), 1, "one sleeps for ever");
        assert!(core.now().since(begun) < 2 * months);
    }

    #[test]
    fn a_core_that_may_take_as_long_as_it_likes_to_stop_stops_when_it_is_done() {
        for core in cores() {
            core.stop(Duration::MAX);
            let finishing = core.clone();
            core.spawn(async move {
                finishing.stopped().await;
                finishing.sleep(Duration::from_millis(5)).await;
            });
            assert_eq!(core.run(), 0);
        }
    }
}
