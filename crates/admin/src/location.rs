//! Default sockets of admin interfaces: one per process, in a directory that only its user may enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{env, process};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Default directory of this user: `/run/onrush` for root, `/run/onrush-UID` for others if root has created it for
/// them, otherwise `$XDG_RUNTIME_DIR/onrush`, otherwise `/tmp/onrush-UID`.
pub fn directory() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return "/run/onrush".into();
    }
    let made_by_root = user_directory(user.as_raw());
    if is_own(&made_by_root, user.as_raw()) {
        return made_by_root;
    }
    own_directory(user.as_raw())
}

/// Directory that root creates for a user.
pub fn user_directory(user: u32) -> PathBuf {
    format!("/run/onrush-{user}").into()
}

/// Directory that a user can create without root.
fn own_directory(user: u32) -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("onrush"),
        None => format!("/tmp/onrush-{user}").into(),
    }
}

/// Directories in which this user may find sockets. For root these include the directories it created for other users.
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

/// Socket path of this process. Creates the directory if necessary, and removes sockets of processes that no longer
/// exist.
///
/// # Errors
/// If the directory cannot be created, or does not belong to this user.
pub fn own_socket() -> io::Result<PathBuf> {
    let directory = directory();
    ensure_private(&directory)?;
    Ok(prepare_socket(&directory))
}

/// Like [`own_socket`], in the directory of another user to which this process is about to switch. Only root can
/// do that.
///
/// # Errors
/// If the directory cannot be created, or does not belong to that user.
pub fn own_socket_as(user: u32, group: u32) -> io::Result<PathBuf> {
    let directory = user_directory(user);
    match DirBuilder::new().mode(0o700).create(&directory) {
        Ok(()) => std::os::unix::fs::lchown(&directory, Some(user), Some(group))?,
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    if !is_own(&directory, user) {
        return Err(io::Error::other(format!(
            "the directory does not belong to user {user} alone: expected that owner and mode 0700"
        )));
    }
    Ok(prepare_socket(&directory))
}

/// Removes stale sockets and returns the socket path of this process.
fn prepare_socket(directory: &Path) -> PathBuf {
    remove_stale_sockets(directory);
    directory.join(format!("{}.sock", process::id()))
}

/// Whether the path is a directory of this user, closed to others, and not a symbolic link.
fn is_own(directory: &Path, user: u32) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o077 == 0
    })
}

/// Removes sockets of processes that no longer exist. A refused connection does not prove this: a new socket also
/// refuses connections between bind and listen.
fn remove_stale_sockets(directory: &Path) {
    for (process, path) in sockets(directory) {
        let connected = UnixStream::connect(&path);
        let is_refused =
            connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_refused && !process_exists(process) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a process with this ID exists.
fn process_exists(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

/// Process IDs and sockets of the servers that accept connections, sorted.
pub fn live_sockets() -> Vec<(u32, PathBuf)> {
    let directories = directories();
    let there = directories.iter().flat_map(|directory| sockets(directory));
    let is_live = |(_, path): &(u32, PathBuf)| UnixStream::connect(path).is_ok();
    let mut live: Vec<_> = there.filter(is_live).collect();
    live.sort_unstable();
    live
}

/// Socket of the process with this ID.
pub fn socket_of(process: u32) -> PathBuf {
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

/// Creates a directory with mode 0700, or checks that an existing one belongs to this user and restricts its mode.
fn ensure_private(directory: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(directory);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    // Does not follow links: everybody can write to /tmp.
    let metadata = fs::symlink_metadata(directory)?;
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != user {
        return Err(io::Error::other(
            "the directory belongs to another user, or is not a directory",
        ));
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
    fn socket_directory_is_made_private_and_links_are_refused() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("onrush");
        ensure_private(&path).expect("it can be made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        ensure_private(&path).expect("it is there");
        let mode = fs::symlink_metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        let link = base.path().join("link");
        symlink(&path, &link).expect("it is free");
        ensure_private(&link).expect_err("a link may be anybody's");
        ensure_private(&base.path().join("no/such")).expect_err("its parent is missing");
    }

    #[test]
    fn sockets_are_found_by_process_id() {
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
    fn only_stale_sockets_are_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let mut child = process::Command::new("true").spawn().expect("it is there");
        let gone = child.id();
        child.wait().expect("it ends");
        let path = |process: u32| base.path().join(format!("{process}.sock"));
        // One socket of this process, bound but not listening, and one of a process that has ended.
        for process in [process::id(), gone] {
            let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
            let address = SocketAddrUnix::new(path(process)).expect("it is short");
            rustix::net::bind(socket.expect("a socket"), &address).expect("it is free");
        }
        remove_stale_sockets(base.path());
        assert!(path(process::id()).exists());
        assert!(!path(gone).exists());
    }
}
