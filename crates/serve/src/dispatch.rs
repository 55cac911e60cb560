//! Selects the action for a request: its route's response, or a refusal.

pub(crate) mod forwarding_refusal;
pub(crate) mod misdirected_request;
pub(crate) mod route_action;
