//! One request on an HTTP/2 connection: handled at once as far as possible, the rest in a task of its own.

use std::cell::OnceCell;
use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::http2;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::message::Rejection;
use onrush_http::{HeaderSlots, Method, Refusal};

use crate::dispatch::route_action::{DispatchResult, respond};
use crate::exchange::Exchange;
use crate::exchange::downstream::http2::Stream;
use crate::exchange::downstream::http2::flow::stream_reset_error;
use crate::exchange::downstream::http2::session::Session;
use crate::exchange::downstream::{ClientProtocol, Downstream};
use crate::exchange::refuse::refuse;
use crate::exchange::reply::Reply;
use crate::exchange::request_context::Source;
use crate::observe::in_flight::Stage;
use crate::observe::record::RequestEnd;
use crate::observe::work::{CLIENT, TUNNEL};
use crate::proxy::forward;
use crate::proxy::forward::complete_response::{Passed, relay_complete};
use crate::proxy::forward::request::Forward;
use crate::rules::error_page::ErrorFormat;
use crate::site::Site;
use crate::site::service::Service;
use crate::worker::Worker;
use crate::worker::connections::note;

use super::parked_requests::{finish_when_sent, wait};

pub(super) struct Request {
    session: Rc<Session>,
    service: Rc<Service>,
    site: Rc<Site>,
    exchange: Exchange,
    stream: Stream,
}

/// A stream, and whether it ends with its head.
pub(super) type Opened = (http2::Stream, http2::End);

impl Request {
    /// Creates the request with these fields, received by this listener.
    pub(super) fn new(
        (session, service): (&Rc<Session>, &Rc<Service>),
        listener: u16,
        opened: Opened,
        fields: Box<FieldSection>,
    ) -> Request {
        let now = service.worker.core.now();
        session.transport().change_note(note::with_request);
        Request {
            session: Rc::clone(session),
            service: Rc::clone(service),
            site: service.site(),
            exchange: Exchange::for_listener(listener, now),
            stream: Stream::new(session, opened, fields),
        }
    }

    /// Responds at once or in a new task.
    pub(super) fn begin(mut self, is_first: &mut bool) {
        if self.stream.is_reset() {
            // The client has reset the stream before the response started.
            self.exchange.start(&self.site.settings);
            return self.finish(Err(stream_reset_error()));
        }
        match self.respond(is_first) {
            Ok(None) => {}
            Ok(Some(DispatchResult::Whole)) => finish_when_sent(self),
            Ok(Some(DispatchResult::Forwarded(forward))) => wait(self, forward),
            Ok(Some(responded)) => self.spawn(responded),
            Err(error) => self.finish(Err(error)),
        }
    }

    /// Responds as far as possible without waiting; `None` if the request was malformed or refused.
    fn respond(&mut self, is_first: &mut bool) -> Result<Option<DispatchResult>, Error> {
        let Request {
            session,
            service,
            site,
            exchange,
            stream,
        } = self;
        let worker = &service.worker;
        let mut slots = HeaderSlots::new();
        let judged = stream.validate(&mut slots, &site.settings.request_limits, &worker.random);
        let (head, arrived, to) = match judged {
            Ok(request) => request,
            Err(Rejection::Malformed(reason)) => {
                worker.meter.invalid_input();
                stream.reject(reason);
                return Ok(None);
            }
            Err(Rejection::Refused(refusal)) => return self.refuse(refusal).map(|()| None),
        };
        let source = Source {
            worker,
            client: session.client(),
            stream: session.transport(),
            origin: &OnceCell::new(),
        };
        let responded = respond((&head, arrived), (source, is_first), site, exchange, to)?;
        if let Some(stage) = responded.unfinished_stage() {
            let client = source.of(exchange).address(head.headers);
            let client = (client, session.transport().number());
            exchange.list_in_flight((head.method_text, head.target), client, stage);
        }
        let bytes_max = exchange.request_body_max();
        stream.limit_body(bytes_max);
        Ok(Some(responded))
    }

