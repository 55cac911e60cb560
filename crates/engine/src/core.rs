//! One core: a thread, usually pinned to a CPU, with its tasks, sockets, driver and timers.

pub(crate) mod cores;
pub(crate) mod mailbox;
pub(crate) mod reply;

mod accepted;
mod attached;
pub(crate) mod connections;
pub(crate) mod handle;
mod input;
mod lateness;
pub(crate) mod sleep;
mod spin;
mod stall;
pub(crate) mod stopped;
mod timer_delay;
mod turn;
mod work_time;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use std::time::Duration;

use crate::buffers::block::{Blocks, InBlock};
use crate::buffers::buffer::{Buffer, Pool};
use crate::clock::{Clock, Instant};
use crate::core::mailbox::Mailbox;
use crate::driver::Driver;
use crate::driver::choice::Io;
use crate::driver::operations::Operations;
use crate::driver::simulated::Simulated;
use crate::driver::simulation::Simulation;
use crate::error::{Error, Op};
use crate::file::pipe::Pipes;
use crate::limits::BUFFER_BYTES;
use crate::state::State;
use crate::task::Tasks;
use crate::task::notifier::{CoreIndex, Notifier};
use crate::task::profile::{Profile, Work};

use handle::{Handle, Shared};
use stall::Stalls;
use timer_delay::TimerDelay;
use work_time::WorkTime;

/// A core, as its own thread uses it. Cloning it is cheap.
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
    /// The time at the start of this iteration of the event loop.
    now: Cell<Instant>,
    busy_max: Cell<Duration>,
    lateness: Cell<Duration>,
    stalled: Cell<Duration>,
    behind: Cell<TimerDelay>,
    stalls: RefCell<Stalls>,
    busy_polls: Cell<bool>,
    worked: WorkTime,
    /// Whether the last poll of the kernel returned work for this iteration of the event loop.
    has_work: Cell<bool>,
    is_running: Cell<bool>,
    shared: Arc<Shared>,
    /// The notifier of `shared`, with one pointer less to follow.
    notifier: Arc<Notifier>,
    /// When pending mail is delivered, on a simulated core.
    mail_due: Cell<Option<Instant>>,
    attached: RefCell<Option<Weak<dyn Any>>>,
    _place: CoreIndex,
}

impl Core {
    /// A core on the calling thread.
    ///
    /// # Errors
    /// When the kernel refuses a call that the driver needs.
    pub fn new(id: usize, io: Io) -> Result<Self, Error> {
        Self::with(id, Driver::new(io)?, Clock::Real)
    }

    /// A core on a simulated network with a virtual clock.
    pub fn simulated(options: Simulation) -> Self {
        let nanoseconds = Rc::new(Cell::new(1_000_000_000));
        let wall_clock = options.wall_clock;
        let driver = Simulated::new(options, Rc::clone(&nanoseconds));
        Self::with(
            0,
            Driver::Simulated(Box::new(driver)),
            Clock::Virtual(nanoseconds, wall_clock),
        )
        .expect("a simulation asks the kernel for an event descriptor only")
    }

