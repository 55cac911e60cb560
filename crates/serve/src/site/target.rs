//! What is behind a route: who is let in, what answers, and what changes on the way.

use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::{self, Action, FieldEdits, Mirror, Piece, Variable};
use onrush_engine::{Error, Root};
use onrush_http::header_is;

use crate::access::{Access, Ledger};
use crate::compress::Offer;
use crate::edits::AnswerEdits;
use crate::proxy::rewrite::Rules;
use crate::proxy::split::Split;
use crate::respond::file::Files;
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;

/// How a route treats its requests, prepared for one core.
pub(crate) struct Target {
    /// Who is let in, unless everybody is.
    pub(crate) access: Option<Box<Access>>,
    pub(crate) answer: Answer,
    /// Another group that gets copies.
    pub(crate) mirror: Option<Mirror>,
    /// What changes in requests that are forwarded.
    pub(crate) rules: Rules,
    /// What changes in answers.
    pub(crate) answer_edits: Option<AnswerEdits>,
    /// Whether and how answers are encoded.
    pub(crate) offer: Option<Rc<Offer>>,
    /// Whether more than its way has to be remembered of each request until it is answered.
    pub(crate) keeps: bool,
}

/// How a route's requests are answered.
pub(crate) enum Answer {
    Fixed(Fixed),
    Files(Files),
    Synthetic,
    Redirect(Redirect),
    Forward(Split),
}

impl Target {
    pub(super) fn new(
        index: usize,
        route: &plan::Route,
        plan: &Plan,
        ledger: &Ledger,
    ) -> Result<Self, (String, Error)> {
        let rules = Rules::new(route, &plan.forwarded);
        let answer_edits = AnswerEdits::new(&route.edits);
        let is_varying = answer_edits.as_ref().is_some_and(AnswerEdits::are_varying);
        let redirects_by_id = matches!(
            &route.action,
            Action::Redirect { location, .. }
                if location.0.contains(&Piece::Variable(Variable::RequestId))
        );
        let edits = &route.edits.response;
        let offer = route
            .compress
            .as_ref()
            .and_then(|compress| Offer::new(compress, edits))
            .map(Rc::new);
        Ok(Self {
            access: Access::new(&route.access, index, ledger),
            answer: Answer::new(&route.action, edits, answer_edits.as_ref(), offer.as_ref())?,
            mirror: match route.action {
                Action::Forward { mirror, .. } => mirror,
                _ => None,
            },
            keeps: is_varying || rules.needs_request_id() || redirects_by_id,
            rules,
            answer_edits,
            offer,
        })
    }
}

impl Answer {
    fn new(
        action: &Action,
        edits: &FieldEdits,
        answer_edits: Option<&AnswerEdits>,
        offer: Option<&Rc<Offer>>,
    ) -> Result<Self, (String, Error)> {
        Ok(match action {
            Action::Respond {
                status,
                body,
                headers,
            } => Answer::Fixed(Fixed::new(*status, body, headers, answer_edits, offer)),
            Action::Files {
                root,
                index,
                hidden,
                precompressed,
            } => {
                let root = Root::open(root).map_err(|error| (root.display().to_string(), error))?;
                // What is said to be encoded is what the files are; their siblings would be encoded twice.
                let is_coding = |(name, _): &(String, _)| header_is(name, "content-encoding");
                let siblings = match edits.set.iter().chain(&edits.add).any(is_coding) {
                    true => &[][..],
                    false => precompressed,
                };
                Answer::Files(Files::new(root, index, *hidden, siblings, offer.cloned()))
            }
            Action::Synthetic => Answer::Synthetic,
            Action::Redirect { status, location } => {
                Answer::Redirect(Redirect::new(*status, location))
            }
            Action::Forward { split, mirror: _ } => Answer::Forward(Split::new(split)),
        })
    }
}
