//! The route's options as they apply to a request and its response.

use super::{Exchange, NONE};
use crate::exchange::settings::RouteOptions;
use crate::rules::compress::CompressionRules;
use crate::rules::error_page::{ErrorFormat, ErrorPage};
use crate::rules::response_edits::AppliedEdits;

impl Exchange {
    #[inline]
    pub(crate) fn route_options(&self) -> Option<&RouteOptions> {
        let settings = self.settings.as_ref()?;
        (self.route != NONE).then(|| &settings.routes[self.route.0 as usize])
    }

    /// Returns the maximum size of the request body in bytes.
    pub(crate) fn request_body_max(&self) -> u64 {
        match self.route_options() {
            Some(treatment) => treatment.request_body_max,
            None => self.settings().request_body_max,
        }
    }

    pub(crate) fn error_page(&self, status: u16) -> Option<&ErrorPage> {
        let pages = match self.route_options() {
            Some(treatment) => &treatment.error_pages,
            None => &self.settings.as_ref()?.error_pages,
        };
        pages.as_ref()?.of(status)
    }

    /// Whether error pages may replace responses of servers.
    #[inline]
    pub(crate) fn may_intercept(&self) -> bool {
        let pages = self.route_options().and_then(|it| it.error_pages.as_ref());
        pages.is_some_and(|pages| pages.may_intercept())
    }

    /// Whether an error page replaces a server's response with this status, for a client that prefers errors in `form`.
    #[inline]
    pub(crate) fn intercepts(&self, status: u16, form: ErrorFormat) -> bool {
        let pages = self.route_options().and_then(|it| it.error_pages.as_ref());
        pages.is_some_and(|pages| pages.intercepts(status, form))
    }

    pub(crate) fn request_keeps(&self, trailer: &[u8]) -> bool {
        let kept = self.rare_state.as_ref();
        !kept.is_some_and(|kept| kept.connection_fields.contain(trailer))
            && self
                .route_options()
                .is_none_or(|treatment| treatment.rules.pass_trailer(trailer))
    }

    /// Whether a response trailer with this name is forwarded, given the route's edits.
    pub(crate) fn passes_response_trailer(&self, trailer: &[u8]) -> bool {
        let edits = self.response_edits("");
        let name = str::from_utf8(trailer).unwrap_or("");
        edits.is_none_or(|edits| !edits.drops(name))
    }

    /// Response compression of the route.
    #[inline]
    pub(crate) fn offer(&self) -> Option<&CompressionRules> {
        self.route_options()?.compression.as_deref()
    }

    /// Edits of a response of `server`; the name is empty for a generated response.
    #[inline]
    pub(crate) fn response_edits<'a>(&'a self, server: &'a str) -> Option<AppliedEdits<'a>> {
        let edits = self.route_options()?.response_edits.as_ref()?;
        let lines = self.rare_state.as_ref().map_or(&[][..], |kept| &kept.lines);
        Some(edits.of_response(lines, server))
    }
}
