//! Scripted servers, and the outcome of forwarding requests to them.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{OneLiner, ServerAddress};
use onrush_engine::{BUFFER_BYTES, Listener, Stream};
use onrush_http::body::BodyReader;
use onrush_http::{Framing, HeaderSlots, Limits, Method, Parsed, request, response};

use super::{Peer, TestCore, TestDriver, without_dates};
use crate::observe::meter::Totals;

/// One step of a server on a connection. After the last one it closes the connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads a request with its body and records it. Ends the script if the peer has closed instead.
    Read,
    /// Reads a request head and records it; the rest stays unread.
    ReadHead,
    ReadBytes(usize),
    Send(Vec<u8>),
    /// Responds with 200 and the path of the last request.
    Echo,
    Wait(Duration),
    /// Waits until this many connections have been accepted.
    WaitForConnections(usize),
    /// Reads and discards until the peer closes.
    WaitForEnd,
    Reset,
    /// Starts from the first step.
    Again,
}

pub(crate) fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// A server that runs a script for each connection, in order of acceptance; further connections use the last script.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Rc<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: RefCell<Vec<Vec<Vec<u8>>>>,
    /// Number of closed connections.
    ended: Cell<usize>,
}

impl TestCore {
    pub(crate) fn upstream(&self, scripts: &[&[Step]]) -> Upstream {
        let (listener, address) = self.listen();
        self.upstream_on(listener, address, scripts)
    }

    /// [`TestCore::upstream`] on an existing listener.
    pub(crate) fn upstream_on(
        &self,
        listener: Listener,
        address: SocketAddr,
        scripts: &[&[Step]],
    ) -> Upstream {
        let seen: Rc<Seen> = Rc::default();
        let upstream = Upstream {
            address,
            seen: Rc::clone(&seen),
        };
        let scripts: Vec<Vec<Step>> = scripts.iter().map(|script| script.to_vec()).collect();
        let site = self.clone();
        self.core.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                let number = seen.requests.borrow().len();
                seen.requests.borrow_mut().push(Vec::new());
                let script = scripts[number.min(scripts.len() - 1)].clone();
                let (its_site, seen) = (site.clone(), Rc::clone(&seen));
                site.core.spawn(async move {
                    follow(script, stream, number, &its_site, &seen).await;
                    seen.ended.set(seen.ended.get() + 1);
                });
            }
        });
        upstream
    }

    pub(crate) async fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = self.core.now_exact() + super::PATIENCE;
        while !condition() {
            assert!(self.core.now_exact() < deadline, "waited in vain: {what}");
            self.core.sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Upstream {
    /// A plan that forwards everything to this server, without X-Forwarded fields.
    pub(crate) fn plan(&self) -> Plan {
        let server = ServerAddress::Ip(self.address);
        let mut plan = Plan::one_liner(OneLiner::Forward(vec![server]), Vec::new());
        plan.forwarded.x_forwarded = false;
        plan
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.requests.borrow().len()
    }

    pub(crate) fn open(&self) -> usize {
        self.connections() - self.seen.ended.get()
    }

    /// Request `turn` of connection `number`, as received.
    pub(crate) fn request(&self, number: usize, turn: usize) -> Vec<u8> {
        self.seen.requests.borrow()[number][turn].clone()
    }

    /// The received requests, by connection, with the server's address replaced by SERVER.
    pub(crate) fn requests(&self) -> Vec<Vec<String>> {
        let own = self.address.to_string();
        let text = |bytes: &Vec<u8>| {
            let text = String::from_utf8_lossy(bytes);
            text.replace("\r\n", "\n").replace(&own, "SERVER")
        };
        let of_connection = |requests: &Vec<Vec<u8>>| requests.iter().map(text).collect();
        self.seen
            .requests
            .borrow()
            .iter()
            .map(of_connection)
            .collect()
    }
}

async fn follow(script: Vec<Step>, stream: Stream, number: usize, site: &TestCore, seen: &Seen) {
    let remember = |request| seen.requests.borrow_mut()[number].push(request);
    let mut peer = Peer::new(stream);
    let mut steps = script.iter();
    while let Some(step) = steps.next() {
        match step {
            Step::Read => match peer.receive_request().await {
                Some(request) => remember(request),
                None => return,
            },
            Step::ReadHead => {
                remember(peer.receive_until(b"\r\n\r\n").await);
            }
            Step::ReadBytes(count) => drop(peer.receive_exactly(*count).await),
            // Ignore the error: the peer may be gone.
            Step::Send(bytes) => {
                let _ = super::send_bytes(&peer.stream, bytes).await;
            }
            Step::Echo => {
                let response = echo(seen.requests.borrow()[number].last().expect("read before"));
                let _ = super::send_bytes(&peer.stream, &response).await;
            }
            Step::Wait(duration) => peer.stream.core().sleep(*duration).await,
            Step::WaitForConnections(count) => {
                site.until("more connections", || {
                    seen.requests.borrow().len() >= *count
                })
                .await;
            }
            Step::WaitForEnd => drop(peer.receive_all().await),
            Step::Reset => return peer.stream.reset_when_dropped(),
            Step::Again => steps = script.iter(),
        }
    }
}

/// A 200 with the path of `request`.
fn echo(request: &[u8]) -> Vec<u8> {
    let path = request.split(|&byte| byte == b' ').nth(1).expect("a path");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", path.len());
    [head.as_bytes(), path].concat()
}

impl Peer {
    /// A request with its body, as received; `None` if the peer closes first.
    pub(crate) async fn receive_request(&mut self) -> Option<Vec<u8>> {
        let framing = |head: &[u8]| {
            let mut slots = HeaderSlots::new();
            // Forwarded heads have additional fields.
            let limits = Limits {
                head_bytes_max: BUFFER_BYTES,
                ..Limits::DEFAULT
            };
            match request::parse(head, &mut slots, &limits) {
                Parsed::Complete(head) => head.framing,
                _ => panic!("no request head: {}", head.escape_ascii()),
            }
        };
        self.receive_framed(framing).await
    }

    /// A response to `method` with its body, as received; `None` if the peer closes first.
    pub(crate) async fn receive_response(&mut self, method: Method) -> Option<Vec<u8>> {
        let framing = |head: &[u8]| {
            let mut slots = HeaderSlots::new();
            match response::parse(head, &mut slots, method, &Limits::DEFAULT) {
                Parsed::Complete(head) => head.framing,
                _ => panic!("no response's head: {}", head.escape_ascii()),
            }
        };
        self.receive_framed(framing).await.map(without_dates)
    }

    pub(crate) async fn receive_text(&mut self) -> String {
        let response = self.receive_response(Method::Get).await;
        String::from_utf8(response.expect("a response")).expect("in UTF-8")
    }

    async fn receive_framed(&mut self, framing: impl Fn(&[u8]) -> Framing) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        let mut body: Option<BodyReader> = None;
        loop {
            let from = message.len();
            message.extend_from_slice(self.input.bytes());
            if body.is_none()
                && let Some(at) = memchr::memmem::find(&message, b"\r\n\r\n")
            {
                let head = at + 4;
                body = Some(BodyReader::new(framing(&message[..head])));
                // The part of the last bytes that belongs to the head.
                self.input.consume(head.saturating_sub(from));
                message.truncate(head);
                continue;
            }
            if let Some(body) = &mut body {
                message.truncate(from);
                let bytes = body.skip(self.input.bytes(), &Limits::DEFAULT);
                let bytes = bytes.expect("a well-formed body");
                message.extend_from_slice(&self.input.bytes()[..bytes]);
                if bytes > 0 {
                    self.input.consume(bytes);
                }
                if body.is_complete() {
                    return Some(message);
                }
            } else {
                self.take();
            }
            match self.receive().await {
                Ok(1..) => {}
                Ok(_) if body.is_some_and(|body| body.end_of_input().is_ok()) => {
                    return Some(message);
                }
                _ => return None,
            }
        }
    }
}

