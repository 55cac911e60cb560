//! Answers that say no, or elsewhere: a status and one line of reason.

use onrush_engine::Error;
use onrush_http::Method;

use crate::reply::Reply;
use crate::reply::fields::BodyLength;

/// Answers with `status` and a line that gives the reason; `fields` are further fields such as `Allow`.
pub(crate) fn refuse(
    status: u16,
    reason: &str,
    fields: &[(&str, &str)],
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if status >= 400 {
        reply.says_error();
    }
    let phrase = onrush_http::reason(status);
    let separator = if reason.is_empty() { "" } else { ": " };
    let length = 3 + 1 + phrase.len() + separator.len() + reason.len() + 1;
    reply.head(status, |head| {
        head.header("Content-Type", b"text/plain; charset=utf-8")
            .length(BodyLength::Known(length as u64));
        for (name, value) in fields {
            head.header(name, value.as_bytes());
        }
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
    line.iter().try_for_each(|part| reply.data(part))
}
