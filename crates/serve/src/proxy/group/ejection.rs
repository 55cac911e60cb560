//! What takes servers of a group out, and for how long.

use std::cell::RefCell;

use onrush_config::plan::Upstream;

use crate::proxy::absence::Terms;
use crate::proxy::eject::Ejector;
use crate::proxy::roster::Seat;

/// What takes servers out, and for how long.
#[derive(Debug)]
pub(super) struct Ejection {
    pub(super) ejector: RefCell<Ejector>,
    pub(super) terms: Terms,
}

impl Ejection {
    /// Of a group where servers can be taken out. What was known `before` goes on, where the server in each seat has the place
    /// that is said, or none.
    pub(super) fn new(
        upstream: &Upstream,
        seats: &[Seat],
        before: Option<(&Ejection, &[Option<usize>])>,
    ) -> Option<Self> {
        let may_go = seats.iter().any(Seat::may_be_taken_out);
        let written = upstream.eject.as_ref().filter(|_| may_go)?;
        let mut ejector = Ejector::new(written.into(), seats.len());
        if let Some((before, places)) = before {
            ejector.take_over(&before.ejector.borrow(), places);
        }
        Some(Self {
            ejector: RefCell::new(ejector),
            terms: written.into(),
        })
    }
}
