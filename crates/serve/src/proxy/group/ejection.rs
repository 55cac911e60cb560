//! What takes servers of a group out, and for how long.

use std::cell::RefCell;

use onrush_config::plan::Upstream;

use crate::proxy::absence::Terms;
use crate::proxy::eject::Ejector;
use crate::proxy::endpoints::Endpoint;

/// What takes servers out, and for how long.
#[derive(Debug)]
pub(super) struct Ejection {
    pub(super) ejector: RefCell<Ejector>,
    pub(super) terms: Terms,
}

impl Ejection {
    /// Of a group where servers can be taken out. What was known `before` goes on, where the server at each endpoint has the
    /// position that is said, or none.
    pub(super) fn new(
        upstream: &Upstream,
        endpoints: &[Endpoint],
        before: Option<(&Ejection, &[Option<usize>])>,
    ) -> Option<Self> {
        let may_go = endpoints.iter().any(Endpoint::may_be_taken_out);
        let written = upstream.eject.as_ref().filter(|_| may_go)?;
        let mut ejector = Ejector::new(written.into(), endpoints.len());
        if let Some((before, positions)) = before {
            ejector.take_over(&before.ejector.borrow(), positions);
        }
        Some(Self {
            ejector: RefCell::new(ejector),
            terms: written.into(),
        })
    }
}
