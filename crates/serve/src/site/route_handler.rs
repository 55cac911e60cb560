//! The handler of a route: access rules and response.

use onrush_config::plan::{self, Action, FieldEdits, Mirror};
use onrush_engine::{Error, Root};
use onrush_http::header_is;

use crate::exchange::access::Access;
use crate::exchange::access::access_state::AccessState;
use crate::exchange::settings::RouteOptions;
use crate::proxy::split::Split;
use crate::respond::file::{Files, SingleFile};
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;

/// The handler of a route, prepared for one core.
pub(crate) struct RouteHandler {
    /// Access rules; `None` if the route restricts nothing.
    pub(crate) access: Option<Box<Access>>,
    pub(crate) response: Response,
    /// Mirroring to another group.
    pub(crate) mirror: Option<Mirror>,
}

pub(crate) enum Response {
    Fixed(Fixed),
    File(SingleFile),
    Files(Files),
    Synthetic,
    Redirect(Redirect),
    Forward(Split),
}

impl RouteHandler {
    pub(super) fn new(
        index: usize,
        route: &plan::Route,
        treatment: &RouteOptions,
        ledger: &AccessState,
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
    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self, Response::Forward(_))
    }

    fn new(
        action: &Action,
        edits: &FieldEdits,
        treatment: &RouteOptions,
    ) -> Result<Self, (String, Error)> {
        let (response_edits, offer) = (&treatment.response_edits, &treatment.compression);
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
                Response::File(SingleFile::new(*status, file, offer.clone()))
            }
            Action::Files(files) => {
                let root = Root::open(&files.root)
                    .map_err(|error| (files.root.display().to_string(), error))?;
                // With a configured `Content-Encoding` the files themselves are encoded; a sibling would be encoded
                // twice.
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
