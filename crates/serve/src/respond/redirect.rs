//! Redirects to a location rendered from the request.

use onrush_config::plan::Template;
use onrush_engine::Error;
use onrush_http::request::RequestHead;

use crate::exchange::refuse::refuse;
use crate::exchange::reply::Reply;
use crate::exchange::request_context::RequestContext;
use crate::routing::variables::VariableValues;
use crate::rules::error_page::ErrorFormat;
use crate::rules::location::{Location, TargetError};

#[derive(Debug)]
pub(crate) struct Redirect {
    status: u16,
    location: Location,
}

impl Redirect {
    pub(crate) fn new(status: u16, location: &Template) -> Self {
        Self {
            status,
            location: Location::new(location),
        }
    }

    /// The rendered location, if it is valid.
    pub(crate) fn location(
        &self,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
    ) -> Option<String> {
        let facts = VariableValues {
            about: &context,
            head,
            server: b"",
        };
        self.location.render(&facts).ok()
    }

    pub(crate) fn respond(
        &self,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Error> {
        let facts = VariableValues {
            about: &context,
            head,
            server: b"",
        };
        match self.location.render(&facts) {
            Ok(location) => {
                let fields = [("Location", location.as_str())];
                refuse((self.status, ""), &fields, ErrorFormat::Text, reply)
            }
            Err(TargetError::TooLong) => {
                let reason = "the redirect target is too long";
                refuse((414, reason), &[], ErrorFormat::of(head.headers), reply)
            }
            Err(TargetError::NoHost) => {
                let reason = "the redirect target has no valid host";
                refuse((400, reason), &[], ErrorFormat::of(head.headers), reply)
            }
        }
    }
}
