//! A core's worker together with the site in force.
//!
//! The worker does not hold the site, because `worker` is the lower module: routes and groups use it.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use crate::site::Site;
use crate::worker::Worker;
use crate::worker::idle_limit::IdleOwner;
use crate::worker::time_slice::{TimeSlice, run_unsliced};

pub(crate) struct Service {
    pub(crate) worker: Rc<Worker>,
    site: RefCell<Rc<Site>>,
}

impl Service {
    /// Puts the first `site` in force.
    pub(crate) fn new(worker: Rc<Worker>, site: Rc<Site>) -> Rc<Self> {
        worker.set_idle_owner(keeper(&site));
        site.apply_limits(&worker);
        run_unsliced(async |slice| site.begin_upkeep(&worker, slice).await);
        let service = Rc::new(Self {
            worker,
            site: RefCell::new(site),
        });
        let weak: Weak<Service> = Rc::downgrade(&service);
        service.worker.core.attach(weak);
        service
    }

    /// The site in force, for a new request.
    #[inline]
    pub(crate) fn site(&self) -> Rc<Site> {
        Rc::clone(&self.site.borrow())
    }

    /// Puts `site` in force and returns the replaced one. Requests in flight keep theirs. [`Service::change_upkeep`]
    /// must follow.
    #[must_use]
    pub(crate) fn take_over(&self, site: &Rc<Site>) -> Rc<Site> {
        self.worker.set_idle_owner(keeper(site));
        let before = self.site.replace(Rc::clone(site));
        site.apply_limits(&self.worker);
        before
    }

    /// Ends the upkeep of the site `before` and starts that of the site in force.
    pub(crate) async fn change_upkeep(&self, before: Rc<Site>, slice: &mut TimeSlice) {
        before.retire(slice).await;
        self.site().begin_upkeep(&self.worker, slice).await;
    }
}

fn keeper(site: &Rc<Site>) -> Weak<dyn IdleOwner> {
    let keeper: Rc<dyn IdleOwner> = Rc::clone(site) as Rc<dyn IdleOwner>;
    Rc::downgrade(&keeper)
}
