//! Access to files below a root; symbolic links cannot lead out of it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::Error;
use crate::limits::{FILE_BYTES_MAX, OPEN_TRIES};

/// Opens a path with `root` as the root directory: links and `..` stay below it.
pub(crate) fn open_below(root: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let relative = match path.trim_start_matches('/') {
        "" => ".",
        relative => relative,
    };
    let open = || rustix::fs::openat2(root, relative, flags, Mode::empty(), ResolveFlags::IN_ROOT);
    let mut outcome = open();
    for _ in 1..OPEN_TRIES {
        if !matches!(outcome, Err(rustix::io::Errno::AGAIN)) {
            break;
        }
        thread::yield_now();
        outcome = open();
    }
    match outcome {
        // Linux before 5.6, or a seccomp filter without openat2. On a real machine links are harmless.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            Ok(rustix::fs::openat(root, relative, flags, Mode::empty())?)
        }
        outcome => Ok(outcome?),
    }
}

/// Resolves a path below a root for writing, with links resolved as if `root` were the root directory. Missing
/// components are appended to the existing ones. The last component is not resolved and may be a link.
pub(crate) fn resolve_below(root: &Path, path: &str) -> Result<PathBuf, Error> {
    let place = root.join(path.trim_start_matches('/'));
    if root == Path::new("/") {
        return Ok(place);
    }
    let failed = |error: io::Error| Error::Read(place.clone(), error);
    let top = open_root(root).map_err(failed)?;
    let bounds = real_path(&top).map_err(failed)?;
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (mut real, mut known) = (bounds.clone(), String::new());
    for part in above.split('/').filter(|part| !part.is_empty()) {
        known = format!("{known}/{part}");
        let directory = open_below(&top, &known, OFlags::PATH | OFlags::DIRECTORY);
        let found = directory.and_then(|directory| real_path(&directory));
        let next = match found {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            // Missing, or a dangling link.
            Err(_) => Some(real.join(part)).filter(|next| next.symlink_metadata().is_err()),
            // Only an old kernel can leave the root.
            Ok(found) => Some(found).filter(|found| found.starts_with(&bounds)),
        };
        let Some(next) = next else {
            return Err(Error::Request(format!(
                "{} follows a symbolic link to a target that does not exist below {}: nothing is written there",
                place.display(),
                root.display()
            )));
        };
        real = next;
    }
    Ok(real.join(name))
}

pub(crate) fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, root, flags, Mode::empty())?)
}

/// Path of an open directory.
fn real_path(directory: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// Target of a symbolic link. The directories above it may be links, but must not lead out of the root.
pub(crate) fn link_below(root: &OwnedFd, path: &str) -> io::Result<String> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let above = open_below(root, above, OFlags::PATH | OFlags::DIRECTORY)?;
    let target = rustix::fs::readlinkat(&above, name, Vec::new())?;
    Ok(target.to_string_lossy().into_owned())
}

pub(crate) fn read_below(root: &OwnedFd, path: &str) -> io::Result<String> {
    // Does not block on a pipe in place of a file.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    read_bounded(File::from(open_below(root, path, flags)?), FILE_BYTES_MAX)
}

pub(super) fn read_bounded(file: File, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {bytes_max} bytes"),
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn names_in(directory: OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}
