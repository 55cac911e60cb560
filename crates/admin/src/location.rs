//! Where admin interfaces are that nobody has placed: a Unix socket for each process, in a directory that belongs to its
//! user and that no other may enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{env, process};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Where this user's are: `/run/onrush` of root, `/run/onrush-UID` of others where root has made it for them,
/// `$XDG_RUNTIME_DIR/onrush` without that, `/tmp/onrush-UID` without either.
pub fn directory() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return "/run/onrush".into();
    }
    let made_by_root = of_user(user.as_raw());
    if is_own(&made_by_root, user.as_raw()) {
        return made_by_root;
    }
    own_directory(user.as_raw())
}

/// That of a user, which only root can have made.
pub fn of_user(user: u32) -> PathBuf {
    format!("/run/onrush-{user}").into()
}

/// That which a user can make without root.
fn own_directory(user: u32) -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("onrush"),
        None => format!("/tmp/onrush-{user}").into(),
    }
}

/// All directories in which this user finds sockets: root those of everybody whom it has made one.
pub fn directories() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    if !user.is_root() {
        let mut both = vec![directory(), own_directory(user.as_raw())];
        both.dedup();
        return both;
    }
    let mut all = vec![directory()];
    let entries = fs::read_dir("/run").into_iter().flatten().flatten();
    let made = entries.filter(|entry| {
        let name = entry.file_name();
        let user = name.to_str().and_then(|name| name.strip_prefix("onrush-"));
        user.is_some_and(|user| user.parse::<u32>().is_ok())
    });
    all.extend(made.map(|entry| entry.path()));
    all
}

/// That of this process, in a directory that is made where it is not there. What processes have left behind that are gone
/// is removed.
///
/// # Errors
/// When there can be no such directory, or it is not this user's own.
pub fn of_this_process() -> io::Result<PathBuf> {
    let directory = directory();
    own(&directory)?;
    Ok(free(&directory))
}

/// The same in a directory that belongs to another user, which this process is about to be. Only root can do that.
///
/// # Errors
/// When there can be no such directory, or it is somebody else's.
pub fn of_this_process_as(user: u32, group: u32) -> io::Result<PathBuf> {
    let directory = of_user(user);
    match DirBuilder::new().mode(0o700).create(&directory) {
        Ok(()) => std::os::unix::fs::lchown(&directory, Some(user), Some(group))?,
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    if !is_own(&directory, user) {
        return Err(io::Error::other(format!(
            "it belongs to somebody else than user {user}, or others may enter it"
        )));
    }
    Ok(free(&directory))
}

/// The path of this process's socket.
fn free(directory: &Path) -> PathBuf {
    sweep(directory);
    directory.join(format!("{}.sock", process::id()))
}

/// Whether it is a directory of this user that nobody else may enter.
fn is_own(directory: &Path, user: u32) -> bool {
    // Not through a link.
    fs::symlink_metadata(directory).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o077 == 0
    })
}

/// Removes what processes that are gone have left behind. One that has just made its socket refuses connections, too, until
/// it listens.
fn sweep(directory: &Path) {
    for (process, path) in sockets(directory) {
        let connected = UnixStream::connect(&path);
        let is_refused =
            connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_refused && !is_there(process) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether there is a process with this number.
fn is_there(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

/// Those of the processes that are there, by their numbers.
pub fn all() -> Vec<(u32, PathBuf)> {
    let directories = directories();
    let there = directories.iter().flat_map(|directory| sockets(directory));
    let is_live = |(_, path): &(u32, PathBuf)| UnixStream::connect(path).is_ok();
    let mut live: Vec<_> = there.filter(is_live).collect();
    live.sort_unstable();
    live
}

/// That of the process with this number.
pub fn of(process: u32) -> PathBuf {
    let name = format!("{process}.sock");
    let mut paths = directories()
        .into_iter()
        .map(|directory| directory.join(&name));
    let first = directory().join(&name);
    paths.find(|path| path.exists()).unwrap_or(first)
}

fn sockets(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let socket = |entry: fs::DirEntry| {
        let path = entry.path();
        let is_one = path
            .extension()
            .is_some_and(|extension| extension == "sock");
        let process = path.file_stem()?.to_str()?.parse().ok()?;
        is_one.then_some((process, path))
    };
    entries.filter_map(socket).collect()
}

/// Makes a directory of this user's own.
fn own(directory: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(directory);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    // Not through a link: /tmp is everybody's.
    let metadata = fs::symlink_metadata(directory)?;
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != user {
        return Err(io::Error::other("it belongs to somebody else"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_is_ones_own_or_not_used() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("onrush");
        own(&path).expect("it can be made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        own(&path).expect("it is there");
        let mode = fs::symlink_metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        let link = base.path().join("link");
        symlink(&path, &link).expect("it is free");
        own(&link).expect_err("a link may be anybody's");
        own(&base.path().join("no/such")).expect_err("its parent is missing");
    }

    #[test]
    fn sockets_are_told_by_their_numbers() {
        let base = tempfile::tempdir().expect("a directory");
        for name in ["7.sock", "x.sock", "8", "9.sock"] {
            fs::write(base.path().join(name), "").expect("it is ours");
        }
        let mut found: Vec<u32> = sockets(base.path())
            .into_iter()
            .map(|(process, _)| process)
            .collect();
        found.sort_unstable();
        assert_eq!(found, [7, 9]);
    }

    #[test]
    fn only_what_processes_that_are_gone_have_left_is_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let mut child = process::Command::new("true").spawn().expect("it is there");
        let gone = child.id();
        child.wait().expect("it ends");
        let path = |process: u32| base.path().join(format!("{process}.sock"));
        // Of ours, which does not listen yet, and of the one that is gone.
        for process in [process::id(), gone] {
            let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
            let address = SocketAddrUnix::new(path(process)).expect("it is short");
            rustix::net::bind(socket.expect("a socket"), &address).expect("it is free");
        }
        sweep(base.path());
        assert!(path(process::id()).exists());
        assert!(!path(gone).exists());
    }
}
