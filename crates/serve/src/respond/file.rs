//! Files beneath a directory: which file a path means, and the answer made of it. There are no listings.

mod cache;
mod codings;
mod condition;
mod form;
mod media;
mod pieces;
mod plain;
mod range;

use std::borrow::Cow;
use std::rc::Rc;

use onrush_config::plan;
use onrush_engine::{Error, Root};
use onrush_http::Method;
use onrush_http::request::RequestHead;

use super::refuse::refuse;
use crate::compress::Offer;
use crate::reply::Reply;
use cache::{Cache, Content, Entry, Missing};
use form::Forms;
use plain::{Varies, answer_entry};

pub(crate) use pieces::Pieces;

/// The files of one route.
pub(crate) struct Files {
    cache: Rc<Cache>,
    /// Whether names that begin with a dot are served.
    hidden: bool,
    /// What is offered beside the files as they are.
    forms: Option<Box<Forms>>,
}

/// The fields that say what is allowed, for 405 and OPTIONS.
const ALLOW: (&str, &str) = ("Allow", "GET, HEAD, OPTIONS");

impl Files {
    pub(crate) fn new(
        root: Root,
        index: &[String],
        hidden: bool,
        precompressed: &[plan::Coding],
        offer: Option<Rc<Offer>>,
    ) -> Self {
        Self {
            cache: Cache::new(root, index),
            hidden,
            forms: Forms::new(precompressed, offer),
        }
    }

    /// Keeps no more than so many files open while nobody is sent them.
    pub(crate) fn keep_open(&self, max: usize) {
        self.cache.keep_open(max);
    }

    /// Closes files that nobody is sent; whether there were any.
    pub(crate) fn give_up_open(&self) -> bool {
        self.cache.give_up_open()
    }

    /// Answers with the file at `path`, the part of the request's path that the route leaves. What is left to send of a
    /// large file is returned.
    #[inline]
    pub(crate) fn answer(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<Pieces>>, Error> {
        if self.forms.is_none()
            && reply.method == Method::Get
            && reply.takes_rendered()
            && condition::are_absent(head.headers)
            && let path = path.strip_prefix(b"/").unwrap_or(path)
            && let Some(entry) = self.cache.fresh(path, reply.worker.core.now())
            && matches!(entry.content, Content::Held)
            && (!path.is_empty() || head.path.ends_with('/'))
        {
            reply.rendered(200, &entry.usual)?;
            return Ok(None);
        }
        self.answer_unusual(head, path, reply)
    }

    fn answer_unusual(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<Pieces>>, Error> {
        match reply.method {
            Method::Get | Method::Head => {}
            Method::Options => {
                reply.head(204, |head| {
                    head.header(ALLOW.0, ALLOW.1.as_bytes());
                })?;
                return Ok(None);
            }
            _ => {
                let reason = "files can only be read";
                refuse(405, reason, &[ALLOW], reply)?;
                return Ok(None);
            }
        }
        let path = without_empty_segments(path);
        match self.find(head, &path, reply) {
            Ok(entry) => match &self.forms {
                None => answer_entry(&entry, Varies::No, head, reply),
                Some(forms) => forms.answer((&self.cache, &path, &entry), head, reply),
            },
            Err(missing) => {
                refuse_missing(missing, head, reply)?;
                Ok(None)
            }
        }
    }

    fn find(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        reply: &Reply<'_>,
    ) -> Result<Rc<Entry>, Missing> {
        if path.split(|&byte| byte == b'/').any(is_dot_segment) || (!self.hidden && is_hidden(path))
        {
            return Err(Missing::NotFound);
        }
        // The route's prefix, named without its slash, is this directory.
        if path.is_empty() && !head.path.ends_with('/') {
            return Err(Missing::Directory);
        }
        self.cache.find(path, &reply.worker.core)
    }
}

/// Without slashes at the start and twice in a row: the kernel would not see them either, and each file is to have one
/// name here.
fn without_empty_segments(path: &[u8]) -> Cow<'_, [u8]> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    if !path.starts_with(b"/") && memchr::memmem::find(path, b"//").is_none() {
        return Cow::Borrowed(path);
    }
    let mut kept = Vec::with_capacity(path.len());
    for &byte in path {
        if byte != b'/' || !(kept.is_empty() || kept.ends_with(b"/")) {
            kept.push(byte);
        }
    }
    Cow::Owned(kept)
}

/// A prefix without a slash at its end can leave these behind: `/p` of `/p..`.
fn is_dot_segment(segment: &[u8]) -> bool {
    segment == b"." || segment == b".."
}

/// Whether a segment begins with a dot. `.well-known` at the top is made to be found (RFC 8615): certificates are
/// issued on what lies there.
fn is_hidden(path: &[u8]) -> bool {
    let visible = path.strip_prefix(b".well-known/").unwrap_or(path);
    visible
        .split(|&byte| byte == b'/')
        .any(|segment| segment.starts_with(b"."))
}

/// Answers a request for what cannot be sent.
fn refuse_missing(
    missing: Missing,
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let worker = reply.worker;
    let log = |why: &dyn std::fmt::Display| {
        let path = head.path;
        worker
            .log
            .failure(&worker.core, format_args!("the file for {path}: {why}"));
    };
    match missing {
        Missing::NotFound => refuse(404, "", &[], reply),
        Missing::Outside => {
            log(&"a symbolic link leads out of the directory that is served");
            refuse(404, "", &[], reply)
        }
        Missing::Directory => {
            let location = with_slash(head);
            if location.len() > LOCATION_MAX {
                return refuse(414, "the path is too long to be redirected", &[], reply);
            }
            refuse(301, "", &[("Location", &location)], reply)
        }
        Missing::NoIndex => {
            let reason = "this directory has no index file, and there are no listings";
            refuse(403, reason, &[], reply)
        }
        Missing::Forbidden => refuse(403, "", &[], reply),
        Missing::Busy(error) => {
            let what_to_do = match error.is_out_of_descriptors() {
                true => "; raise the limit on open files (ulimit -n)",
                false => "",
            };
            log(&format_args!("{error}{what_to_do}"));
            refuse(503, "", &[("Retry-After", "1")], reply)
        }
        Missing::Broken(error) => {
            log(&error);
            refuse(500, "the file cannot be read", &[], reply)
        }
    }
}

/// Backslashes grow threefold by their encoding; with the rest of a head this fits `HEAD_BYTES_MAX`.
const LOCATION_MAX: usize = 10 * 1024;

/// The request's own path with a slash behind it. Two slashes (or what browsers take for one) at the start would name
/// another host.
fn with_slash(head: &RequestHead<'_, '_>) -> String {
    let path = head.path.trim_start_matches('/').replace('\\', "%5C");
    match head.query {
        Some(query) => format!("/{path}/?{query}"),
        None => format!("/{path}/"),
    }
}

#[cfg(test)]
mod tests;
