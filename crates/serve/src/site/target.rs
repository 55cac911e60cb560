//! What is behind a route: who is let in, and what answers.

use onrush_config::plan::{self, Action, FieldEdits, Mirror};
use onrush_engine::{Error, Root};
use onrush_http::header_is;

use crate::access::{Access, Ledger};
use crate::proxy::split::Split;
use crate::respond::file::Files;
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;
use crate::settings::Treatment;

/// How a route treats its requests, prepared for one core.
pub(crate) struct Target {
    /// Who is let in, unless everybody is.
    pub(crate) access: Option<Box<Access>>,
    pub(crate) answer: Answer,
    /// Another group that gets copies.
    pub(crate) mirror: Option<Mirror>,
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
        treatment: &Treatment,
        ledger: &Ledger,
    ) -> Result<Self, (String, Error)> {
        Ok(Self {
            access: Access::new(&route.access, index, ledger),
            answer: Answer::new(&route.action, &route.edits.response, treatment)?,
            mirror: match route.action {
                Action::Forward { mirror, .. } => mirror,
                _ => None,
            },
        })
    }
}

impl Answer {
    fn new(
        action: &Action,
        edits: &FieldEdits,
        treatment: &Treatment,
    ) -> Result<Self, (String, Error)> {
        let (answer_edits, offer) = (&treatment.answer_edits, &treatment.offer);
        Ok(match action {
            Action::Respond {
                status,
                body,
                headers,
            } => Answer::Fixed(Fixed::new(
                *status,
                body,
                headers,
                answer_edits.as_ref(),
                offer.as_ref(),
            )),
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
                Answer::Files(Files::new(root, index, *hidden, siblings, offer.clone()))
            }
            Action::Synthetic => Answer::Synthetic,
            Action::Redirect { status, location } => {
                Answer::Redirect(Redirect::new(*status, location))
            }
            Action::Forward { split, mirror: _ } => Answer::Forward(Split::new(split)),
        })
    }
}
