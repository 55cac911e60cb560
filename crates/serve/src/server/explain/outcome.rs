//! What a request gets: a response of our own, as it is written for it, or what a server of a group makes of the request that is
//! written for it.

use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::Action;
use onrush_engine::Error;
use onrush_http::Refusal;
use onrush_http::http2::message::Lines;
use onrush_http::request::RequestHead;

use super::choice::Choice;
use crate::dispatch::chosen::{Chosen, Own};
use crate::exchange::Exchange;
use crate::exchange::downstream::request_body::Arrived;
use crate::exchange::reply;
use crate::exchange::request_context::{RequestContext, Source};
use crate::proxy::{Group, rewrite, upgrade};
use crate::site::Site;

/// What a request gets.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A response that is made here.
    Own {
        /// None where it depends on what only comes with time.
        status: Option<u16>,
        /// What makes it.
        by: String,
        /// Where it sends its client.
        location: Option<String>,
    },
    /// That of a server.
    Forward(Forward),
}

/// A request that goes to a server.
#[derive(Clone, Debug)]
pub struct Forward {
    /// The groups that it may go to, by chance: never empty.
    pub groups: Vec<ToGroup>,
    /// The group that gets a copy, and of how many of 10,000 requests.
    pub mirror: Option<(String, u16)>,
}

/// A request in a group.
#[derive(Clone, Debug)]
pub struct ToGroup {
    /// Its name.
    pub group: String,
    /// Its weight among the groups.
    pub weight: u32,
    /// The server that it goes to.
    pub choice: Choice,
    /// Servers that are asked when all others are out.
    pub backups: Vec<String>,
    /// The head that the server gets: in lines of HTTP/1.1, or, of a WebSocket to a server of HTTP/2, the fields of its extended
    /// CONNECT (RFC 8441).
    pub head: String,
}

impl Outcome {
    pub(super) fn refused(refusal: Refusal) -> Outcome {
        Outcome::Own {
            status: Some(refusal.status),
            by: format!("refused before routes are looked at: {}", refusal.reason),
            location: None,
        }
    }
}

impl ToGroup {
    /// The target that the server is asked for.
    pub fn target(&self) -> &str {
        let line = self.line(":path: ");
        line.or_else(|| self.head.split(' ').nth(1)).unwrap_or("")
    }

    /// The host that it is asked for.
    pub fn host(&self) -> &str {
        let authority = self.line(":authority: ");
        authority.or_else(|| self.line("Host: ")).unwrap_or("")
    }

    /// Whether the server is asked for a tunnel on a stream, to which it has to have agreed before.
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
    chosen: Chosen<'_, '_>,
    request: (&RequestHead<'_, '_>, Arrived<'_>),
    (source, exchange): (Source<'_>, &mut Exchange),
    to: reply::To<'_>,
) -> Result<Outcome, Error> {
    let own = match chosen {
        Chosen::Own(own) => own,
        Chosen::Forward(..) => return forwarded((plan, site), request.0, source, exchange),
        // What came of its password is known.
        Chosen::Verify(_) => return Ok(Outcome::refused(Refusal::new(503, "nobody checks it"))),
    };
    let by = by(plan, &own, exchange);
    let context = source.of(exchange);
    let location = match &own {
        Own::Redirect(redirect) => redirect.leads_to(request.0, context),
        _ => None,
    };
    own.write(request, context, to)?;
    Ok(Outcome::Own {
        status: exchange.record().status(),
        by,
        location,
    })
}

/// What makes a response of our own.
fn by(plan: &Plan, own: &Own<'_, '_>, exchange: &Exchange) -> String {
    let action = exchange.route().map(|route| &plan.routes[route].action);
    match (own, action) {
        (Own::Refuse(404, reason), None) => (*reason).to_owned(),
        (Own::Refuse(_, reason), None) => format!("refused before routes are looked at: {reason}"),
        (Own::Refuse(_, reason), Some(_)) => format!("refused: {reason}"),
        (Own::Deny(denial), _) => format!("not let in: {}", denial.reason()),
        (Own::Cors(_), _) => "what other sites may do (cors)".to_owned(),
        (Own::Fixed(_), _) => "a fixed response".to_owned(),
        (Own::File(_), Some(Action::RespondFile { file, .. })) => {
            format!("the file {}", file.display())
        }
        (Own::Files(_, path), Some(Action::Files(files))) => format!(
            "the files of {}: {:?}",
            files.root.display(),
            String::from_utf8_lossy(path)
        ),
        (Own::File(_) | Own::Files(..), _) => "a file".to_owned(),
        (Own::Synthetic, _) => "what the query asks for".to_owned(),
        (Own::Redirect(_), _) => "a redirect".to_owned(),
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
        // What it is sent may name its group.
        exchange.forward_to(*index);
        let context = source.of(exchange);
        let group = &site.groups[*index];
        let backups = group.plan.servers.iter().filter(|server| server.backup);
        groups.push(ToGroup {
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

/// The head that servers of a group are sent.
fn sent(
    group: &Rc<Group>,
    head: &RequestHead<'_, '_>,
    context: RequestContext<'_>,
) -> Result<String, Error> {
    let mut buffer = context.worker.core.buffer()?;
    let authority = group.servers().first().map_or("", |first| &first.authority);
    rewrite::request(head, authority, context, &mut buffer);
    if group.speaks_http2() && upgrade::is_asked(head) {
        return Ok(connect(&buffer, group.scheme()));
    }
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

/// The fields of an extended CONNECT, one in a line.
fn connect(text: &[u8], scheme: &str) -> String {
    let lines = Lines::of(text);
    let fields = lines.connect(upgrade::PROTOCOL, scheme);
    let line = |(name, value)| format!("{name}: {}\r\n", String::from_utf8_lossy(value));
    fields.map(line).collect()
}