/// The outcome of forwarding requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    /// All bytes that the client received, as text, with each `Date` masked and the server's address replaced by
    /// SERVER.
    pub(crate) response: String,
    /// The requests received by the server, by connection.
    pub(crate) requests: Vec<Vec<String>>,
    pub(crate) totals: Totals,
}

/// Sends `requests` through a proxy to a server that runs `scripts`, on every driver; then the client closes its side.
/// All drivers must produce the same outcome.
pub(crate) fn forward(scripts: &[&[Step]], requests: &str) -> Outcome {
    forward_on(super::cores(), &|_| {}, scripts, requests)
}

/// [`forward`] with changes to the plan.
pub(crate) fn forward_with(
    change: &dyn Fn(&mut Plan),
    scripts: &[&[Step]],
    requests: &str,
) -> Outcome {
    forward_on(super::cores(), change, scripts, requests)
}

/// [`forward`] on cores where data sent at once arrives at once.
pub(crate) fn forward_undisturbed(scripts: &[&[Step]], requests: &str) -> Outcome {
    forward_on(super::undisturbed::calm_cores(), &|_| {}, scripts, requests)
}

/// [`forward_undisturbed`] with changes to the plan.
pub(crate) fn forward_undisturbed_with(
    change: &dyn Fn(&mut Plan),
    scripts: &[&[Step]],
    requests: &str,
) -> Outcome {
    forward_on(super::undisturbed::calm_cores(), change, scripts, requests)
}

fn forward_on(
    cores: impl Iterator<Item = TestDriver>,
    change: &dyn Fn(&mut Plan),
    scripts: &[&[Step]],
    requests: &str,
) -> Outcome {
    let before: Rc<Cell<Option<Outcome>>> = Rc::default();
    let test = |site: TestCore| {
        let (requests, before) = (requests.to_owned(), Rc::clone(&before));
        let upstream = site.upstream(scripts);
        let mut plan = upstream.plan();
        change(&mut plan);
        async move {
            let (address, service) = site.serve_worker(&plan);
            let mut client = site.connect(&address).await;
            let response = without_dates(client.exchange(requests.as_bytes()).await);
            let own = upstream.address.to_string();
            let response = String::from_utf8_lossy(&response).replace("\r\n", "\n");
            let outcome = Outcome {
                response: response.replace(&own, "SERVER"),
                requests: upstream.requests(),
                totals: service.worker.meter.totals(),
            };
            if let Some(before) = before.take() {
                assert_eq!(before, outcome, "drivers differ");
            }
            before.set(Some(outcome));
        }
    };
    cores.for_each(|ground| super::run(ground, &test));
    before.take().expect("the simulated driver exists")
}
