//! Effects of the rules on a request before it is served.

use super::request_changes::{PathState, RequestChanges};
use super::userlist::Userlist;
use crate::document::Value;
use crate::expression::condition::Condition;
use crate::settings::route::{EditScope, FieldEdits, Response, Route};

/// Collected effects of the rules.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) request: FieldEdits,
    /// Edits of requests after all rules.
    pub(super) last: FieldEdits,
    /// Edits of forwarded responses.
    pub(super) response: FieldEdits,
    /// Edits of all responses.
    pub(super) after: FieldEdits,
    /// Changes that later conditions must take into account.
    pub(super) changed: RequestChanges,
    pub(super) auth: Option<Value>,
    /// Users whose password `auth` requires.
    pub(super) authorized: Option<Userlist>,
    /// Status that replaces every response of a server.
    pub(super) refused_response: Option<u16>,
    pub(super) compress: Option<Value>,
    pub(super) redirect_cookie: Option<String>,
    /// Whether X-Forwarded-For is sent to servers.
    pub(super) is_forwarded: bool,
    /// Rule sets that `allow` or `accept` has ended: `http-request`, or a layer of `tcp-request`.
    pub(super) allowed: Vec<&'static str>,
    /// Whether an `allow` with an unknown condition may have ended the rules of this proxy.
    pub(super) is_doubtful: bool,
}

impl State {
    /// A route for the requests in this state.
    pub(super) fn route(&self, when: Condition, response: Response) -> Route {
        let mut route = Route::new(when, response);
        route.response_headers = match &route.response {
            Response::Forward(_) => self.response.and(&self.after),
            _ => self.after.clone(),
        };
        if let Some(cookie) = &self.redirect_cookie
            && let Response::Redirect { .. } = route.response
        {
            route.response_headers.add("Set-Cookie", cookie);
        }
        if !self.after.is_empty() {
            route.response_on = EditScope::Always;
        }
        if let Response::Redirect {
            status: status @ (302 | 303),
            ..
        } = route.response
            && !route.response_headers.changes("Cache-Control")
        {
            // HAProxy adds this field to such redirects.
            let rule = [
                ("status", Value::Number(status.into())),
                ("value", Value::text("no-cache")),
            ];
            route.put("cache_control", Value::table(rule));
        }
        if let Some(auth) = &self.auth {
            route.put("basic_auth", auth.clone());
        }
        if let Response::Forward(_) = route.response {
            route.request_headers = self.request.and(&self.last);
            if self.is_forwarded {
                // HAProxy's rule changes the field of the client, which Onrush does not forward anyway; HAProxy adds
                // its own value after the rules.
                route.request_headers.keep("X-Forwarded-For");
            }
            if let Some(compress) = &self.compress {
                route.put("compress", compress.clone());
            }
            match &self.changed.path {
                PathState::Original | PathState::Unclear => {}
                PathState::Moved { from, to } => {
                    if route.replace_prefix(from, to).is_err() {
                        let to = format!("{}$1", to.replace('$', "$$"));
                        route.rewrite(&format!("^{}(.*)$", regex::escape(from)), &to);
                    }
                }
                PathState::Constant(path) => route.rewrite("^.*$", &path.replace('$', "$$")),
            }
        }
        route
    }
}
