//! Files that were asked for lately: opened, judged and rendered once, and looked at again once a second.
//!
//! What is remembered are files that exist, each under its one normalized path; so clients can fill the cache only with
//! what there is to serve. What does not exist is looked for each time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::{Rc, Weak};

use onrush_engine::{Core, Directory, FileKind, Instant, Root};
use onrush_http::encoding::Coding;

use super::codings::Codings;
use super::entry::{Content, Entry, Found};
use super::missing::Missing;
use crate::limits::{FILE_CHECK, FILE_IDLE, FILES_MAX, FILES_OPEN_MAX, LISTING_ENTRIES_MAX};
use crate::observe::work::UPKEEP;
use crate::routing::media::media_type;

/// A root directory and what is known of its files.
pub(crate) struct Cache {
    root: RefCell<Root>,
    /// File names to try for a directory, in order.
    index: Vec<String>,
    /// Path beneath the root -> file. A directory's path ends with a slash, or is empty, and stands for its index.
    files: RefCell<HashMap<Box<[u8]>, Rc<Entry>, PathHash>>,
    /// Invariant: how many of `files` hold a descriptor.
    open: Cell<usize>,
    /// As many as that at most.
    open_max: Cell<usize>,
    /// When room was last made.
    room_made: Cell<Instant>,
    /// Whether the task that forgets idle files runs.
    forgetting: Cell<bool>,
    /// Where paths of siblings are put together.
    path: RefCell<Vec<u8>>,
}

impl Cache {
    pub(crate) fn new(root: Root, index: &[String]) -> Rc<Self> {
        Rc::new(Self {
            root: RefCell::new(root),
            index: index.to_vec(),
            files: RefCell::new(HashMap::with_hasher(PathHash::new())),
            open: Cell::new(0),
            open_max: Cell::new(FILES_OPEN_MAX),
            room_made: Cell::default(),
            forgetting: Cell::new(false),
            path: RefCell::default(),
        })
    }

    /// The file at `path` when it was looked at within the last second: no system call, no allocation.
    #[inline]
    pub(crate) fn fresh(&self, path: &[u8], now: Instant) -> Option<Rc<Entry>> {
        let files = self.files.borrow();
        let entry = files.get(path)?;
        if now.since(entry.checked.get()) >= FILE_CHECK {
            return None;
        }
        entry.used.set(now);
        Some(Rc::clone(entry))
    }

    /// The file at `path`, which is normalized, has no empty segments and begins without a slash.
    pub(crate) fn find(self: &Rc<Self>, path: &[u8], core: &Core) -> Result<Rc<Entry>, Missing> {
        if let Some(entry) = self.fresh(path, core.now()) {
            match &entry.content {
                Content::Held => return Ok(entry),
                // Its length is about to be promised, so it is worth a look: a cut-off response would be the alternative.
                Content::Open(file) if file.metadata_now() == Ok(entry.metadata) => {
                    return Ok(entry);
                }
                Content::Open(_) => {}
            }
        }
        let found = self.open_or_make_room(path);
        let known = self.files.borrow().get(path).cloned();
        let found = match found {
            Ok(found) => found,
            Err(missing) => {
                if known.is_some() {
                    self.forget(path);
                }
                return Err(missing);
            }
        };
        if let Some(entry) = known.filter(|entry| entry.is_still(&found)) {
            entry.checked.set(core.now());
            entry.used.set(core.now());
            return Ok(entry);
        }
        self.forget(path);
        let (entry, consistent) = Entry::load(found, core).map_err(Missing::of_reading)?;
        let entry = Rc::new(entry);
        if consistent {
            self.keep(path, &entry, core);
        }
        Ok(entry)
    }

