//! Kernel files that are opened once and read repeatedly.
//!
//! Opening a file of `/proc` costs more than reading it. So files stay open up to a limit that all files of a root
//! share; the others are opened for each read. A file below `/proc/PID` stays bound to its process: after the process
//! has ended, reading fails even if the id is reused.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{KERNEL_FILE_BYTES_MAX, KERNEL_FILES_OPEN_MAX};

/// Location of the kernel's files, and the network namespace to read.
#[derive(Debug, Clone)]
pub struct Root {
    proc: PathBuf,
    sys: PathBuf,
    /// The `net` directory of a process, which shows that process's namespace.
    net: PathBuf,
    open: Arc<AtomicUsize>,
}

impl Root {
    /// The files of this machine and of the current network namespace.
    pub fn of_machine() -> Root {
        Root::at(Path::new("/proc"), Path::new("/sys"))
    }

    /// Files below other directories, as in a container or a test.
    pub fn at(proc: &Path, sys: &Path) -> Root {
        Root {
            proc: proc.to_owned(),
            sys: sys.to_owned(),
            net: proc.join("net"),
            open: Arc::default(),
        }
    }

    /// Selects the network namespace of a process. Files that do not depend on the namespace (CPUs, interrupts,
    /// softirqs, threads) stay the machine's.
    #[must_use]
    pub fn with_network_of(mut self, pid: u32) -> Root {
        self.net = self.proc.join(pid.to_string()).join("net");
        self
    }

    /// A file below `/proc`.
    pub fn proc(&self, name: &str) -> KernelFile {
        self.file(self.proc.join(name))
    }

    /// A file below `/proc/net` of the selected namespace.
    pub fn net(&self, name: &str) -> KernelFile {
        self.file(self.net.join(name))
    }

    /// Any kernel file, such as one of a control group.
    pub fn file(&self, path: PathBuf) -> KernelFile {
        KernelFile {
            path,
            file: None,
            open: Arc::clone(&self.open),
        }
    }

    /// Path below `/proc`.
    pub fn proc_path(&self, name: &str) -> PathBuf {
        self.proc.join(name)
    }

    /// Path below `/sys`.
    pub fn sys_path(&self, name: &str) -> PathBuf {
        self.sys.join(name)
    }
}

/// A kernel file whose content is generated at each read.
#[derive(Debug)]
pub struct KernelFile {
    path: PathBuf,
    /// Open since the first read, if the limit permitted.
    file: Option<File>,
    open: Arc<AtomicUsize>,
}

impl KernelFile {
    /// Current content, up to [`KERNEL_FILE_BYTES_MAX`] bytes. `None` if it cannot be read, or its process or device no
    /// longer exists.
    pub fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Cow<'b, str>> {
        buffer.clear();
        if let Some(file) = &self.file {
            read_all(file, buffer).ok()?;
            return Some(String::from_utf8_lossy(buffer));
        }
        let file = File::open(&self.path).ok()?;
        read_all(&file, buffer).ok()?;
        // Relaxed is enough: one thread opens files; other threads only drop them.
        if self.open.load(Ordering::Relaxed) < KERNEL_FILES_OPEN_MAX {
            self.open.fetch_add(1, Ordering::Relaxed);
            self.file = Some(file);
        }
        Some(String::from_utf8_lossy(buffer))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Reads from offset 0, regardless of earlier reads.
fn read_all(file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
    /// Most files of threads and processes fit in one read of this size.
    const STEP: usize = 4_096;
    let mut length = 0;
    while length < KERNEL_FILE_BYTES_MAX {
        // Doubled, so that a long file does not need one read per page.
        buffer.resize(length + STEP.max(length), 0);
        let count = match file.read_at(&mut buffer[length..], length as u64) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                buffer.clear();
                return Err(error);
            }
        };
        if count == 0 {
            break;
        }
        length += count;
    }
    buffer.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_open_file_is_reread() {
        let root = Root::of_machine();
        let mut buffer = Vec::new();
        let mut file = root.proc("self/comm");
        let before = file.read(&mut buffer).expect("our name").into_owned();
        assert_eq!(root.open.load(Ordering::Relaxed), 1);
        let mut uptime = root.proc("uptime");
        let first = uptime.read(&mut buffer).expect("an uptime").into_owned();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while uptime.read(&mut buffer).expect("an uptime") == first {
            assert!(std::time::Instant::now() < deadline, "time stands still");
        }
        assert_eq!(file.read(&mut buffer).expect("our name"), before);
        drop((file, uptime));
        assert_eq!(root.open.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn long_files_are_complete_and_open_files_limited() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = "0123456789abcde\n".repeat(10_000);
        std::fs::write(directory.path().join("long"), &text).expect("a file");
        let root = Root::at(directory.path(), directory.path());
        let mut buffer = Vec::new();
        let mut files: Vec<_> = (0..KERNEL_FILES_OPEN_MAX + 3)
            .map(|_| root.proc("long"))
            .collect();
        for file in &mut files {
            assert_eq!(file.read(&mut buffer).expect("a text"), text);
        }
        assert_eq!(root.open.load(Ordering::Relaxed), KERNEL_FILES_OPEN_MAX);
        let last = files.last_mut().expect("a file");
        assert_eq!(last.read(&mut buffer).expect("a text"), text);
    }

    #[test]
    fn missing_files_are_none() {
        let root = Root::of_machine();
        let mut buffer = Vec::new();
        assert_eq!(root.proc("no/such/file").read(&mut buffer), None);
        let ours = root.clone().with_network_of(std::process::id());
        assert!(ours.net("dev").read(&mut buffer).is_some());
        let nobody = root.with_network_of(u32::MAX);
        assert_eq!(nobody.net("dev").read(&mut buffer), None);
    }
}
