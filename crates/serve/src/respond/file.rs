//! Static files: maps a path to a file below the root and responds with it.

mod cache;
mod codings;
mod condition;
mod entry;
mod file_body;
mod listing;
mod missing;
mod plain;
mod range;
mod representation;
mod single;

use std::borrow::Cow;
use std::rc::Rc;

use onrush_config::plan;
use onrush_engine::{Error, Root};
use onrush_http::Method;
use onrush_http::request::RequestHead;

use crate::exchange::refuse::refuse;
use crate::exchange::reply::Reply;
use crate::rules::compress::CompressionRules;
use crate::rules::error_page::ErrorFormat;
use cache::Cache;
use entry::{Content, Entry};
use listing::ParentLink;
use missing::Missing;
use plain::{Varies, respond_with_entry};
use representation::Representations;

pub(crate) use crate::routing::media::media_type;
pub(crate) use file_body::FileBody;
pub(crate) use single::SingleFile;

/// The files of one route.
pub(crate) struct Files {
    cache: Rc<Cache>,
    /// Whether names starting with a dot are served.
    hidden: bool,
    /// Whether directories without an index file are listed.
    listing: bool,
    /// The file served if nothing is found.
    fallback: Option<Box<[u8]>>,
    /// Encoded representations, if any are offered.
    forms: Option<Box<Representations>>,
}

/// The allowed methods, for 405 and OPTIONS.
const ALLOW: (&str, &str) = ("Allow", "GET, HEAD, OPTIONS");

impl Files {
    pub(crate) fn new(
        root: Root,
        plan: &plan::Files,
        precompressed: &[plan::Coding],
        offer: Option<Rc<CompressionRules>>,
    ) -> Self {
        Self {
            cache: Cache::new(root, &plan.index),
            hidden: plan.hidden,
            listing: plan.listing,
            fallback: plan.fallback.as_ref().map(|path| path.as_bytes().into()),
            forms: Representations::new(precompressed, offer),
        }
    }

    pub(crate) fn limit_open_files(&self, max: usize) {
        self.cache.keep_open(max);
    }

    /// Closes cached files that are not being sent. Returns whether there were any.
    pub(crate) fn close_idle_files(&self) -> bool {
        self.cache.give_up_open()
    }

    /// Responds with the file at `path`, the part of the request's path after the route's prefix. Returns the rest of a
    /// large file, still to be sent.
    #[inline]
    pub(crate) fn respond(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<FileBody>>, Error> {
        if self.forms.is_none()
            && reply.method == Method::Get
            && reply.supports_rendered()
            && condition::is_unconditional(head.headers)
            && let path = path.strip_prefix(b"/").unwrap_or(path)
            && let Some(entry) = self.cache.fresh(path, reply.worker.core.now())
            && matches!(entry.content, Content::Held)
            && (!path.is_empty() || head.path.ends_with('/'))
        {
            reply.rendered(200, &entry.usual)?;
            return Ok(None);
        }
        self.respond_unusual(head, path, reply)
    }

    fn respond_unusual(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<FileBody>>, Error> {
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
                refuse(
                    (405, reason),
                    &[ALLOW],
                    ErrorFormat::of(head.headers),
                    reply,
                )?;
                return Ok(None);
            }
        }
        let path = without_empty_segments(path);
        match self.find(head, &path, reply) {
            Ok(entry) => self.respond_with(&path, &entry, head, reply),
            Err(missing) => self.respond_without(missing, &path, head, reply),
        }
    }

