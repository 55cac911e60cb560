//! Reads a file named by the user.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::limits::PIPE_TIMEOUT;

/// Why a file cannot be read. `Display` writes the part of the message after the file's name.
#[derive(Debug)]
pub enum InputError {
    /// The system refused.
    System(io::Error),
    /// Neither a file nor a pipe: "a directory", "a device", "a socket".
    Kind(&'static str),
    /// An empty pipe without a writer.
    NoWriter,
    /// A pipe whose writer neither writes nor closes it.
    TimedOut,
    /// Longer than this many bytes.
    TooLong(u64),
    /// Not UTF-8 from this byte offset on.
    NotUtf8(usize),
}

impl fmt::Display for InputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::System(error) => error.fmt(out),
            InputError::Kind(kind) => write!(out, "it is {kind}: expected a file or a pipe"),
            InputError::NoWriter => out.write_str(
                "it is a pipe without a writer: expected a file, or a pipe with a writer",
            ),
            InputError::TimedOut => write!(
                out,
                "it is a pipe whose writer has sent nothing for {} s: expected a file, or a writer that closes the pipe",
                PIPE_TIMEOUT.as_secs()
            ),
            InputError::TooLong(bytes_max) => {
                write!(
                    out,
                    "it is too long: expected at most {}",
                    Bytes(*bytes_max)
                )
            }
            InputError::NotUtf8(at) => {
                write!(
                    out,
                    "not text: byte {at} is not UTF-8; expected UTF-8 throughout"
                )
            }
        }
    }
}

impl std::error::Error for InputError {}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> Self {
        InputError::System(error)
    }
}

struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => {
                write!(out, "{} MiB", bytes >> 20)
            }
            bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => {
                write!(out, "{} KiB", bytes >> 10)
            }
            bytes => write!(out, "{bytes} bytes"),
        }
    }
}

/// A file or pipe opened for reading, such as the pipe of a shell's `<(command)`.
#[derive(Debug)]
pub struct Input {
    file: File,
    found: Metadata,
}

