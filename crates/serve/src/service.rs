//! What one core serves with: its worker, and the site in force.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use crate::proxy::kept::Keeper;
use crate::site::Site;
use crate::worker::Worker;

pub(crate) struct Service {
    pub(crate) worker: Rc<Worker>,
    site: RefCell<Rc<Site>>,
}

impl Service {
    /// Puts `site` in force.
    pub(crate) fn new(worker: Rc<Worker>, site: Rc<Site>) -> Rc<Self> {
        worker.set_keeper(keeper(&site));
        site.begin(&worker);
        let service = Rc::new(Self {
            worker,
            site: RefCell::new(site),
        });
        let weak: Weak<Service> = Rc::downgrade(&service);
        service.worker.core.attach(weak);
        service
    }

    /// The site in force, for a request that begins.
    #[inline]
    pub(crate) fn site(&self) -> Rc<Site> {
        Rc::clone(&self.site.borrow())
    }

    /// Puts `site` in force. Requests that have begun go on as they began.
    pub(crate) fn take_over(&self, site: Rc<Site>) {
        let worker = &self.worker;
        worker.set_keeper(keeper(&site));
        let before = self.site.replace(Rc::clone(&site));
        before.retire();
        site.begin(worker);
    }

    #[cfg(test)]
    pub(crate) fn group(&self, index: usize) -> Rc<crate::proxy::Group> {
        Rc::clone(&self.site.borrow().groups[index])
    }
}

fn keeper(site: &Rc<Site>) -> Weak<dyn Keeper> {
    let keeper: Rc<dyn Keeper> = Rc::clone(site) as Rc<dyn Keeper>;
    Rc::downgrade(&keeper)
}
