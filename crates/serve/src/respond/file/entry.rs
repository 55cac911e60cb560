//! A file ready to be sent: opened, read if it is small, and its 200 response rendered.

use std::cell::{Cell, OnceCell};

use onrush_engine::{Core, Error, File, Instant, Metadata};
use onrush_http::date::{self, DATE_BYTES};
use onrush_http::encoding::Coding;

use super::codings::Codings;
use super::condition::Validators;
use crate::exchange::rendered::Rendered;
use crate::exchange::reply::fields::{BodyLength, Fields};
use crate::limits::{FILE_IN_MEMORY_MAX, FILE_READS_MAX, FILE_SETTLED_SECONDS};

pub(crate) struct Entry {
    pub(crate) content: Content,
    pub(crate) metadata: Metadata,
    pub(crate) media: String,
    etag: String,
    /// Seconds since 1970, from [`modified`].
    modified: Option<u64>,
    last_modified: Option<[u8; DATE_BYTES]>,
    /// The head of the 200 response, and its body if the content is held.
    pub(crate) usual: Rendered,
    /// Whether every change of the file is visible in its metadata: see [`FILE_SETTLED_SECONDS`].
    settled: bool,
    /// Position among the directory's index files, if it is one of them.
    pub(super) index: Option<usize>,
    /// Codings of existing precompressed siblings, and when they were looked for.
    pub(super) siblings: Cell<(Codings, Option<Instant>)>,
    /// The rendered response with this file as the precompressed sibling of another.
    as_sibling: OnceCell<Box<Rendered>>,
    /// Rendered responses with encoded content; `None` for a coding that does not make it shorter.
    encoded: [OnceCell<Option<Box<Rendered>>>; 3],
    pub(super) checked: Cell<Instant>,
    pub(super) used: Cell<Instant>,
}

/// A file just opened.
pub(super) struct OpenedFile {
    pub(super) file: File,
    pub(super) media: String,
    /// See [`Entry`].
    pub(super) index: Option<usize>,
}

/// Location of the content.
pub(crate) enum Content {
    /// In memory, in `usual`.
    Held,
    Open(File),
}

impl Entry {
    /// Reads the file if it is small and renders its response. Also returns whether the file stayed unchanged
    /// meanwhile.
    pub(super) fn load(found: OpenedFile, core: &Core) -> Result<(Entry, bool), Error> {
        let OpenedFile { file, media, index } = found;
        let mut metadata = *file.metadata();
        let mut content = Vec::new();
        let mut consistent = true;
        for attempt in 1..=FILE_READS_MAX {
            if metadata.length > FILE_IN_MEMORY_MAX as u64 {
                break;
            }
            content = read(&file, metadata.length)?;
            let after = file.metadata_now()?;
            consistent = metadata == after && metadata.length == content.len() as u64;
            if consistent || attempt == FILE_READS_MAX {
                break;
            }
            metadata = after;
        }
        let is_held = metadata.length <= FILE_IN_MEMORY_MAX as u64;
        if is_held {
            // Send what was read, even if the file has changed since.
            metadata.length = content.len() as u64;
        } else {
            content.clear();
            consistent = true;
        }
        let seconds = core.unix_seconds();
        let modified = modified(&metadata, seconds);
        let etag = etag(&metadata);
        let last_modified = modified.map(date::format);
        let fields = |head: &mut Fields<'_>| {
            write_representation(head, &media, metadata.length);
            write_validators(head, &etag, last_modified.as_ref());
        };
        let usual = Rendered::new(200, fields, &content);
        let settled = u64::try_from(metadata.changed.0)
            .is_ok_and(|changed| changed.saturating_add(FILE_SETTLED_SECONDS) <= seconds);
        let entry = Entry {
            content: if is_held {
                Content::Held
            } else {
                Content::Open(file)
            },
            metadata,
            media,
            etag,
            modified,
            last_modified,
            usual,
            settled,
            index,
            siblings: Cell::default(),
            as_sibling: OnceCell::new(),
            encoded: Default::default(),
            checked: Cell::new(core.now()),
            used: Cell::new(core.now()),
        };
        Ok((entry, consistent))
    }

    /// Whether the file just opened at the same path is unchanged.
    pub(super) fn is_unchanged(&self, found: &OpenedFile) -> bool {
        self.settled
            && self.metadata == *found.file.metadata()
            && self.media == found.media
            && self.index == found.index
    }

    /// The response with this file as another file's sibling, rendered on first use.
    pub(super) fn rendered_as_sibling(&self, render: impl FnOnce() -> Box<Rendered>) -> &Rendered {
        self.as_sibling.get_or_init(render)
    }

    /// The response with its content in `coding`, rendered on first use; `None` if that does not make it shorter.
    pub(super) fn rendered_encoded(
        &self,
        coding: Coding,
        render: impl FnOnce() -> Option<Box<Rendered>>,
    ) -> Option<&Rendered> {
        let place = match coding {
            Coding::Zstd => 0,
            Coding::Brotli => 1,
            Coding::Gzip => 2,
        };
        self.encoded[place].get_or_init(render).as_deref()
    }

    pub(super) fn modified_time(&self) -> (i64, u32) {
        (
            self.metadata.modified_seconds,
            self.metadata.modified_nanoseconds,
        )
    }

    /// Strong, with quotes.
    pub(super) fn etag(&self) -> &str {
        &self.etag
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: &self.etag,
            modified: self.modified,
        }
    }

    pub(crate) fn write_validators(&self, head: &mut Fields<'_>) {
        write_validators(head, &self.etag, self.last_modified.as_ref());
    }

    pub(super) fn write_last_modified(&self, head: &mut Fields<'_>) {
        write_last_modified(head, self.last_modified.as_ref());
    }
}

