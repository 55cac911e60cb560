//! Files beneath a root directory. The kernel resolves the paths, so that opening one never leaves the root.

pub(crate) mod pipe;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, fstat, open, openat2, stat,
    statat,
};
use rustix::io::{Errno, pread};

use crate::error::{Error, Kind, Op};

/// A directory whose contents may be opened.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    /// Device and inode of the directory.
    identity: (u64, u64),
}

impl Root {
    /// Opens the directory `path`.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES` and so on, of operation [`Op::Open`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(path, flags, Mode::empty())
            .and_then(|directory| fstat(&directory).map(|stat| (directory, stat)));
        let (directory, stat) = opened.map_err(|errno| Error::os(Op::Open, errno))?;
        Ok(Self {
            directory,
            path: path.to_path_buf(),
            identity: Metadata::of(&stat).identity,
        })
    }

    /// Opens the directory that the path names now, if it is not the directory opened before: deployments swap a
    /// symbolic link.
    pub fn renewed(&self) -> Option<Self> {
        match stat(&self.path) {
            Ok(stat) if Metadata::of(&stat).identity != self.identity => {
                Self::open(&self.path).ok()
            }
            // Temporarily or permanently gone: the open directory stays in use.
            Ok(_) | Err(_) => None,
        }
    }

    /// The path with which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists the directory at `path`, unordered: files and directories, and symbolic links as their targets beneath the
    /// root. At most `max` of the entries whose names are `wanted`.
    ///
    /// # Errors
    /// As in [`Root::open_beneath`], and as in getdents64(2).
    pub fn list_beneath(
        &self,
        path: &[u8],
        max: usize,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Directory, Error> {
        let os = |errno| Error::os(Op::Open, errno);
        let mut directory = Dir::new(self.open_beneath(path)?.descriptor).map_err(os)?;
        let mut found = Directory::default();
        while let Some(entry) = directory.read() {
            let entry = entry.map_err(os)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || !wanted(name.to_bytes()) {
                continue;
            }
            if found.entries.len() == max {
                found.is_cut = true;
                break;
            }
            let parent = directory.fd().map_err(os)?;
            let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                    self.stat_beneath(&[path, b"/", name.to_bytes()].concat())
                }
                stat => stat,
            };
            // Entries that are gone by now and broken links are skipped.
            let metadata = stat.as_ref().map(Metadata::of);
            if let Ok(metadata) = metadata
                && metadata.kind != FileKind::Other
            {
                found.entries.push((name.to_bytes().to_vec(), metadata));
            }
        }
        Ok(found)
    }

    fn stat_beneath(&self, path: &[u8]) -> Result<Stat, Errno> {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        fstat(openat2(
            &self.directory,
            path,
            flags,
            Mode::empty(),
            resolve,
        )?)
    }

    /// Opens the file or directory at `path` for reading. `..` and symbolic links are followed only while they stay
    /// beneath the root (openat2(2), RESOLVE_BENEATH); magic links, such as in /proc, are never followed.
    ///
    /// # Errors
    /// `EXDEV` when the path would leave the root, `ENOENT`, `EACCES`, `ELOOP` and so on.
    pub fn open_beneath(&self, path: &[u8]) -> Result<File, Error> {
        let path = if path.is_empty() { b"." } else { path };
        // NONBLOCK: opening a named pipe must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        // EAGAIN: a rename happened during the walk and the kernel could not rule out an escape.
        for _ in 0..8 {
            match openat2(&self.directory, path, flags, Mode::empty(), resolve) {
                Ok(descriptor) => return File::of(descriptor),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(Error::os(Op::Open, errno)),
            }
        }
        Err(Error::os(Op::Open, Errno::AGAIN))
    }
}

/// Contents of a directory.
#[derive(Debug, Default)]
pub struct Directory {
    /// Names and metadata of the entries.
    pub entries: Vec<(Vec<u8>, Metadata)>,
    /// Whether there are more entries than the limit.
    pub is_cut: bool,
}

/// Kind of an opened file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A regular file, whose bytes can be sent.
    Regular,
    /// A directory.
    Directory,
    /// A device, pipe or socket.
    Other,
}

/// Metadata of a file, from fstat(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Regular file, directory or other.
    pub kind: FileKind,
    /// Length in bytes.
    pub length: u64,
    /// Last modification, seconds since 1970.
    pub modified_seconds: i64,
    /// Nanoseconds of the last modification.
    pub modified_nanoseconds: u32,
    /// Device and inode, which identify the file until it is deleted.
    pub identity: (u64, u64),
    /// Last change of content or attributes in seconds and nanoseconds; unlike the modification time it cannot be set.
    pub changed: (i64, u32),
}

impl Metadata {
    fn of(stat: &Stat) -> Self {
        let kind = match stat.st_mode & RawMode::from(libc::S_IFMT) {
            libc::S_IFREG => FileKind::Regular,
            libc::S_IFDIR => FileKind::Directory,
            _ => FileKind::Other,
        };
        Self {
            kind,
            length: stat.st_size as u64,
            modified_seconds: stat.st_mtime,
            modified_nanoseconds: stat.st_mtime_nsec as u32,
            identity: (stat.st_dev, stat.st_ino),
            changed: (stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }
}

/// An open file with its metadata at the time of opening.
#[derive(Debug)]
pub struct File {
    pub(crate) descriptor: OwnedFd,
    metadata: Metadata,
}

impl File {
    fn of(descriptor: OwnedFd) -> Result<Self, Error> {
        let stat = fstat(&descriptor).map_err(|errno| Error::os(Op::Open, errno))?;
        Ok(Self {
            descriptor,
            metadata: Metadata::of(&stat),
        })
    }

    /// Opens the file at `path` for reading, following all symbolic links. Not for paths that a client influences.
    ///
    /// # Errors
    /// `ENOENT`, `EACCES` and so on, of operation [`Op::Open`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = open(path, flags, Mode::empty());
        File::of(opened.map_err(|errno| Error::os(Op::Open, errno))?)
    }

    /// Metadata at the time of opening.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Reads the metadata again: the file may have changed since it was opened.
    ///
    /// # Errors
    /// As in fstat(2), of operation [`Op::Read`].
    pub fn metadata_now(&self) -> Result<Metadata, Error> {
        let stat = fstat(&self.descriptor).map_err(|errno| Error::os(Op::Read, errno))?;
        Ok(Metadata::of(&stat))
    }

    /// Reads from `offset` on into `bytes` and returns the number of bytes; 0 at the end.
    ///
    /// # Errors
    /// As in pread(2).
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        loop {
            match pread(&self.descriptor, &mut *bytes, offset) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::os(Op::Read, errno)),
            }
        }
    }

    /// Fills `bytes` with the file's content from `offset` on.
    ///
    /// # Errors
    /// [`Kind::FileTooShort`] when the file ends before that.
    pub fn read_exact(&self, mut offset: u64, mut bytes: &mut [u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.read(offset, bytes)? {
                0 => return Err(Error::new(Op::Read, Kind::FileTooShort)),
                count => {
                    offset += count as u64;
                    bytes = &mut bytes[count..];
                }
            }
        }
        Ok(())
    }
}