impl Input {
    /// Opens the file without waiting for the writer of a pipe.
    ///
    /// # Errors
    /// If the system refuses, or `path` is neither a file nor a pipe. Devices are not opened, because opening one may
    /// have side effects.
    pub fn open(path: &Path) -> Result<Input, InputError> {
        expect_file(&fs::metadata(path)?)?;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)?;
        let found = file.metadata()?;
        // The path may have been replaced since it was checked.
        expect_file(&found)?;
        Ok(Input { file, found })
    }

    /// The file's metadata when it was opened.
    pub fn metadata(&self) -> &Metadata {
        &self.found
    }

    /// Reads the whole file, up to `bytes_max` bytes. Never holds more than one byte beyond that in memory.
    ///
    /// # Errors
    /// If the file is longer, the system refuses, or a pipe has no writer or a silent one.
    pub fn read(self, bytes_max: u64) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::new();
        if self.found.len() > bytes_max {
            return Err(InputError::TooLong(bytes_max));
        }
        if self.found.file_type().is_fifo() {
            self.read_pipe(bytes_max, &mut bytes)?;
        } else {
            self.file.take(bytes_max + 1).read_to_end(&mut bytes)?;
        }
        if bytes.len() as u64 > bytes_max {
            return Err(InputError::TooLong(bytes_max));
        }
        Ok(bytes)
    }

    /// [`Input::read`] for UTF-8.
    ///
    /// # Errors
    /// As [`Input::read`], and if the content is not UTF-8.
    pub fn read_text(self, bytes_max: u64) -> Result<String, InputError> {
        String::from_utf8(self.read(bytes_max)?)
            .map_err(|error| InputError::NotUtf8(error.utf8_error().valid_up_to()))
    }

    fn read_pipe(&self, bytes_max: u64, bytes: &mut Vec<u8>) -> Result<(), InputError> {
        loop {
            let room = (bytes_max + 1).saturating_sub(bytes.len() as u64);
            // `read_to_end` keeps the bytes read before an error.
            match (&self.file).take(room).read_to_end(bytes) {
                Ok(0) if room > 0 && bytes.is_empty() => return Err(InputError::NoWriter),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn wait(&self) -> Result<(), InputError> {
        let silence = Timespec {
            tv_sec: PIPE_TIMEOUT.as_secs() as i64,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&silence)) {
            Ok(0) => Err(InputError::TimedOut),
            // A signal is handled elsewhere; the caller reads again.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

fn expect_file(found: &Metadata) -> Result<(), InputError> {
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(InputError::Kind("a directory"));
    }
    if kind.is_char_device() || kind.is_block_device() {
        return Err(InputError::Kind("a device"));
    }
    if kind.is_socket() {
        return Err(InputError::Kind("a socket"));
    }
    Ok(())
}

/// Reads the file at `path`, up to `bytes_max` bytes.
///
/// # Errors
/// As [`Input::open`] and [`Input::read`].
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, InputError> {
    Input::open(path)?.read(bytes_max)
}

/// Reads the file at `path` as UTF-8, up to `bytes_max` bytes.
///
/// # Errors
/// As [`read`], and if the content is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, InputError> {
    Input::open(path)?.read_text(bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            Place(tempfile::tempdir().expect("a directory"))
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn fifo(&self) -> PathBuf {
            let path = self.path("fifo");
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .expect("a pipe");
            path
        }
    }

    fn said(path: &Path) -> String {
        read(path, 16).expect_err("no file").to_string()
    }

    #[test]
    fn file_above_size_limit_is_rejected() {
        let place = Place::new();
        let path = place.path("file");
        for (length, is_read) in [(0, true), (16, true), (17, false), (1 << 20, false)] {
            fs::write(&path, vec![b'x'; length]).expect("a file");
            let found = read(&path, 16);
            assert_eq!(found.is_ok(), is_read, "{length}: {found:?}");
        }
        assert_eq!(said(&path), "it is too long: expected at most 16 bytes");
        let said = InputError::TooLong(16 << 20).to_string();
        assert_eq!(said, "it is too long: expected at most 16 MiB");
    }

    #[test]
    fn size_limit_applies_to_procfs_files() {
        let maps = Path::new("/proc/self/maps");
        assert!(matches!(read(maps, 16), Err(InputError::TooLong(16))));
        assert!(read(maps, 1 << 24).is_ok_and(|bytes| !bytes.is_empty()));
    }

    #[test]
    fn non_files_are_refused_without_blocking() {
        let place = Place::new();
        assert_eq!(
            said(place.0.path()),
            "it is a directory: expected a file or a pipe"
        );
        assert_eq!(
            said(Path::new("/dev/zero")),
            "it is a device: expected a file or a pipe"
        );
        let socket = place.path("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        assert_eq!(said(&socket), "it is a socket: expected a file or a pipe");
        assert_eq!(
            said(&place.fifo()),
            "it is a pipe without a writer: expected a file, or a pipe with a writer"
        );
        assert!(said(&place.path("none")).starts_with("No such file"));
    }

    #[test]
    fn pipe_is_read_until_writer_closes() {
        // More than the pipe's capacity, so that the reader finds it empty; opened by name as with `<(command)`.
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let sent = vec![b'y'; 300_000];
        let bytes = sent.clone();
        let thread = std::thread::spawn(move || writer.write_all(&bytes));
        let name = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let found = read(Path::new(&name), 1 << 20).expect("what was written");
        thread.join().expect("no panic").expect("written");
        assert!(found == sent);
    }

    #[test]
    fn pipe_with_closed_writer_is_read() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"left").expect("room");
        drop(writer);
        let name = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(read(Path::new(&name), 16).expect("what is left"), b"left");
    }

    #[test]
    fn endless_pipe_is_rejected_at_size_limit() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let thread = std::thread::spawn(move || while writer.write_all(&[0; 4096]).is_ok() {});
        let name = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert!(matches!(
            read(Path::new(&name), 1 << 18),
            Err(InputError::TooLong(_))
        ));
        drop(reader);
        thread.join().expect("no panic");
    }

    #[test]
    fn invalid_utf8_error_has_byte_offset() {
        let place = Place::new();
        let path = place.path("file");
        fs::write(&path, b"ab\xff").expect("a file");
        let said = read_text(&path, 16).expect_err("no text").to_string();
        assert_eq!(
            said,
            "not text: byte 2 is not UTF-8; expected UTF-8 throughout"
        );
    }
}
