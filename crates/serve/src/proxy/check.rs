//! Active checks of a group's servers, made by one core for all cores: sends the request and evaluates the response.
//! `health.rs` decides when to check and when the state changes.

mod grpc;
mod http2;

use std::rc::Rc;

use onrush_config::plan::{Check, Pattern, UpstreamProtocol};
use onrush_engine::{Address, Input, Instant};
use onrush_http::body::BodyReader;
use onrush_http::proxy_protocol::Origin;
use onrush_http::{Framing, HeaderSlots, Method, Parsed, response};
use onrush_tls::Transport;

use super::failure::Failure;
use super::group::{Event, Group};
use super::health::{CheckFault, Health, Outcome, State};
use crate::limits::CHECK_BYTES_MAX;
use crate::worker::Worker;

/// Checks one server of `group` periodically, until the core stops.
pub(crate) async fn watch(group: Rc<Group>, server: u32, worker: Rc<Worker>) {
    let Some(rules) = &group.plan.health else {
        return;
    };
    let core = &worker.core;
    let mut health = Health::new(rules.into(), u64::from(server), core.now());
    let mut watched = None;
    if let Some(is_healthy) = group.endpoints().all()[server as usize].checked_before() {
        health = health.with_state(if is_healthy { State::Up } else { State::Down });
        watched = group.server(server).address();
    }
    while !core.is_stopping() {
        let due = health.check_due();
        core.sleep_unless_stopping(due.since(core.now_exact()))
            .await;
        let address = group.server(server).address();
        if address != watched {
            // The endpoint has another server now, with unknown state.
            let seed = core.now_exact().nanoseconds();
            health = Health::new(rules.into(), seed, core.now());
            watched.clone_from(&address);
            continue;
        }
        let Some(address) = address else {
            core.sleep_unless_stopping(rules.interval).await;
            continue;
        };
        let address = at_port(address, rules.port);
        let outcome = match check(&group, server, &address, &worker).await {
            Ok(()) => Outcome::Passed,
            Err(_) if core.is_stopping() => return,
            // This core was stalled for much of the timeout: check again at once.
            Err(CheckFault::Exchange(failure))
                if failure.is_timeout() && worker.was_stalled(rules.timeout) =>
            {
                continue;
            }
            // No result for the server, like a socket error (SOCKERR) in HAProxy.
            Err(CheckFault::Exchange(failure)) if failure.is_local_shortage() => {
                let what = format_args!(
                    "could not check {address}, a server of {}: {failure}",
                    group.plan.name
                );
                worker.log.failure(core, what);
                core.sleep_unless_stopping(rules.interval).await;
                continue;
            }
            Err(fault) => Outcome::Failed(fault),
        };
        tracing::debug!(
            "check of {address}, a server of {}: {outcome}",
            group.plan.name
        );
        let now = core.now_exact();
        if let Some(transition) = health.observe(outcome, now) {
            let is_up = transition.state == State::Up;
            let event = match is_up {
                true => Event::Up,
                false => Event::Down,
            };
            group.log_event(server, event, &format_args!("is {transition}"));
            group.endpoints().set_healthy(server, is_up, now);
        }
    }
}

fn at_port(address: Address, port: Option<u16>) -> Address {
    match (address, port) {
        (Address::Tcp(mut address), Some(port)) => {
            address.set_port(port);
            Address::Tcp(address)
        }
        (address, _) => address,
    }
}

async fn check(
    group: &Group,
    server: u32,
    address: &Address,
    worker: &Worker,
) -> Result<(), CheckFault> {
    let Some(rules) = &group.plan.health else {
        return Ok(());
    };
    let until = worker.core.now_exact() + rules.timeout;
    let transport = group
        .connect_to(
            address,
            group.server(server),
            &Origin::Local,
            worker,
            until,
            until,
        )
        .await
        .map_err(|error| CheckFault::Exchange(Failure::Connect(error)))?;
    let authority = |host: &Option<String>| {
        let own = &group.server(server).authority;
        host.as_ref().unwrap_or(own).clone()
    };
    match &rules.check {
        Check::Tcp => {
            // The connection is all that is checked; an error of sending (PROXY protocol header, TLS) does not matter.
            transport.set_deadline(Some(until));
            let _ = transport.flush().await;
            Ok(())
        }
        Check::Grpc { service, host } => {
            let question = http2::CheckRequest {
                head: &format!(
                    "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: onrush\r\nContent-Type: application/grpc\r\nTE: trailers\r\n\r\n",
                    grpc::PATH,
                    authority(host)
                ),
                scheme: group.scheme(),
                body: &grpc::request(service),
            };
            let answer = http2::ask(&transport, &question, &worker.limits, until).await;
            grpc::evaluate(&answer.map_err(CheckFault::Exchange)?)
        }
        Check::Http {
            path,
            host,
            status,
            body,
        } => {
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: onrush\r\nConnection: close\r\n\r\n",
                authority(host)
            );
            let asked = request_page((&transport, group), &head, body.as_ref(), until, worker);
            let response = asked.await.map_err(CheckFault::Exchange)?;
            let is_good = |range: &(u16, u16)| (range.0..=range.1).contains(&response.status);
            if !status.iter().any(is_good) {
                return Err(CheckFault::Status(response.status));
            }
            match response.body_fits {
                true => Ok(()),
                false => Err(CheckFault::Body),
            }
        }
    }
}

