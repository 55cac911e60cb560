//! Settings that the route of a request applies to it and to its response.

use super::{Exchange, NONE};
use crate::exchange::settings::Treatment;
use crate::rules::compress::Offer;
use crate::rules::error_page::{ErrorPage, Form};
use crate::rules::response_edits::Applied;

impl Exchange {
    /// How its route treats it.
    #[inline]
    pub(crate) fn treatment(&self) -> Option<&Treatment> {
        let settings = self.settings.as_ref()?;
        (self.route != NONE).then(|| &settings.treatments[self.route.0 as usize])
    }

    /// How many bytes its body may have.
    pub(crate) fn request_body_max(&self) -> u64 {
        match self.treatment() {
            Some(treatment) => treatment.request_body_max,
            None => self.settings().request_body_max,
        }
    }

    /// What it is told by an error of our own with this status, beside the status.
    pub(crate) fn error_page(&self, status: u16) -> Option<&ErrorPage> {
        let pages = match self.treatment() {
            Some(treatment) => &treatment.error_pages,
            None => &self.settings.as_ref()?.error_pages,
        };
        pages.as_ref()?.of(status)
    }

    /// Whether responses of servers may be replaced by error pages.
    #[inline]
    pub(crate) fn may_intercept(&self) -> bool {
        let pages = self.treatment().and_then(|it| it.error_pages.as_ref());
        pages.is_some_and(|pages| pages.may_intercept())
    }

    /// Whether a server's response with this status is, for a client that would rather have errors in `form`.
    #[inline]
    pub(crate) fn intercepts(&self, status: u16, form: Form) -> bool {
        let pages = self.treatment().and_then(|it| it.error_pages.as_ref());
        pages.is_some_and(|pages| pages.intercepts(status, form))
    }

    /// Whether a trailer of this name passes to its server.
    pub(crate) fn request_keeps(&self, trailer: &[u8]) -> bool {
        let kept = self.kept.as_ref();
        !kept.is_some_and(|kept| kept.connection_fields.contain(trailer))
            && self
                .treatment()
                .is_none_or(|treatment| treatment.rules.pass_trailer(trailer))
    }

    /// Whether a trailer of this name passes to the client, where the route's edits are applied.
    pub(crate) fn response_keeps(&self, trailer: &[u8]) -> bool {
        let edits = self.response_edits("");
        let name = str::from_utf8(trailer).unwrap_or("");
        edits.is_none_or(|edits| !edits.drops(name))
    }

    /// Whether and how its route encodes responses.
    #[inline]
    pub(crate) fn offer(&self) -> Option<&Offer> {
        self.treatment()?.offer.as_deref()
    }

    /// The edits of the response that `server` gives; its name is empty for a response of our own.
    #[inline]
    pub(crate) fn response_edits<'a>(&'a self, server: &'a str) -> Option<Applied<'a>> {
        let edits = self.treatment()?.response_edits.as_ref()?;
        let lines = self.kept.as_ref().map_or(&[][..], |kept| &kept.lines);
        Some(edits.of_response(lines, server))
    }
}
