//! A route that always responds with the same file. The file is read on request, like files of a directory.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use onrush_engine::{Core, Error, File, FileKind};
use onrush_http::Method;
use onrush_http::request::RequestHead;

use super::entry::{Content, Entry, OpenedFile};
use super::file_body::{FileBody, Ranges, send_ranges};
use super::missing::Missing;
use super::plain::{Varies, respond_with_entry};
use super::representation::Representations;
use super::{condition, refuse_missing};
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::BodyLength;
use crate::limits::FILE_CHECK;
use crate::routing::media::media_type;
use crate::rules::compress::CompressionRules;

/// The file on one core.
pub(crate) struct SingleFile {
    status: u16,
    path: PathBuf,
    forms: Option<Box<Representations>>,
    /// The file at the last request.
    entry: RefCell<Option<Rc<Entry>>>,
}

impl SingleFile {
    pub(crate) fn new(status: u16, path: &Path, offer: Option<Rc<CompressionRules>>) -> Self {
        Self {
            status,
            path: path.to_path_buf(),
            forms: Representations::new(&[], offer),
            entry: RefCell::default(),
        }
    }

    /// Responds with the file. Returns the rest of a large file, still to be sent.
    pub(crate) fn respond(
        &self,
        head: &RequestHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<FileBody>>, Error> {
        let entry = match self.find(&reply.worker.core) {
            Ok(entry) => entry,
            Err(missing) => {
                refuse_missing(missing, head, reply)?;
                return Ok(None);
            }
        };
        // Preconditions and ranges apply to 200 responses to GET and HEAD (RFC 9110 13.2.1, 14.2).
        if self.status != 200 || !matches!(reply.method, Method::Get | Method::Head) {
            return respond_with_status(self.status, &entry, reply);
        }
        match &self.forms {
            Some(forms) => forms.respond(None, &entry, head, reply),
            None if reply.method == Method::Get
                && reply.supports_rendered()
                && condition::is_unconditional(head.headers)
                && matches!(entry.content, Content::Held) =>
            {
                reply.rendered(200, &entry.usual)?;
                Ok(None)
            }
            None => respond_with_entry(&entry, Varies::No, head, reply),
        }
    }

    /// The current file. A held file is checked once per second, others on every request, because the response promises
    /// their length.
    pub(crate) fn find(&self, core: &Core) -> Result<Rc<Entry>, Missing> {
        let known = self.entry.borrow().clone();
        if let Some(entry) = &known
            && matches!(entry.content, Content::Held)
            && core.now().since(entry.checked.get()) < FILE_CHECK
        {
            return Ok(Rc::clone(entry));
        }
        let found = self.open().inspect_err(|_| drop(self.entry.take()))?;
        if let Some(entry) = known.filter(|entry| entry.is_unchanged(&found)) {
            entry.checked.set(core.now());
            return Ok(entry);
        }
        let (entry, is_consistent) = Entry::load(found, core).map_err(Missing::of_reading)?;
        let entry = Rc::new(entry);
        self.entry
            .replace(Some(Rc::clone(&entry)).filter(|_| is_consistent));
        Ok(entry)
    }

    fn open(&self) -> Result<OpenedFile, Missing> {
        let file = File::open(&self.path).map_err(Missing::of)?;
        match file.metadata().kind {
            FileKind::Regular => Ok(OpenedFile {
                file,
                media: media_type(self.path.as_os_str().as_encoded_bytes()),
                index: None,
            }),
            FileKind::Directory | FileKind::Other => Err(Missing::NotFound),
        }
    }
}

/// Responds with the whole file, ignoring preconditions and ranges.
fn respond_with_status(
    status: u16,
    entry: &Rc<Entry>,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    let length = entry.metadata.length;
    reply.head(status, |head| {
        head.header("Content-Type", entry.media.as_bytes())
            .length(BodyLength::Known(length));
    })?;
    send_ranges(entry, Ranges::One(0..length), reply)
}
