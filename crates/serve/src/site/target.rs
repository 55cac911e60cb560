//! What is behind a route: who is let in, and what responds.

use onrush_config::plan::{self, Action, FieldEdits, Mirror};
use onrush_engine::{Error, Root};
use onrush_http::header_is;

use crate::exchange::access::Access;
use crate::exchange::access::ledger::Ledger;
use crate::exchange::settings::Treatment;
use crate::proxy::split::Split;
use crate::respond::file::{Files, Single};
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;

/// How a route treats its requests, prepared for one core.
pub(crate) struct Target {
    /// Who is let in, unless everybody is.
    pub(crate) access: Option<Box<Access>>,
    pub(crate) response: Response,
    /// Another group that gets copies.
    pub(crate) mirror: Option<Mirror>,
}

/// The response that a route's requests get.
pub(crate) enum Response {
    Fixed(Fixed),
    File(Single),
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
            response: Response::new(&route.action, &route.edits.response, treatment)?,
            mirror: match route.action {
                Action::Forward { mirror, .. } => mirror,
                _ => None,
            },
        })
    }
}

impl Response {
    /// Whether a server makes it.
    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self, Response::Forward(_))
    }

    fn new(
        action: &Action,
        edits: &FieldEdits,
        treatment: &Treatment,
    ) -> Result<Self, (String, Error)> {
        let (response_edits, offer) = (&treatment.response_edits, &treatment.offer);
        Ok(match action {
            Action::Respond {
                status,
                body,
                headers,
            } => Response::Fixed(Fixed::new(
                *status,
                body,
                headers,
                response_edits.as_ref(),
                offer.as_ref(),
            )),
            Action::RespondFile { status, file } => {
                Response::File(Single::new(*status, file, offer.clone()))
            }
            Action::Files(files) => {
                let root = Root::open(&files.root)
                    .map_err(|error| (files.root.display().to_string(), error))?;
                // What is said to be encoded is what the files are; their siblings would be encoded twice.
                let is_coding = |(name, _): &(String, _)| header_is(name, "content-encoding");
                let siblings = match edits.set.iter().chain(&edits.add).any(is_coding) {
                    true => &[][..],
                    false => &files.precompressed,
                };
                Response::Files(Files::new(root, files, siblings, offer.clone()))
            }
            Action::Synthetic => Response::Synthetic,
            Action::Redirect { status, location } => {
                Response::Redirect(Redirect::new(*status, location))
            }
            Action::Forward { split, mirror: _ } => Response::Forward(Split::new(split)),
        })
    }
}