    fn refuse(&mut self, refusal: Refusal) -> Result<(), Error> {
        let Request {
            session,
            service,
            site,
            exchange,
            stream,
        } = self;
        exchange.start(&site.settings);
        exchange.record().refuse();
        let peer = || session.client().peer(session.transport());
        exchange.start_log_entry_without_head(|| peer().map(|(address, _)| address));
        let mut reply = Reply::new(
            &service.worker,
            exchange,
            Method::Get,
            stream.reply_writer(),
        );
        let what = (refusal.status, refusal.reason);
        refuse(what, &[], ErrorFormat::Text, &mut reply)?;
        reply.end()?;
        exchange.finish(RequestEnd::Complete, stream.written());
        Ok(())
    }

    /// Continues in a new task, which may wait.
    pub(super) fn spawn(mut self, mut responded: DispatchResult) {
        let core = self.service.worker.core.clone();
        // Counts the task as one beside its connection's.
        self.service.worker.begin_background();
        // Not an `async fn`, which would also store its arguments.
        core.spawn_as(CLIENT, async move {
            let mut outcome = self.go_on(&mut responded).await;
            if outcome.is_ok() && (!self.stream.is_flushed() || self.stream.is_reset()) {
                outcome = self.stream.flush().await;
            }
            let worker = Rc::clone(&self.service.worker);
            self.finish(outcome);
            worker.end_background();
        });
    }

    /// Continues after a part of the response has arrived: at once, if it is complete.
    pub(super) fn continue_with(mut self, mut forward: Forward) {
        if self.stream.is_reset() {
            return self.spawn(DispatchResult::Forwarded(forward));
        }
        match relay_complete(&mut forward, self.downstream()) {
            Ok(Passed::Whole) => finish_when_sent(self),
            Ok(Passed::Nothing) => self.spawn(DispatchResult::Forwarded(forward)),
            Err(error) => self.finish(Err(error)),
        }
    }

    /// Records that the rest of the response waits for the client's windows.
    #[cold]
    pub(super) fn record_late_end(&mut self) {
        let worker = &self.service.worker;
        let source = Source {
            worker,
            client: self.session.client(),
            stream: self.session.transport(),
            origin: &OnceCell::new(),
        };
        let mut slots = HeaderSlots::new();
        let head = self.stream.head(&mut slots, &worker.limits);
        let address = source.of(&self.exchange).address(head.headers);
        let client = (address, self.session.transport().number());
        let line = (head.method_text, head.target);
        self.exchange
            .list_in_flight(line, client, Stage::Responding);
        self.exchange.record_first_byte(worker);
        // The written part may be all that the client needs.
        self.session.wake();
    }

    pub(super) fn worker(&self) -> &Rc<Worker> {
        &self.service.worker
    }

    pub(super) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    async fn go_on(&mut self, responded: &mut DispatchResult) -> Result<(), Error> {
        let core = self.service.worker.core.clone();
        loop {
            match responded {
                DispatchResult::Whole => return Ok(()),
                DispatchResult::Begun(rest) => {
                    self.stream.take_head();
                    return core.in_block(rest.send(self.downstream())).await;
                }
                DispatchResult::Forwarded(forward) => {
                    let exchange = forward::exchange(forward, self.downstream());
                    let Some(tunnel) = core.in_block(exchange).await? else {
                        return Ok(());
                    };
                    core.set_work(TUNNEL);
                    // The bytes of a tunnel are not counted.
                    let sent = self.stream.written();
                    let ended = tunnel.run_on_stream(&self.stream, &mut self.exchange);
                    let ended = Box::pin(ended).await;
                    self.exchange.finish_with_client(ended, sent);
                    return Ok(());
                }
                DispatchResult::Pending(pending) => {
                    let outcome = pending.outcome().await;
                    self.exchange
                        .store_login_outcome(outcome, &self.service.worker);
                }
            }
            match self.respond(&mut false)? {
                Some(then) => *responded = then,
                None => return Ok(()),
            }
        }
    }

    fn downstream(&mut self) -> Downstream<'_> {
        Downstream {
            worker: &self.service.worker,
            client: self.session.client(),
            exchange: &mut self.exchange,
            side: ClientProtocol::Http2(&mut self.stream),
            origin: OnceCell::new(),
        }
    }

    pub(super) fn finish(mut self, outcome: Result<(), Error>) {
        let sent = self.stream.written();
        match outcome {
            Ok(()) => self.exchange.finish(RequestEnd::Complete, sent),
            Err(_) => self.exchange.finish_with_client(outcome, sent),
        }
    }
}
