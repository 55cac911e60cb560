//! Writes a file named by the user.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::pipe::Pipe;
use crate::temp_file::TempFile;

/// A file to be written later. Creating an `Output` checks that the file can be written, before the work that produces
/// its content.
///
/// The file is replaced atomically: the content is written to a temporary file next to it, which is renamed at the end.
/// Until then, and if writing fails or the program is killed, the old file stays. A file is written in place where it
/// cannot be replaced: a device, a file with several hard links or another owner, a directory that is not writable.
///
/// A pipe is opened immediately, so that its reader does not see end of file before the content is written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// The path with all links resolved.
    place: PathBuf,
    how: WriteMethod,
    /// Permissions of a new file, before the umask.
    mode: u32,
}

#[derive(Debug)]
enum WriteMethod {
    /// Write a temporary file and rename it, with the permissions of the file that it replaces.
    Beside(Option<Permissions>),
    InPlace,
    Pipe(Pipe),
}

impl Output {
    /// Checks that the file at `path` can be written, without changing it. Waits up to
    /// [`PIPE_READER_WAIT_MAX`](crate::limits::PIPE_READER_WAIT_MAX) for the reader of a pipe.
    ///
    /// # Errors
    /// Returns the system's error, and an error for a directory, a socket, or a pipe without a reader.
    pub fn new(path: &Path) -> io::Result<Output> {
        // /dev/stdout leads to an open file, and replacing that file by name would not redirect the descriptor.
        let is_open = ["/dev", "/proc"]
            .iter()
            .any(|above| path.starts_with(above));
        let place = match fs::canonicalize(path) {
            Ok(place) if !is_open => place,
            _ => path.to_owned(),
        };
        let how = match fs::metadata(&place) {
            Ok(found) if found.is_dir() => {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            Ok(found) if found.file_type().is_fifo() => WriteMethod::Pipe(Pipe::open(&place)?),
            Ok(found) if found.file_type().is_socket() => {
                let what = "it is a socket: expected a file or a pipe";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            Ok(_) if is_open => WriteMethod::InPlace,
            Ok(found) => how_to_replace(&place, &found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                drop(TempFile::create(&place, OWNER)?);
                WriteMethod::Beside(None)
            }
            Err(error) => return Err(error),
        };
        Ok(Output {
            path: path.to_owned(),
            place,
            how,
            mode: EVERYBODY,
        })
    }

    /// [`Output::new`] for a directory in which others may write: refuses a symbolic link, and replaces a link that
    /// appears later instead of following it.
    ///
    /// # Errors
    /// As [`Output::new`], and an error for a link.
    pub fn new_nofollow(path: &Path) -> io::Result<Output> {
        if path.is_symlink() {
            let what = "it is a symbolic link: expected a file, or a name that is not in use";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Output::new(path)
    }

    /// Makes a new file readable by its owner alone. An existing file keeps its permissions.
    #[must_use]
    pub fn owner_only(mut self) -> Output {
        self.mode = OWNER;
        self
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether writing may block for an unbounded time: the file is a pipe or a device such as a terminal.
    pub fn may_block(&self) -> bool {
        match self.how {
            WriteMethod::Pipe(_) => true,
            WriteMethod::Beside(_) => false,
            WriteMethod::InPlace => fs::metadata(&self.place).is_ok_and(|found| !found.is_file()),
        }
    }

    /// Whether `other` is the same regular file, even under another name. Other kinds of file, such as `/dev/null`, may
    /// be written several times and never count as the same.
    pub fn is_same(&self, other: &Path) -> bool {
        match (fs::metadata(&self.place), fs::metadata(other)) {
            (Ok(own), Ok(other)) => {
                own.is_file() && (own.dev(), own.ino()) == (other.dev(), other.ino())
            }
            (Err(_), Err(_)) => name_of(&self.place) == name_of(other),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        }
    }

    /// Writes the content with `fill`.
    ///
    /// # Errors
    /// Returns an error of `fill` or the system, and one for a pipe whose reader stops reading. The old file then
    /// stays; a file written in place is truncated to zero.
    pub fn write(self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let Output {
            place, how, mode, ..
        } = self;
        match how {
            WriteMethod::Beside(permissions) => {
                // The temporary file must not be readable by more users than the final one.
                let mode = permissions.as_ref().map_or(mode, PermissionsExt::mode);
                let beside = TempFile::create(&place, mode & EVERYBODY)?;
                write_with(beside.file(), fill)?;
                if let Some(permissions) = permissions {
                    beside.file().set_permissions(permissions)?;
                }
                sync(beside.file())?;
                beside.persist(&place).map(drop)
            }
            WriteMethod::InPlace => {
                let file = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(&place)?;
                let outcome = write_with(&file, fill);
                if outcome.is_err() && file.metadata().is_ok_and(|found| found.is_file()) {
                    // A partial file could be mistaken for a complete one.
                    let _ = file.set_len(0);
                }
                outcome
            }
            WriteMethod::Pipe(pipe) => write_with(&pipe, fill),
        }
    }
}

fn how_to_replace(place: &Path, found: &Metadata) -> io::Result<WriteMethod> {
    if !found.is_file() {
        // Not opened, because opening a device may have side effects.
        return Ok(WriteMethod::InPlace);
    }
    drop(OpenOptions::new().write(true).open(place)?);
    // Replacing the file would change its owner, and its other hard links would keep the old content.
    let is_only_ours = found.uid() == rustix::process::geteuid().as_raw() && found.nlink() == 1;
    if is_only_ours && TempFile::create(place, OWNER).is_ok() {
        return Ok(WriteMethod::Beside(Some(found.permissions())));
    }
    Ok(WriteMethod::InPlace)
}

/// Permissions of a file for everybody, before the umask.
const EVERYBODY: u32 = 0o666;
const OWNER: u32 = 0o600;

/// Resolves links in the directory part. The last component need not exist.
fn name_of(path: &Path) -> Option<PathBuf> {
    let above = match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    };
    Some(fs::canonicalize(above).ok()?.join(path.file_name()?))
}

fn write_with(
    file: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::new(file);
    fill(&mut writer)?;
    writer.flush()
}

/// Flushes the content to disk: network file systems report a full disk only at this point.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_data() {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn failing(writer: &mut dyn Write) -> io::Result<()> {
        writer.write_all(b"a part")?;
        Err(io::ErrorKind::StorageFull.into())
    }

    fn whole(writer: &mut dyn Write) -> io::Result<()> {
        writer.write_all(b"whole")
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn failed_write_keeps_old_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let new = Output::new(&path).expect("writable");
        assert_eq!(
            names(directory.path()),
            [""; 0],
            "nothing before it is written"
        );
        new.write(failing).expect_err("it fails");
        assert_eq!(names(directory.path()), [""; 0]);
        Output::new(&path)
            .expect("writable")
            .write(whole)
            .expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
        Output::new(&path)
            .expect("writable")
            .write(failing)
            .expect_err("it fails");
        assert_eq!(fs::read(&path).expect("it is there"), b"whole");
        Output::new(&path)
            .expect("writable")
            .write(|writer| writer.write_all(b"newer"))
            .expect("written");
        assert_eq!(fs::read(&path).expect("it is there"), b"newer");
        assert_eq!(
            fs::metadata(&path).expect("it is there").mode() & 0o777,
            0o640
        );
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn write_through_symlink_preserves_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("file"), "old").expect("a file");
        symlink("file", path("link")).expect("a link");
        Output::new(&path("link"))
            .expect("writable")
            .write(whole)
            .expect("written");
        assert!(path("link").is_symlink());
        assert_eq!(fs::read(path("file")).expect("it is there"), b"whole");
        fs::hard_link(path("file"), path("twin")).expect("a link");
        let write = |fill: fn(&mut dyn Write) -> io::Result<()>| {
            Output::new(&path("twin")).expect("writable").write(fill)
        };
        write(|writer| writer.write_all(b"newer")).expect("written");
        assert_eq!(fs::read(path("file")).expect("it is there"), b"newer");
        write(failing).expect_err("it fails");
        assert_eq!(
            fs::read(path("file")).expect("it is there"),
            b"",
            "no part of it"
        );
    }

