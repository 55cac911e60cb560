//! `tcp-request` rules, which are evaluated before the rules for requests.

use super::action::RuleResult;
use super::state::State;
use super::work::Context;
use crate::settings::route::Response;
use crate::source::directive::Directive;

/// Applies a `tcp-request` rule.
pub(super) fn request<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    state: &mut State,
) -> RuleResult {
    match line.argument(1) {
        "reject" | "silent-drop" => {
            let how = "each request gets an empty 403; HAProxy closes the connection";
            work.notes.approximated(line, how);
            RuleResult::Served(Response::status(403))
        }
        "accept" => {
            let layer = match line.argument(0) {
                "connection" => "connection",
                "session" => "session",
                _ => "content",
            };
            state.allowed.push(layer);
            work.notes.carried(line);
            RuleResult::Allowed
        }
        "capture" | "set-mark" | "set-tos" | "set-var" | "set-var-fmt" | "unset-var" => {
            let why = "responses do not differ; conditions on variables have their own notes";
            work.notes.without_effect(line, why);
            RuleResult::On
        }
        action => {
            work.notes
                .left_out(line, format!("Onrush has no equivalent for {action}"));
            RuleResult::On
        }
    }
}
