//! Outcome of an explained request: a generated response, or the request that a server of a group gets.

use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::Action;
use onrush_engine::Error;
use onrush_http::Refusal;
use onrush_http::http2::message::Lines;
use onrush_http::request::RequestHead;

use super::server_choice::Choice;
use crate::dispatch::route_action::{LocalAction, RouteAction};
use crate::exchange::Exchange;
use crate::exchange::downstream::request_body::ReceivedBody;
use crate::exchange::reply;
use crate::exchange::request_context::{RequestContext, Source};
use crate::proxy::{Group, rewrite, upgrade};
use crate::site::Site;

/// Outcome of a request.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A generated response.
    Generated {
        /// `None` if it depends on state over time.
        status: Option<u16>,
        /// Source of the response, such as a fixed response or a redirect.
        by: String,
        /// Target of a redirect.
        location: Option<String>,
    },
    /// The request is forwarded.
    Forward(Forward),
}

/// A forwarded request.
#[derive(Clone, Debug)]
pub struct Forward {
    /// Groups among which one is chosen at random; never empty.
    pub groups: Vec<GroupForward>,
    /// The group that gets a copy, and the share of requests copied, in 1/10,000.
    pub mirror: Option<(String, u16)>,
}

/// The request in one group.
#[derive(Clone, Debug)]
pub struct GroupForward {
    /// Name of the group.
    pub group: String,
    /// Weight of the group.
    pub weight: u32,
    /// The chosen server.
    pub choice: Choice,
    /// Servers used if all others are unavailable.
    pub backups: Vec<String>,
    /// The head that the server gets: HTTP/1.1 lines or, for a WebSocket to an HTTP/2 server, the fields of its
    /// extended CONNECT (RFC 8441).
    pub head: String,
}

impl Outcome {
    pub(super) fn refused(refusal: Refusal) -> Outcome {
        Outcome::Generated {
            status: Some(refusal.status),
            by: format!("refused before routing: {}", refusal.reason),
            location: None,
        }
    }
}

impl GroupForward {
    /// Request target sent to the server.
    pub fn target(&self) -> &str {
        let line = self.line(":path: ");
        line.or_else(|| self.head.split(' ').nth(1)).unwrap_or("")
    }

    /// Host sent to the server.
    pub fn host(&self) -> &str {
        let authority = self.line(":authority: ");
        authority.or_else(|| self.line("Host: ")).unwrap_or("")
    }

    /// Whether it is an extended CONNECT, which the server must support.
    pub(super) fn is_connect(&self) -> bool {
        self.line(":protocol: ").is_some()
    }

    fn line(&self, beginning: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(beginning))
    }
}

pub(super) fn outcome(
    (plan, site): (&Plan, &Site),
    chosen: RouteAction<'_, '_>,
    request: (&RequestHead<'_, '_>, ReceivedBody<'_>),
    (source, exchange): (Source<'_>, &mut Exchange),
    to: reply::ReplyWriter<'_>,
) -> Result<Outcome, Error> {
    let own = match chosen {
        RouteAction::Own(own) => own,
        RouteAction::Forward(..) => return forwarded((plan, site), request.0, source, exchange),
        // The outcome of the password check is already known.
        RouteAction::Verify(_) => {
            return Ok(Outcome::refused(Refusal::new(
                503,
                "the password was not checked",
            )));
        }
    };
    let by = by(plan, &own, exchange);
    let context = source.of(exchange);
    let location = match &own {
        LocalAction::Redirect(redirect) => redirect.location(request.0, context),
        _ => None,
    };
    own.write(request, context, to)?;
    Ok(Outcome::Generated {
        status: exchange.record().status(),
        by,
        location,
    })
}

/// Names the source of a generated response.
fn by(plan: &Plan, own: &LocalAction<'_, '_>, exchange: &Exchange) -> String {
    let action = exchange.route().map(|route| &plan.routes[route].action);
    match (own, action) {
        (LocalAction::Refuse(404, reason), None) => (*reason).to_owned(),
        (LocalAction::Refuse(_, reason), None) => {
            format!("refused before routing: {reason}")
        }
        (LocalAction::Refuse(_, reason), Some(_)) => format!("refused: {reason}"),
        (LocalAction::Deny(denial), _) => format!("access refused: {}", denial.reason()),
        (LocalAction::Cors(_), _) => "the answer to a CORS preflight (cors)".to_owned(),
        (LocalAction::Fixed(_), _) => "a fixed response".to_owned(),
        (LocalAction::File(_), Some(Action::RespondFile { file, .. })) => {
            format!("the file {}", file.display())
        }
        (LocalAction::Files(_, path), Some(Action::Files(files))) => format!(
            "the files of {}: {:?}",
            files.root.display(),
            String::from_utf8_lossy(path)
        ),
        (LocalAction::File(_) | LocalAction::Files(..), _) => "a file".to_owned(),
        (LocalAction::Synthetic, _) => "the response described by the query".to_owned(),
        (LocalAction::Redirect(_), _) => "a redirect".to_owned(),
    }
}

fn forwarded(
    (plan, site): (&Plan, &Site),
    head: &RequestHead<'_, '_>,
    source: Source<'_>,
    exchange: &mut Exchange,
) -> Result<Outcome, Error> {
    let action = exchange.route().map(|route| &plan.routes[route].action);
    let Some(Action::Forward { split, mirror }) = action else {
        unreachable!("only a route that forwards has a group");
    };
    let mut groups = Vec::new();
    for (index, weight) in split {
        // The head may contain the group's name.
        exchange.set_group(*index);
        let context = source.of(exchange);
        let group = &site.groups[*index];
        let backups = group.plan.servers.iter().filter(|server| server.backup);
        groups.push(GroupForward {
            group: group.plan.name.clone(),
            weight: weight.get(),
            choice: Choice::of(group, head, context),
            backups: backups.map(|server| server.address.to_string()).collect(),
            head: sent(group, head, context)?,
        });
    }
    let mirror = mirror.map(|mirror| (plan.upstreams[mirror.upstream].name.clone(), mirror.share));
    Ok(Outcome::Forward(Forward { groups, mirror }))
}

fn sent(
    group: &Rc<Group>,
    head: &RequestHead<'_, '_>,
    context: RequestContext<'_>,
) -> Result<String, Error> {
    let mut buffer = context.worker.core.buffer()?;
    let authority = group.servers().first().map_or("", |first| &first.authority);
    rewrite::request(head, authority, context, &mut buffer);
    if group.speaks_http2() && upgrade::is_tunnel_request(head) {
        return Ok(connect(&buffer, group.scheme()));
    }
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

/// The fields of an extended CONNECT, one per line.
fn connect(text: &[u8], scheme: &str) -> String {
    let lines = Lines::of(text);
    let fields = lines.connect(upgrade::PROTOCOL, scheme);
    let line = |(name, value)| format!("{name}: {}\r\n", String::from_utf8_lossy(value));
    fields.map(line).collect()
}