/// Sends a request with this head in the group's protocol.
async fn request_page(
    (transport, group): (&Transport, &Group),
    head: &str,
    pattern: Option<&Pattern>,
    until: Instant,
    worker: &Worker,
) -> Result<Response, Failure> {
    if group.plan.protocol == UpstreamProtocol::Http1 {
        return ask(transport, head.as_bytes(), pattern, until, worker).await;
    }
    let question = http2::CheckRequest {
        head,
        scheme: group.scheme(),
        body: b"",
    };
    let answer = http2::ask(transport, &question, &worker.limits, until).await?;
    Ok(Response {
        status: answer.status,
        body_fits: pattern.is_none_or(|pattern| pattern.matches(&answer.body)),
    })
}

struct Response {
    status: u16,
    body_fits: bool,
}

/// Sends `request` and reads the response up to the part that decides the check.
async fn ask(
    transport: &Transport,
    request: &[u8],
    pattern: Option<&Pattern>,
    until: Instant,
    worker: &Worker,
) -> Result<Response, Failure> {
    transport.set_deadline(Some(until));
    transport.queue(std::rc::Rc::<[u8]>::from(request));
    transport.flush().await.map_err(Failure::NoResponse)?;
    let mut received = Vec::new();
    let mut input = Input::default();
    loop {
        let ended = match transport.recv(&mut input).await {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => return Err(Failure::NoResponse(error)),
        };
        received.extend_from_slice(input.bytes());
        input.consume(input.bytes().len());
        let is_over = ended || received.len() >= CHECK_BYTES_MAX;
        if let Some(response) = evaluate(&received, pattern, is_over, worker)? {
            return Ok(response);
        }
        if ended {
            return Err(Failure::Closed);
        }
        if is_over {
            return Err(Failure::BadResponse("it is too long for a check".into()));
        }
    }
}

/// Evaluates the bytes received so far; `None` if more are needed.
fn evaluate(
    received: &[u8],
    pattern: Option<&Pattern>,
    is_over: bool,
    worker: &Worker,
) -> Result<Option<Response>, Failure> {
    let mut at = 0;
    loop {
        let mut slots = HeaderSlots::new();
        let head = match response::parse(&received[at..], &mut slots, Method::Get, &worker.limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Ok(None),
            Parsed::Refused(refusal) => return Err(Failure::BadResponse(refusal.into())),
        };
        at += head.bytes;
        if head.status < 200 {
            continue;
        }
        let status = head.status;
        let judged = |body_fits| Some(Response { status, body_fits });
        let Some(pattern) = pattern else {
            return Ok(judged(true));
        };
        let (body, is_whole) = payload(&received[at..], head.framing, worker)?;
        if pattern.matches(&body) {
            return Ok(judged(true));
        }
        return Ok(judged(false).filter(|_| is_whole || is_over));
    }
}

/// The received part of a body without its framing, and whether it is complete.
fn payload(
    mut bytes: &[u8],
    framing: Framing,
    worker: &Worker,
) -> Result<(Vec<u8>, bool), Failure> {
    let mut reader = BodyReader::of_response(framing);
    let mut payload = Vec::new();
    loop {
        let step = reader
            .advance(bytes, &worker.limits)
            .map_err(|refusal| Failure::BadResponse(refusal.into()))?;
        if step.consumed == 0 {
            return Ok((payload, reader.is_complete()));
        }
        payload.extend_from_slice(&bytes[step.payload]);
        bytes = &bytes[step.consumed..];
    }
}
