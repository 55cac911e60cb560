//! Refusals and redirects: the configured error page if there is one, else the status and one line of reason, as text
//! or JSON (RFC 9457).

use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::Method;

use crate::exchange::json;
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::{BodyLength, Fields};
use crate::rules::error_page::{Content, ErrorFormat};

/// Responds with `status` and a reason; `fields` are additional fields such as `Allow`, `form` is the client's
/// preferred format for errors.
pub(crate) fn refuse(
    (status, reason): (u16, &str),
    fields: &[(&str, &str)],
    form: ErrorFormat,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if status < 400 {
        return respond_with_line((status, reason), |head| write_all(fields, head), reply);
    }
    let lines = reply.begin_error();
    let exchange = reply.exchange;
    let page = exchange.error_page(status);
    let retry_after = page.and_then(|page| page.retry_after.as_deref());
    let content = page.and_then(|page| page.content_for(form));
    // A JSON page is sent for every `Accept`; other content depends on it (RFC 9110 12.5.5).
    let depends_on_accept = content.is_none_or(|content| !content.is_json());
    let write_fields = |head: &mut Fields<'_>| {
        if depends_on_accept {
            head.header("Vary", b"Accept");
        }
        head.lines(lines);
        let Some(seconds) = retry_after else {
            return write_all(fields, head);
        };
        for (name, value) in fields.iter().filter(|(name, _)| *name != "Retry-After") {
            head.header(name, value.as_bytes());
        }
        head.header("Retry-After", seconds.as_bytes());
    };
    match content {
        Some(content) => respond_with_page(status, content, write_fields, reply),
        None if form == ErrorFormat::Json => {
            respond_with_json((status, reason), write_fields, reply)
        }
        None => respond_with_line((status, reason), write_fields, reply),
    }
}

fn write_all(fields: &[(&str, &str)], head: &mut Fields<'_>) {
    for (name, value) in fields {
        head.header(name, value.as_bytes());
    }
}

fn respond_with_page(
    status: u16,
    content: &Content,
    fields: impl FnOnce(&mut Fields<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    reply.head(status, |head| {
        head.header("Content-Type", content.content_type.as_bytes())
            .length(BodyLength::Known(content.body.len() as u64));
        fields(head);
    })?;
    match reply.method {
        Method::Head => Ok(()),
        _ => reply.part(Rc::clone(&content.body).into()),
    }
}

fn respond_with_json(
    (status, reason): (u16, &str),
    fields: impl FnOnce(&mut Fields<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut body = String::from("{\"type\":\"about:blank\",\"title\":");
    json::push_string(onrush_http::reason(status), &mut body);
    body.push_str(",\"status\":");
    body.push_str(itoa::Buffer::new().format(status));
    if !reason.is_empty() {
        body.push_str(",\"detail\":");
        json::push_string(reason, &mut body);
    }
    body.push_str("}\n");
    reply.head(status, |head| {
        head.header("Content-Type", b"application/problem+json")
            .length(BodyLength::Known(body.len() as u64));
        fields(head);
    })?;
    match reply.method {
        Method::Head => Ok(()),
        _ => reply.data(body.as_bytes()),
    }
}

fn respond_with_line(
    (status, reason): (u16, &str),
    fields: impl FnOnce(&mut Fields<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let phrase = onrush_http::reason(status);
    let separator = if reason.is_empty() { "" } else { ": " };
    let length = 3 + 1 + phrase.len() + separator.len() + reason.len() + 1;
    reply.head(status, |head| {
        head.header("Content-Type", b"text/plain; charset=utf-8")
            .length(BodyLength::Known(length as u64));
        fields(head);
    })?;
    if reply.method == Method::Head {
        return Ok(());
    }
    let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
    let line: [&[u8]; 6] = [
        &digits,
        b" ",
        phrase.as_bytes(),
        separator.as_bytes(),
        reason.as_bytes(),
        b"\n",
    ];
    // In one call: each call would make a frame in HTTP/2.
    reply.data(&line.concat())
}