    #[test]
    fn nofollow_output_rejects_symlink() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("other"), "other").expect("a file");
        symlink("other", path("link")).expect("a link");
        let error = Output::new_nofollow(&path("link")).expect_err("a link");
        assert!(
            error.to_string().starts_with("it is a symbolic link"),
            "{error}"
        );
        let late = Output::new_nofollow(&path("late")).expect("it is free");
        symlink("other", path("late")).expect("a link");
        late.write(whole).expect("written");
        assert!(!path("late").is_symlink());
        assert_eq!(fs::read(path("other")).expect("it is there"), b"other");
    }

    #[test]
    fn unwritable_path_is_detected_early() {
        let directory = tempfile::tempdir().expect("a directory");
        let kind = |path: &Path| Output::new(path).expect_err("not writable").kind();
        assert_eq!(kind(directory.path()), io::ErrorKind::IsADirectory);
        assert_eq!(
            kind(&directory.path().join("none/file")),
            io::ErrorKind::NotFound
        );
        assert_eq!(kind(Path::new("")), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn devices_and_pipes_are_written_in_place() {
        let full = Output::new(Path::new("/dev/full")).expect("a device");
        let error = full.write(whole).expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        Output::new(Path::new(&name))
            .expect("a pipe")
            .write(whole)
            .expect("written");
        drop(writer);
        let mut read = String::new();
        io::Read::read_to_string(&mut reader, &mut read).expect("an end");
        assert_eq!(read, "whole");
    }

    #[test]
    fn pipe_without_reader_is_rejected() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        let error = Output::new(&path).expect_err("nobody reads it");
        assert_eq!(
            error.to_string(),
            "it is a pipe without a reader: expected a file, or a pipe with a reader"
        );
        // Open for writing too, so that the reader does not see end of file before the content arrives.
        let both = OpenOptions::new().read(true).write(true).open(&path);
        let mut end = both.expect("a pipe");
        let output = Output::new(&path).expect("a pipe");
        // More than the pipe's capacity, so that the writer finds it full.
        let sent = vec![b'y'; 300_000];
        let bytes = sent.clone();
        let writer = std::thread::spawn(move || output.write(|out| out.write_all(&bytes)));
        let mut read = vec![0; sent.len()];
        io::Read::read_exact(&mut end, &mut read).expect("read");
        writer.join().expect("no panic").expect("written");
        assert!(read == sent);
    }

    #[test]
    fn owner_only_file_has_mode_0600() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let write = |fill: fn(&mut dyn Write) -> io::Result<()>| {
            let file = Output::new(&path).expect("writable").owner_only();
            file.write(fill).expect("written");
            fs::metadata(&path).expect("it is there").mode() & 0o777
        };
        assert_eq!(write(whole), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
        assert_eq!(write(whole), 0o640);
    }

    #[test]
    fn symlinks_to_same_file_are_detected() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("file"), "").expect("a file");
        symlink("file", path("link")).expect("a link");
        let is_same = |one: &str, other: &str| {
            Output::new(&path(one))
                .expect("writable")
                .is_same(&path(other))
        };
        assert!(is_same("file", "link") && is_same("link", "file"));
        assert!(is_same("new", "./new"));
        assert!(!is_same("file", "new") && !is_same("new", "file") && !is_same("new", "other"));
        let null = Output::new(Path::new("/dev/null")).expect("a device");
        assert!(!null.is_same(Path::new("/dev/null")));
    }

    #[test]
    fn longest_file_name_is_writable() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x".repeat(255));
        Output::new(&path)
            .expect("writable")
            .write(whole)
            .expect("written");
        assert_eq!(fs::read(&path).expect("it is there"), b"whole");
    }
}
