//! State of a core that does not depend on the configuration: pools, date, counters, shutdown.

pub(crate) mod admit;
pub(crate) mod alarm;
pub(crate) mod client_counts;
pub mod compress;
pub(crate) mod connection_budget;
pub(crate) mod connection_fields;
pub(crate) mod connections;
pub(crate) mod descriptor_shares;
pub(crate) mod field_pool;
pub(crate) mod generation;
pub(crate) mod idle_limit;
pub(crate) mod on_demand;
pub(crate) mod plan_issue;
pub(crate) mod spare;
pub(crate) mod stalled_by_address;
pub(crate) mod time_slice;
pub(crate) mod upload_budget;
pub(crate) mod waiter;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::random::Random;
use onrush_engine::{Core, Instant, Memory, Work};
use onrush_http::date::{self, DATE_BYTES};

use crate::limits::http2::{HTTP2_DROPPED_MAX, HTTP2_TRIM_DELAY};
use crate::limits::{DATE_LAG, STALL_SHARE};
use crate::observe::in_flight::InFlightList;
use crate::observe::log::Log;
use crate::observe::meter::Meter;
use crate::observe::registry::Registry;
use crate::observe::work::UPKEEP;
use crate::worker::client_counts::CoreClientCounts;
use crate::worker::connection_budget::ConnectionBudget;
use crate::worker::connections::Identities;
use crate::worker::idle_limit::{IdleLimit, IdleOwner};
use crate::worker::spare::Spare;
use crate::worker::stalled_by_address::StalledByAddress;
use crate::worker::upload_budget::UploadBudget;
use crate::worker::waiter::SpareParked;

pub(crate) struct Worker {
    pub(crate) core: Core,
    pub(crate) limits: onrush_http::Limits,
    /// Encoders for compressing responses.
    pub(crate) encoders: Rc<compress::Pool>,
    pub(crate) meter: Meter,
    pub(crate) registry: Registry,
    pub(crate) live: InFlightList,
    pub(crate) identities: Identities,
    pub(crate) log: Log,
    /// Whether the core is stopping: responses then close their connections.
    pub(crate) stopping: Cell<bool>,
    pub(crate) stop_started: Cell<Instant>,
    /// Timeout of a stop.
    pub(crate) drain: Cell<Duration>,
    /// Number of running tasks of [`Worker::spawn_background`].
    aside: Cell<usize>,
    /// Budget of client connections.
    pub(crate) connection_budget: Arc<ConnectionBudget>,
    /// Limits idle connections to servers.
    pub(crate) kept: Rc<IdleLimit>,
    /// Owner of idle connections and files.
    keeper: RefCell<Option<Weak<dyn IdleOwner>>>,
    pub(crate) spare_kept: Spare,
    pub(crate) spare_parked: SpareParked,
    /// Bytes of request bodies held by client streams.
    pub(crate) uploads_held: UploadBudget,
    pub(crate) stalled: StalledByAddress,
    /// Requests in flight by client of a group.
    pub(crate) group_clients: CoreClientCounts,
    /// Bytes of held responses dropped unsent since memory was last returned to the system.
    dropped: Cell<usize>,
    /// Mirrored requests in flight.
    pub(crate) mirrored: Cell<usize>,
    pub(crate) random: Random,
    myself: Weak<Worker>,
    date: Cell<[u8; DATE_BYTES]>,
    date_second: Cell<u64>,
    date_until: Cell<Instant>,
}

impl Worker {
    pub(crate) fn new(core: Core, crowd: &Arc<ConnectionBudget>, drain: Duration) -> Rc<Self> {
        let seed = core.now_exact().nanoseconds() ^ core.id() as u64;
        Rc::new_cyclic(|myself| Self {
            myself: Weak::clone(myself),
            spare_kept: Spare::default(),
            spare_parked: SpareParked::default(),
            uploads_held: UploadBudget::default(),
            stalled: StalledByAddress::default(),
            group_clients: CoreClientCounts::default(),
            dropped: Cell::new(0),
            mirrored: Cell::new(0),
            random: Random::stream(seed, 0),
            limits: onrush_http::Limits::DEFAULT,
            encoders: Rc::default(),
            meter: Meter::default(),
            registry: Registry::default(),
            live: InFlightList::default(),
            identities: Identities::default(),
            log: Log::default(),
            stopping: Cell::new(false),
            stop_started: Cell::new(core.now()),
            drain: Cell::new(drain),
            aside: Cell::new(0),
            connection_budget: Arc::clone(crowd),
            kept: IdleLimit::new(crowd.shares().idle_per_owner()),
            keeper: RefCell::new(None),
            date: Cell::new(date::format(core.unix_seconds())),
            date_second: Cell::new(core.unix_seconds()),
            date_until: Cell::new(core.now()),
            core,
        })
    }

