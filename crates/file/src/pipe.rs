//! The write end of a named pipe, with bounded waits for its reader.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::limits::{PIPE_READER_WAIT_MAX, PIPE_TIMEOUT};

/// Interval at which opening the pipe is retried.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A pipe that had a reader when it was opened.
#[derive(Debug)]
pub(crate) struct Pipe(File);

impl Pipe {
    /// Opens the pipe, and waits up to [`PIPE_READER_WAIT_MAX`] for a reader.
    ///
    /// # Errors
    /// Returns the system's error, and an error if there is still no reader (`ENXIO`, fifo(7)).
    pub(crate) fn open(path: &Path) -> io::Result<Pipe> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let mut looks_left = PIPE_READER_WAIT_MAX.as_millis() / RETRY_INTERVAL.as_millis();
        loop {
            match options.open(path) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {}
                opened => return opened.map(Pipe),
            }
            if looks_left == 0 {
                let what =
                    "it is a pipe without a reader: expected a file, or a pipe with a reader";
                return Err(io::Error::new(io::ErrorKind::NotConnected, what));
            }
            looks_left -= 1;
            thread::sleep(RETRY_INTERVAL);
        }
    }

    fn wait(&self) -> io::Result<()> {
        let silence = Timespec {
            tv_sec: PIPE_TIMEOUT.as_secs() as i64,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::OUT)];
        match poll(&mut polled, Some(&silence)) {
            Ok(0) => {
                let seconds = PIPE_TIMEOUT.as_secs();
                let what = format!("it is a pipe whose reader has read nothing for {seconds} s");
                Err(io::Error::new(io::ErrorKind::TimedOut, what))
            }
            // A signal is handled elsewhere; the caller writes again.
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for &Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&self.0).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Output;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs::{self, OpenOptions};
    use std::io::{self, Read};
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    fn fifo() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fifo");
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a pipe");
        (directory, path)
    }

    /// A reader that does not wait for a writer.
    fn reader(path: &PathBuf) -> fs::File {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        let opened = options.read(true).custom_flags(flags).open(path);
        opened.expect("a reader waits for nobody")
    }

    #[test]
    fn readerless_pipe_is_detected_through_symlink() {
        let (directory, path) = fifo();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        for name in [&path, &link] {
            let error = Output::new(name).expect_err("nobody reads");
            assert_eq!(
                error.to_string(),
                "it is a pipe without a reader: expected a file, or a pipe with a reader"
            );
        }
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let error = Output::new(&socket).expect_err("it is none");
        assert_eq!(
            error.to_string(),
            "it is a socket: expected a file or a pipe"
        );
    }

    #[test]
    fn slow_pipe_reader_gets_all_data() {
        let (_directory, path) = fifo();
        let first = reader(&path);
        let output = Output::new(&path).expect("somebody reads");
        assert!(output.may_block());
        // More than the pipe's capacity, so that the writer finds it full.
        let sent = vec![b'z'; 300_000];
        let expected = sent.clone();
        let thread = std::thread::spawn(move || output.write(|writer| writer.write_all(&sent)));
        // Blocks until there is data, unlike the first reader.
        let mut second = OpenOptions::new().read(true).open(&path).expect("a reader");
        drop(first);
        let mut read = Vec::new();
        second.read_to_end(&mut read).expect("an end");
        thread.join().expect("no panic").expect("written");
        assert!(read == expected);
    }

    #[test]
    fn write_after_pipe_reader_closed_fails() {
        let (_directory, path) = fifo();
        let gone = reader(&path);
        let output = Output::new(&path).expect("somebody reads");
        drop(gone);
        let error = output.write(|writer| writer.write_all(b"x"));
        assert_eq!(
            error.expect_err("nobody reads").kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
