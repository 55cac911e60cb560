//! Cache of recently requested files, opened and rendered, revalidated once per second.
//!
//! Only existing files are cached, each under its one normalized path, so clients cannot fill the cache with invented
//! names. Missing files are looked up on every request.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::{Rc, Weak};

use onrush_engine::{Core, Directory, FileKind, Instant, Root};
use onrush_http::encoding::Coding;

use super::codings::Codings;
use super::entry::{Content, Entry, OpenedFile};
use super::missing::Missing;
use crate::limits::{FILE_CHECK, FILE_IDLE, FILES_MAX, FILES_OPEN_MAX, LISTING_ENTRIES_MAX};
use crate::observe::work::UPKEEP;
use crate::routing::media::media_type;

/// A root directory and its cached files.
pub(crate) struct Cache {
    root: RefCell<Root>,
    /// Index file names to try for a directory, in order.
    index: Vec<String>,
    /// Path below the root -> file. The path of a directory ends with a slash or is empty, and means its index file.
    files: RefCell<HashMap<Box<[u8]>, Rc<Entry>, PathHash>>,
    /// Invariant: the number of `files` that hold a descriptor.
    open: Cell<usize>,
    open_max: Cell<usize>,
    /// When unused files were last evicted.
    room_made: Cell<Instant>,
    /// Whether the task that evicts idle files runs.
    forgetting: Cell<bool>,
    /// Buffer for building sibling paths.
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

    /// The file at `path` if it was checked within the last second. No system call, no allocation.
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

    /// The file at `path`, which is normalized, without empty segments and without a leading slash.
    pub(crate) fn find(self: &Rc<Self>, path: &[u8], core: &Core) -> Result<Rc<Entry>, Missing> {
        if let Some(entry) = self.fresh(path, core.now()) {
            match &entry.content {
                Content::Held => return Ok(entry),
                // The response will promise the file's length, so check it: a cut-off response would be worse.
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
        if let Some(entry) = known.filter(|entry| entry.is_unchanged(&found)) {
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

    /// Lists the directory at `path`, with the names that are `wanted`.
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

    fn open_or_make_room(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        self.renew_root();
        match self.open(path) {
            Err(Missing::Busy(error)) if error.is_out_of_descriptors() && self.give_up_open() => {
                self.open(path)
            }
            found => found,
        }
    }

    /// Resolves the root's path again. If it leads elsewhere, clears the cache.
    fn renew_root(&self) {
        let renewed = self.root.borrow().renewed();
        if let Some(root) = renewed {
            self.root.replace(root);
            self.forget_where(|_| true);
        }
    }

    /// Opens the file at `path`, or the index file of the directory there, and determines its media type.
    fn open(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        if !path.is_empty() && !path.ends_with(b"/") {
            let file = self.root.borrow().open_beneath(path).map_err(Missing::of)?;
            return match file.metadata().kind {
                FileKind::Regular => Ok(OpenedFile {
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
                    return Ok(OpenedFile {
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
        // The trailing slash makes the kernel require a directory.
        self.root.borrow().open_beneath(path).map_err(Missing::of)?;
        Err(Missing::NoIndex)
    }

    /// The codings in `looked_for` for which the file has a sibling. Checked once per second, like the file.
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

    /// The sibling of the file in `coding`, if it exists and is not older.
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

    /// Caches a file if there is room.
    fn keep(self: &Rc<Self>, path: &[u8], entry: &Rc<Entry>, core: &Core) {
        let is_open = matches!(entry.content, Content::Open(_));
        let has_room = || {
            self.files.borrow().len() < FILES_MAX
                && (!is_open || self.open.get() < self.open_max.get())
        };
        // Evicting walks all files, so do it once per second at most. A working set larger than the cache is then
        // partly served from it, instead of evicting everything in turn.
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

/// Evicts idle files until the cache is empty. Holds only a weak reference, so that the files of an earlier
/// configuration are closed with its last request.
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

/// Hasher for paths: eight bytes per step by a folded multiplication, 2 ns for a short path where the standard hasher
/// takes 15. Keys are names of existing files only, so clients cannot choose colliding ones; the seed protects against
/// uploaders who choose file names.
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
        // The odd number nearest to 2^64 divided by the golden ratio.
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
        /// Number of cached files, and how many of them hold a descriptor.
        pub(crate) fn counts(&self) -> (usize, usize) {
            (self.files.borrow().len(), self.open.get())
        }
    }

    #[test]
    fn path_hashes_are_distinct() {
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
