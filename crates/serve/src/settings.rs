//! What a request needs of the configuration that it began with, whatever answers it.

use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::{self, Action, Piece, Timeouts, Variable};

use crate::client::Trust;
use crate::compress::Offer;
use crate::edits::AnswerEdits;
use crate::generation::Lease;
use crate::proxy::rules::Rules;
use crate::worker::Worker;

/// Prepared for one core. A request holds them from its beginning to its end.
pub(crate) struct Settings {
    _lease: Lease,
    pub(crate) worker: Rc<Worker>,
    pub(crate) trust: Trust,
    pub(crate) timeouts: Timeouts,
    /// One for each route, in their order.
    pub(crate) treatments: Vec<Treatment>,
    /// The names of the groups, in their order.
    pub(crate) group_names: Vec<String>,
}

/// What a route changes in its requests and in their answers.
pub(crate) struct Treatment {
    /// What its path begins with, when that is its condition; else nothing.
    pub(crate) prefix: String,
    /// What changes in requests that are forwarded.
    pub(crate) rules: Rules,
    /// What changes in answers.
    pub(crate) answer_edits: Option<AnswerEdits>,
    /// Whether and how answers are encoded.
    pub(crate) offer: Option<Rc<Offer>>,
    /// Whether more than its way has to be remembered of each request until it is answered.
    pub(crate) keeps: bool,
}

impl Settings {
    pub(crate) fn new(worker: &Rc<Worker>, plan: &Plan, lease: Lease) -> Rc<Self> {
        let treatment = |route| Treatment::new(route, &plan.forwarded);
        let groups = plan.upstreams.iter();
        Rc::new(Self {
            _lease: lease,
            worker: Rc::clone(worker),
            trust: Trust::new(&plan.forwarded),
            timeouts: plan.timeouts,
            treatments: plan.routes.iter().map(treatment).collect(),
            group_names: groups.map(|group| group.name.clone()).collect(),
        })
    }
}

impl Treatment {
    fn new(route: &plan::Route, forwarded: &plan::Forwarded) -> Self {
        let rules = Rules::new(route, forwarded);
        let answer_edits = AnswerEdits::new(&route.edits);
        let is_varying = answer_edits.as_ref().is_some_and(AnswerEdits::are_varying);
        let redirects_by_id = matches!(
            &route.action,
            Action::Redirect { location, .. }
                if location.0.contains(&Piece::Variable(Variable::RequestId))
        );
        let edits = &route.edits.response;
        let offer = route.compress.as_ref();
        let offer = offer.and_then(|compress| Offer::new(compress, edits));
        Self {
            prefix: route.when.path.prefix().to_owned(),
            keeps: is_varying || rules.needs_request_id() || redirects_by_id,
            rules,
            answer_edits,
            offer: offer.map(Rc::new),
        }
    }
}