    fn respond_with(
        &self,
        path: &[u8],
        entry: &Rc<Entry>,
        head: &RequestHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<FileBody>>, Error> {
        match &self.forms {
            None => respond_with_entry(entry, Varies::No, head, reply),
            Some(forms) => forms.respond(Some((&self.cache, path)), entry, head, reply),
        }
    }

    /// Responds without a file: with a directory listing, the fallback file, or an error.
    fn respond_without(
        &self,
        missing: Missing,
        path: &[u8],
        head: &RequestHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<FileBody>>, Error> {
        let core = &reply.worker.core;
        if missing == Missing::NoIndex && self.listing {
            let above = match path.is_empty() {
                true => ParentLink::Nothing,
                false => ParentLink::Directory,
            };
            let is_wanted = |name: &[u8]| self.hidden || !name.starts_with(b".");
            match self.cache.list(path, is_wanted) {
                Ok(directory) => listing::respond(directory, above, head, reply)?,
                Err(missing) => refuse_missing(missing, head, reply)?,
            }
            return Ok(None);
        }
        if missing.is_nothing_found()
            && let Some(path) = &self.fallback
            && let Ok(entry) = self.cache.find(path, core)
        {
            return self.respond_with(path, &entry, head, reply);
        }
        refuse_missing(missing, head, reply)?;
        Ok(None)
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
        // The route's prefix without its trailing slash means the root directory.
        if path.is_empty() && !head.path.ends_with('/') {
            return Err(Missing::Directory);
        }
        self.cache.find(path, &reply.worker.core)
    }
}

/// Removes leading and repeated slashes, which the kernel ignores, so that each file has one name in the cache.
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

/// The rest of a path after a prefix without trailing slash can be one: `/p` of `/p..`.
fn is_dot_segment(segment: &[u8]) -> bool {
    segment == b"." || segment == b".."
}

/// Whether a segment starts with a dot. `.well-known` at the top is served (RFC 8615): ACME challenges are there.
fn is_hidden(path: &[u8]) -> bool {
    let visible = path.strip_prefix(b".well-known/").unwrap_or(path);
    visible
        .split(|&byte| byte == b'/')
        .any(|segment| segment.starts_with(b"."))
}

/// Writes the error response for a missing file.
fn refuse_missing(
    missing: Missing,
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let worker = reply.worker;
    let form = ErrorFormat::of(head.headers);
    let log = |why: &dyn std::fmt::Display| {
        let path = head.path;
        worker
            .log
            .failure(&worker.core, format_args!("the file for {path}: {why}"));
    };
    match missing {
        Missing::NotFound => refuse((404, ""), &[], form, reply),
        Missing::Outside => {
            log(&"a symbolic link leads out of the served directory");
            refuse((404, ""), &[], form, reply)
        }
        Missing::Directory => {
            let location = with_slash(head);
            if location.len() > LOCATION_MAX {
                let reason = "the path is too long to be redirected";
                return refuse((414, reason), &[], form, reply);
            }
            refuse((301, ""), &[("Location", &location)], form, reply)
        }
        Missing::NoIndex => {
            let reason = "this directory has no index file, and listing is off";
            refuse((403, reason), &[], form, reply)
        }
        Missing::Forbidden(error) => {
            let path = head.path;
            let what = format_args!(
                "the file for {path} is 403: {error}; let the user of this process read it and enter its directories"
            );
            worker.log.persistent_failure(&worker.core, path, what);
            refuse((403, ""), &[], form, reply)
        }
        Missing::Busy(error) => {
            let what_to_do = match error.is_out_of_descriptors() {
                true => "; raise the limit on open files (ulimit -n)",
                false => "",
            };
            log(&format_args!("{error}{what_to_do}"));
            refuse((503, ""), &[("Retry-After", "1")], form, reply)
        }
        Missing::Broken(error) => {
            log(&error);
            refuse((500, "the file cannot be read"), &[], form, reply)
        }
    }
}

/// Percent-encoding makes a backslash three times as long; with the rest of a head this fits `HEAD_BYTES_MAX`.
const LOCATION_MAX: usize = 10 * 1024;

/// The request's path with a trailing slash. Two slashes (or backslashes, which browsers treat alike) at the start
/// would name another host.
fn with_slash(head: &RequestHead<'_, '_>) -> String {
    let path = head.path.trim_start_matches('/').replace('\\', "%5C");
    match head.query {
        Some(query) => format!("/{path}/?{query}"),
        None => format!("/{path}/"),
    }
}

#[cfg(test)]
mod tests;