    /// What lies in the directory at `path`, of which names are `wanted`.
    pub(super) fn list(
        &self,
        path: &[u8],
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Directory, Missing> {
        let root = self.root.borrow();
        let listed = root.list_beneath(path, LISTING_ENTRIES_MAX, wanted);
        listed.map_err(Missing::of)
    }

    pub(super) fn keep_open(&self, max: usize) {
        self.open_max.set(max.min(FILES_OPEN_MAX));
    }

    pub(super) fn give_up_open(&self) -> bool {
        let has_any = self.open.get() > 0;
        self.forget_where(|entry| matches!(entry.content, Content::Open(_)));
        has_any
    }

    fn open_or_make_room(&self, path: &[u8]) -> Result<Found, Missing> {
        self.renew_root();
        match self.open(path) {
            Err(Missing::Busy(error)) if error.is_out_of_descriptors() && self.give_up_open() => {
                self.open(path)
            }
            found => found,
        }
    }

    /// Follows the root's path to where it leads by now; everything known belongs to where it led before.
    fn renew_root(&self) {
        let renewed = self.root.borrow().renewed();
        if let Some(root) = renewed {
            self.root.replace(root);
            self.forget_where(|_| true);
        }
    }

    /// Opens the file at `path`, or the index file of the directory there, and says its media type.
    fn open(&self, path: &[u8]) -> Result<Found, Missing> {
        if !path.is_empty() && !path.ends_with(b"/") {
            let file = self.root.borrow().open_beneath(path).map_err(Missing::of)?;
            return match file.metadata().kind {
                FileKind::Regular => Ok(Found {
                    file,
                    media: media_type(path),
                    index: None,
                }),
                FileKind::Directory => Err(Missing::Directory),
                FileKind::Other => Err(Missing::NotFound),
            };
        }
        for (at, name) in self.index.iter().enumerate() {
            let path = [path, name.as_bytes()].concat();
            match self.root.borrow().open_beneath(&path) {
                Ok(file) if file.metadata().kind == FileKind::Regular => {
                    return Ok(Found {
                        file,
                        media: media_type(&path),
                        index: Some(at),
                    });
                }
                Ok(_) => {}
                Err(error) => match Missing::of(error) {
                    Missing::NotFound => {}
                    missing => return Err(missing),
                },
            }
        }
        // The trailing slash makes the kernel insist on a directory.
        self.root.borrow().open_beneath(path).map_err(Missing::of)?;
        Err(Missing::NoIndex)
    }

    /// The codings in which siblings of the file at `path` are there, of those that are looked for. Looked at once a
    /// second, as the file itself is.
    pub(super) fn siblings(
        self: &Rc<Self>,
        (path, entry): (&[u8], &Entry),
        looked_for: &[Coding],
        core: &Core,
    ) -> Codings {
        let (there, checked) = entry.siblings.get();
        if checked.is_some_and(|checked| core.now().since(checked) < FILE_CHECK) {
            return there;
        }
        let mut there = Codings::default();
        for &coding in looked_for {
            if self.sibling((path, entry), coding, core).is_some() {
                there.insert(coding);
            }
        }
        entry.siblings.set((there, Some(core.now())));
        there
    }

    /// The sibling in `coding` of the file at `path`, if there is one that is no older.
    pub(super) fn sibling(
        self: &Rc<Self>,
        (path, entry): (&[u8], &Entry),
        coding: Coding,
        core: &Core,
    ) -> Option<Rc<Entry>> {
        let index = entry.index.map_or("", |at| &self.index[at]);
        let extension = match coding {
            Coding::Zstd => ".zst",
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        };
        let mut sibling = self.path.take();
        sibling.clear();
        for part in [path, index.as_bytes(), extension.as_bytes()] {
            sibling.extend_from_slice(part);
        }
        let found = self.find(&sibling, core);
        self.path.replace(sibling);
        found
            .ok()
            .filter(|sibling| sibling.modified_time() >= entry.modified_time())
    }

    /// Remembers a file if there is room for it.
    fn keep(self: &Rc<Self>, path: &[u8], entry: &Rc<Entry>, core: &Core) {
        let is_open = matches!(entry.content, Content::Open(_));
        let has_room = || {
            self.files.borrow().len() < FILES_MAX
                && (!is_open || self.open.get() < self.open_max.get())
        };
        // Looking for room costs a walk over all files, so it is done once a second at most; a set of files larger than
        // the cache is then served in part from it, instead of throwing everything out in turn.
        let now = core.now();
        if !has_room() && now.since(self.room_made.get()) >= FILE_CHECK {
            self.room_made.set(now);
            self.forget_where(|entry| now.since(entry.used.get()) >= FILE_CHECK);
        }
        if !has_room() {
            return;
        }
        self.open.set(self.open.get() + usize::from(is_open));
        self.files
            .borrow_mut()
            .insert(path.into(), Rc::clone(entry));
        if !self.forgetting.replace(true) {
            core.spawn_as(UPKEEP, forget_idle(Rc::downgrade(self), core.clone()));
        }
    }

    fn forget(&self, path: &[u8]) {
        let forgotten = self.files.borrow_mut().remove(path);
        if forgotten.is_some_and(|entry| matches!(entry.content, Content::Open(_))) {
            self.open.set(self.open.get() - 1);
        }
    }

    fn forget_where(&self, unwanted: impl Fn(&Entry) -> bool) {
        let mut files = self.files.borrow_mut();
        files.retain(|_, entry| !unwanted(entry));
        let open = files
            .values()
            .filter(|entry| matches!(entry.content, Content::Open(_)));
        self.open.set(open.count());
    }
}

/// Removes files without recent requests, until the cache is empty. Does not own the cache, so the files of an earlier configuration
/// are closed with its last request.
async fn forget_idle(cache: Weak<Cache>, core: Core) {
    loop {
        core.sleep_unless_stopping(FILE_IDLE).await;
        let Some(cache) = cache.upgrade() else {
            return;
        };
        let now = core.now();
        cache.forget_where(|entry| now.since(entry.used.get()) >= FILE_IDLE);
        if cache.files.borrow().is_empty() || core.is_stopping() {
            return cache.forgetting.set(false);
        }
    }
}

/// Hashes paths: eight bytes a step by a folded multiplication, 2 ns for a short path where the standard hash takes 15.
/// Keys are names of existing files only, so nobody outside can choose colliding ones; the seed is for whoever chooses
/// the files.
struct PathHash(u64);

impl PathHash {
    fn new() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for PathHash {
    type Hasher = PathHasher;

    fn build_hasher(&self) -> PathHasher {
        PathHasher(self.0)
    }
}

struct PathHasher(u64);

impl PathHasher {
    fn step(&mut self, word: u64) {
        // The odd number next to 2^64 divided by the golden ratio.
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for PathHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.step(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.step(u64::from_le_bytes(last));
    }

    fn write_usize(&mut self, length: usize) {
        self.step(length as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Cache {
        /// Files remembered, and how many of them hold a descriptor.
        pub(crate) fn counts(&self) -> (usize, usize) {
            (self.files.borrow().len(), self.open.get())
        }
    }

    #[test]
    fn paths_hash_apart() {
        let hash = PathHash::new();
        let mut seen = std::collections::HashSet::new();
        for directory in 0..20 {
            for file in 0..100 {
                let path = format!("assets/{directory}/image-{file}.png");
                assert!(seen.insert(hash.hash_one(path.as_bytes())), "{path}");
            }
        }
        let zeros = [0u8; 40];
        for length in 0..40 {
            assert!(seen.insert(hash.hash_one(&zeros[..length])), "{length}");
        }
    }
}