fn read(file: &File, length: u64) -> Result<Vec<u8>, Error> {
    let mut content = vec![0; length as usize];
    let mut filled = 0;
    while filled < content.len() {
        match file.read(filled as u64, &mut content[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    content.truncate(filled);
    Ok(content)
}

fn write_representation(head: &mut Fields<'_>, media: &str, length: u64) {
    head.header("Content-Type", media.as_bytes())
        .length(BodyLength::Known(length));
}

fn write_validators(head: &mut Fields<'_>, etag: &str, last_modified: Option<&[u8; DATE_BYTES]>) {
    write_last_modified(head, last_modified);
    head.header("ETag", etag.as_bytes())
        .header("Accept-Ranges", b"bytes");
}

fn write_last_modified(head: &mut Fields<'_>, last_modified: Option<&[u8; DATE_BYTES]>) {
    if let Some(last_modified) = last_modified {
        head.header("Last-Modified", last_modified);
    }
}

/// Modification time in nanoseconds, and length. The inode is left out: it differs between servers with the same file,
/// so that conditional requests through a load balancer would fail, and it reveals details of the disk.
fn etag(metadata: &Metadata) -> String {
    let time = i128::from(metadata.modified_seconds) * 1_000_000_000
        + i128::from(metadata.modified_nanoseconds);
    format!("\"{:x}-{:x}\"", time as u64, metadata.length)
}

/// Seconds since 1970. A time in the future is replaced by `now`, the time of the response (RFC 9110 8.8.2.1), which is
/// in the past for later responses. A time before 1970 cannot be sent.
fn modified(metadata: &Metadata, now: u64) -> Option<u64> {
    let seconds = u64::try_from(metadata.modified_seconds).ok()?;
    Some(seconds.min(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::FileKind;

    #[test]
    fn etag_differs_by_version_and_future_time_is_clamped() {
        let metadata = Metadata {
            kind: FileKind::Regular,
            length: 16,
            modified_seconds: 1,
            modified_nanoseconds: 2,
            identity: (1, 2),
            changed: (5, 5),
        };
        assert_eq!(etag(&metadata), "\"3b9aca02-10\"");
        assert_eq!(modified(&metadata, 1), Some(1));
        assert_eq!(modified(&metadata, 0), Some(0));
        let ancient = Metadata {
            modified_seconds: -1,
            ..metadata
        };
        assert_eq!(modified(&ancient, 1), None);
    }
}