    /// Sets the owner of idle connections and files.
    pub(crate) fn set_idle_owner(&self, keeper: Weak<dyn IdleOwner>) {
        self.keeper.replace(Some(keeper));
    }

    /// Counts held responses that were dropped unsent. After many of them, free memory is returned to the system soon.
    pub(crate) fn dropped(&self, bytes: usize) {
        let before = self.dropped.get();
        self.dropped.set(before + bytes);
        let is_due = before < HTTP2_DROPPED_MAX && before + bytes >= HTTP2_DROPPED_MAX;
        if !is_due || self.core.is_stopping() {
            return;
        }
        let worker = self.self_rc();
        self.spawn_background(UPKEEP, async move {
            worker.core.sleep_unless_stopping(HTTP2_TRIM_DELAY).await;
            worker.dropped.set(0);
            worker.return_memory();
        });
    }

    /// Frees the objects kept for reuse, returns free memory to the system, and returns the number of objects. Small
    /// objects that stay allocated would keep whole pages.
    pub(crate) fn return_memory(&self) -> usize {
        let flows = self.keeper().map_or(0, |keeper| keeper.free_spare());
        let requests = self.spare_kept.clear() + self.spare_parked.clear();
        self.live.drop_unused();
        let count = flows + requests + self.core.free_spare_memory();
        Memory::return_free();
        count
    }

    fn keeper(&self) -> Option<Rc<dyn IdleOwner>> {
        self.keeper.borrow().as_ref().and_then(Weak::upgrade)
    }

    /// Closes idle connections to servers and cached files. Returns whether there were any.
    pub(crate) fn close_idle(&self) -> bool {
        self.keeper().is_some_and(|keeper| keeper.give_up() > 0)
    }

    /// Whether this core was blocked for a large part of `patience`, which has just passed, so that the peer may not be
    /// at fault for a timeout.
    pub(crate) fn was_stalled(&self, patience: Duration) -> bool {
        let begin = self.core.now().before(patience);
        self.core.stalled_since(begin) >= patience / STALL_SHARE
    }

    /// A reference to itself, for tasks that outlive the request.
    pub(crate) fn self_rc(&self) -> Rc<Self> {
        self.myself.upgrade().expect("a caller holds a reference")
    }

    /// Spawns a background task for this kind of work. It does not count as a cut-off client if the core ends first.
    pub(crate) fn spawn_background(&self, work: Work, task: impl Future<Output = ()> + 'static) {
        let worker = self.self_rc();
        self.begin_background();
        self.core.spawn_as(work, async move {
            task.await;
            worker.end_background();
        });
    }

    /// Counts a background task.
    pub(crate) fn begin_background(&self) {
        self.aside.set(self.aside.get() + 1);
    }

    /// Counts the end of a background task.
    pub(crate) fn end_background(&self) {
        self.aside.set(self.aside.get() - 1);
    }

    /// The number of client connections among the core's unfinished tasks.
    pub(crate) fn count_client_tasks(&self, tasks: usize) -> usize {
        tasks - self.aside.get()
    }

    /// The value of `Date` now.
    pub(crate) fn date(&self) -> [u8; DATE_BYTES] {
        self.date_versioned().1
    }

    /// The date, and a version that changes with it.
    #[inline]
    pub(crate) fn date_versioned(&self) -> (u64, [u8; DATE_BYTES]) {
        let now = self.core.now();
        if now >= self.date_until.get() {
            self.date_until.set(now + DATE_LAG);
            let second = self.core.unix_seconds();
            if self.date_second.replace(second) != second {
                self.date.set(date::format(second));
            }
        }
        (self.date_second.get(), self.date.get())
    }
}