    fn with(id: usize, driver: Driver, clock: Clock) -> Result<Self, Error> {
        let wake = driver.waking_descriptor();
        let wake = wake.map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            Error::os(Op::Start, errno)
        })?;
        let notifier = Arc::new(Notifier::new(wake));
        let too_many = Error::os(Op::Start, rustix::io::Errno::MFILE);
        let place = CoreIndex::of(&notifier).ok_or(too_many)?;
        let shared = Arc::new(Shared {
            stop: AtomicU64::new(0),
            mailbox: Mailbox::new(Arc::clone(&notifier)),
            notifier: Arc::clone(&notifier),
        });
        let now = clock.now();
        let pool = Pool::new();
        let state = State::new(driver, Rc::clone(&pool), now);
        Ok(Self(Rc::new(Inner {
            id,
            tasks: Tasks::new(place.number(), clock.clone()),
            state: RefCell::new(state),
            pool,
            pipes: Pipes::new(),
            blocks: Rc::default(),
            clock,
            now: Cell::new(now),
            busy_max: Cell::new(Duration::ZERO),
            lateness: Cell::new(Duration::ZERO),
            stalled: Cell::new(Duration::ZERO),
            behind: Cell::new(TimerDelay::Nothing),
            stalls: RefCell::default(),
            busy_polls: Cell::new(false),
            worked: WorkTime::default(),
            has_work: Cell::new(false),
            is_running: Cell::new(false),
            shared,
            notifier,
            mail_due: Cell::new(None),
            attached: RefCell::new(None),
            _place: place,
        })))
    }

    /// The core's number, from 0.
    pub fn id(&self) -> usize {
        self.0.id
    }

    /// Handle by which other threads stop the core and post mail.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.0.shared))
    }

    /// Spawns a task. It first runs after the current one yields.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Work::TASK, future);
    }

    /// [`Core::spawn`] of a task whose time is attributed to `work`.
    pub fn spawn_as(&self, work: Work, future: impl Future<Output = ()> + 'static) {
        self.0.tasks.spawn(work, Box::pin(future));
    }

    /// Attributes the running task's time to `work` from its next poll on.
    #[inline]
    pub fn set_work(&self, work: Work) {
        self.0.tasks.attribute_time_to(work);
    }

    /// The core's time by kind of work.
    pub fn profile(&self) -> Profile {
        self.0.tasks.profiler.profile()
    }

    /// Returns the time at the start of this iteration of the event loop: costs nothing, and is precise enough for
    /// timeouts.
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// The current time, read from the clock.
    pub fn now_exact(&self) -> Instant {
        self.0.clock.now()
    }

    /// Turns on [`Stream::written`](crate::Stream::written), which without io_uring reads the clock for each send.
    pub fn note_writes(&self) {
        self.0.state.borrow_mut().notes_writes = true;
    }

    /// Whether the core's network and clock are simulated.
    pub fn is_simulated(&self) -> bool {
        matches!(self.0.state.borrow().driver, Driver::Simulated(_))
    }

    /// Suspends a simulated core for `duration`, from its next look at the network on, as SIGSTOP and SIGCONT do with a
    /// process: time passes and bytes arrive, but the look returns nothing.
    ///
    /// # Panics
    /// When the core is not simulated.
    pub fn suspend(&self, duration: Duration) {
        match &mut self.0.state.borrow_mut().driver {
            Driver::Simulated(driver) => driver.stop_process(duration),
            Driver::Epoll(_) | Driver::Uring(_) => panic!("only a simulated core is asked to"),
        }
    }

    /// Makes the core poll the kernel continuously instead of blocking: no event has to wake its thread, and timers
    /// expire on time. It uses the whole CPU. No effect on a simulated core, which has no thread to wake.
    pub fn busy_poll(&self) {
        let busy_polls = !self.is_simulated();
        self.0.busy_polls.set(busy_polls);
        if busy_polls {
            self.0.worked.begin(self.0.clock.now());
        }
        self.0.state.borrow_mut().expected.is_wanted = busy_polls;
    }

    /// Whether the core [busy-polls](Core::busy_poll).
    pub fn busy_polls(&self) -> bool {
        self.0.busy_polls.get()
    }

    /// The time for which the core had work since the last call, where it busy-polls and its thread's CPU time shows
    /// nothing. Never more than that CPU time; zero if the core does not busy-poll.
    pub fn take_work_time(&self) -> Duration {
        match self.busy_polls() {
            true => self.0.worked.take_up_to(self.0.clock.now()),
            false => Duration::ZERO,
        }
    }

    /// [`Core::take_work_time`] without a reset.
    pub fn worked(&self) -> Duration {
        match self.busy_polls() {
            true => self.0.worked.up_to(self.0.clock.now()),
            false => Duration::ZERO,
        }
    }

    /// Seconds since 1970, for dates.
    pub fn unix_seconds(&self) -> u64 {
        self.0.clock.unix_seconds()
    }

    /// Returns an empty buffer.
    ///
    /// # Errors
    /// [`Kind::NoBuffers`](crate::Kind::NoBuffers) when the core's bound is reached.
    pub fn buffer(&self) -> Result<Buffer, Error> {
        self.0.pool.take()
    }

    /// Returns an empty buffer for `bytes` bytes: a wide one if necessary and available.
    ///
    /// # Errors
    /// As [`Core::buffer`].
    pub fn buffer_for(&self, bytes: u64) -> Result<Buffer, Error> {
        let wide = match bytes > BUFFER_BYTES as u64 {
            true => self.0.pool.take_wide(),
            false => None,
        };
        wide.map_or_else(|| self.buffer(), Ok)
    }

    /// The core's buffer pool.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// Frees the buffers and blocks that are kept for reuse, and returns their number.
    pub fn free_spare_memory(&self) -> usize {
        let count = self.0.pool.free() + self.0.blocks.free();
        self.0.pool.drop_free();
        self.0.blocks.drop_free();
        count
    }

    /// Number of tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.0.tasks.count()
    }

    /// Whether [`Core::run`] is in progress: tasks spawned now are run, or dropped at its end.
    pub fn is_running(&self) -> bool {
        self.0.is_running.get()
    }

    /// Whether the core was asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.0.state.borrow().stopping
    }

    /// Asks this core to stop, as [`Handle::stop`] does.
    pub fn stop(&self, drain: Duration) {
        self.handle().stop(drain);
    }

    /// Puts `future` into a memory block that the core reuses: for futures that are made once per request.
    pub fn in_block<F: Future>(&self, future: F) -> InBlock<F> {
        InBlock::new(future, &self.0.blocks)
    }

    /// Yields to the other ready tasks and to the kernel.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|_| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            self.0.tasks.yield_now();
            Poll::Pending
        })
        .await
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
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
        self.notifier.end();
        drop(self.shared.mailbox.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    impl Core {
        pub(crate) fn clock(&self) -> Clock {
            self.0.clock.clone()
        }
    }

    fn cores() -> impl Iterator<Item = Core> {
        let kernel = [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok());
        let simulated = Core::simulated(Simulation::with_seed(1));
        kernel.into_iter().chain([Some(simulated)]).flatten()
    }

    #[test]
    fn dropped_stop_wait_is_unregistered() {
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
    fn unlimited_drain_ends_with_last_task() {
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
