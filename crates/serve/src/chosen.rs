//! What a request gets: its route, who is let in, and then an answer of our own or one of a server.

use std::borrow::Cow;

use onrush_engine::Error;
use onrush_http::Method;
use onrush_http::request::RequestHead;
use onrush_tls::Transport;

use crate::access::{Denial, Halt, Pending};
use crate::asker::Asker;
use crate::client::Client;
use crate::exchange::{Exchange, TooLong};
use crate::path;
use crate::proxy::rewrite;
use crate::respond::file::{Files, Pieces};
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;
use crate::respond::refuse::refuse;
use crate::respond::synthetic::{self, Synthetic};
use crate::respond::{Context, Writer};
use crate::site::Site;
use crate::site::target::Answer;
use crate::worker::Worker;

pub(crate) enum Chosen<'w, 'b> {
    /// An answer of our own.
    Own(Own<'w, 'b>),
    /// That of a server of the group with this index.
    Forward(usize),
    /// Whether its password is right comes first.
    Verify(Pending),
}

/// Answers that are made here.
pub(crate) enum Own<'w, 'b> {
    Fixed(&'w Fixed),
    Files(&'w Files, Cow<'b, [u8]>),
    Synthetic,
    Redirect(&'w Redirect),
    Refuse(u16, &'static str),
    Deny(Denial<'w>),
}

/// What is left to send of an answer whose beginning is written.
pub(crate) enum Rest {
    /// The rest of a file behind its head.
    File(Box<Pieces>),
    /// An answer that takes time or room.
    Synthetic(Box<Synthetic>),
}

impl Own<'_, '_> {
    /// Writes it, as far as that needs no waiting.
    ///
    /// # Errors
    /// When the core is out of buffers.
    #[inline]
    pub(crate) fn answer(
        self,
        head: &RequestHead<'_, '_>,
        asker: Asker<'_>,
        context: Context,
        writer: &mut Writer<'_>,
    ) -> Result<Option<Rest>, Error> {
        match self {
            Own::Fixed(fixed) => fixed.form(head).answer(context, writer)?,
            Own::Refuse(status, reason) => refuse(status, reason, &[], context, writer)?,
            Own::Deny(denial) => denial.answer(context, writer)?,
            Own::Redirect(redirect) => redirect.answer(head, asker, context, writer)?,
            Own::Files(files, path) => {
                let pieces = files.answer(head, &path, context, writer)?;
                return Ok(pieces.map(Rest::File));
            }
            Own::Synthetic => {
                let synthetic = synthetic::answer(head, context, writer)?;
                return Ok(synthetic.map(Rest::Synthetic));
            }
        }
        Ok(None)
    }
}

/// Finds the request's route, and what it gets there.
///
/// # Errors
/// When the core is out of buffers.
pub(crate) fn choose<'w, 'b>(
    head: &RequestHead<'_, 'b>,
    site: &'w Site,
    worker: &'w Worker,
    client: &Client,
    stream: &Transport,
    exchange: &mut Exchange,
) -> Result<Chosen<'w, 'b>, Error> {
    if head.method == Method::Connect {
        return Ok(Chosen::Own(Own::Refuse(501, "this is no tunnel")));
    }
    // RFC 9110 4.2.1, RFC 9112 3.3: it may mean a default host, but not where hosts are told apart.
    if head.authority == Some("") && site.routes.know_hosts() {
        return Ok(Chosen::Own(Own::Refuse(400, "an empty Host field")));
    }
    let path = match path::normalize(head.path) {
        Ok(path) => path,
        Err(bad) => return Ok(Chosen::Own(Own::Refuse(400, bad.reason()))),
    };
    let asker = Asker {
        worker,
        client,
        stream,
        exchange,
    };
    let whence = || asker.whence(head.headers);
    let Some(index) = site.routes.choose(head, &path, whence) else {
        return Ok(Chosen::Own(Own::Refuse(404, "no route matches")));
    };
    let route = site.routes.route(index);
    exchange.begin(index);
    let target = &route.target;
    if let Answer::Forward(split) = &target.answer {
        exchange.forward_to(split.choose(|| worker.chance.bits()));
    }
    if target.keeps && exchange.keep(head, worker, client, stream) == Err(TooLong) {
        return Ok(Chosen::Own(Own::Refuse(
            431,
            "its answer would have too large a head",
        )));
    }
    if let Some(access) = &target.access {
        match access.let_in(head, worker, client, stream, exchange) {
            Ok(()) => {}
            Err(Halt::Deny(denial)) => return Ok(Chosen::Own(Own::Deny(denial))),
            Err(Halt::Verify(pending)) => return Ok(Chosen::Verify(pending)),
        }
    }
    Ok(match &target.answer {
        Answer::Fixed(fixed) => Chosen::Own(Own::Fixed(fixed)),
        Answer::Synthetic => Chosen::Own(Own::Synthetic),
        Answer::Redirect(redirect) => Chosen::Own(Own::Redirect(redirect)),
        Answer::Forward(_) => {
            let asker = Asker {
                worker,
                client,
                stream,
                exchange,
            };
            match rewrite::objection(head, &target.rules, asker)? {
                None => Chosen::Forward(exchange.group()),
                Some(refusal) => Chosen::Own(Own::Refuse(refusal.status, refusal.reason)),
            }
        }
        Answer::Files(files) => {
            Chosen::Own(Own::Files(files, without_prefix(path, route.prefix())))
        }
    })
}

/// What is left of a path that begins with `prefix`.
fn without_prefix<'b>(path: Cow<'b, [u8]>, prefix: &str) -> Cow<'b, [u8]> {
    match path {
        Cow::Borrowed(path) => Cow::Borrowed(&path[prefix.len()..]),
        Cow::Owned(mut path) => {
            path.drain(..prefix.len());
            Cow::Owned(path)
        }
    }
}
