//! The file of a journal: held by one process at a time, and never visible without its first line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use onrush_file::TempFile;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Mode of a journal before the umask: everybody may run `status`.
const EVERYBODY: u32 = 0o666;

/// Does not follow a symbolic link or block on a pipe in place of the journal.
pub(super) fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Opens the file, or creates it with its first line, and locks it.
pub(super) fn open_or_begin(path: &Path, first: &str, waits: impl FnOnce()) -> io::Result<File> {
    remove_leftovers(path);
    let mut waits = Some(waits);
    loop {
        match opening().append(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            file => match locked(file?, path, &mut waits)? {
                Some(file) => return Ok(file),
                None => continue,
            },
        }
        match begun(path, first)?.persist_noclobber(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return file.and_then(|file| settled(path).map(|()| file)),
        }
    }
}

/// Replaces a file that we hold by a new one, and locks it.
pub(super) fn begin_anew(path: &Path, first: &str) -> io::Result<File> {
    let file = begun(path, first)?.persist(path)?;
    settled(path)?;
    Ok(file)
}

/// Opens and locks the existing file, if any; read-only if it cannot be written.
pub(super) fn open_to_undo(path: &Path, waits: impl FnOnce()) -> io::Result<Option<File>> {
    remove_leftovers(path);
    let mut waits = Some(waits);
    loop {
        let file = match opening().append(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if is_kept_from_writing(&error) => match opening().open(path) {
                Err(_) => return Err(error),
                file => file?,
            },
            file => file?,
        };
        if let Some(file) = locked(file, path, &mut waits)? {
            return Ok(Some(file));
        }
    }
}

fn is_kept_from_writing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

/// Waits for the lock. The previous holder may have removed or replaced the file; then returns `None`.
fn locked(file: File, path: &Path, waits: &mut Option<impl FnOnce()>) -> io::Result<Option<File>> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            if let Some(waits) = waits.take() {
                waits();
            }
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        }
        outcome => outcome?,
    }
    let ours = file.metadata()?;
    let found = path.symlink_metadata();
    let is_found = found.is_ok_and(|found| (ours.dev(), ours.ino()) == (found.dev(), found.ino()));
    Ok(is_found.then_some(file))
}

/// Creates a temporary file with the first line, locked before it gets its name.
fn begun(path: &Path, first: &str) -> io::Result<TempFile> {
    let beside = TempFile::create(path, EVERYBODY)?;
    rustix::fs::flock(beside.file(), FlockOperation::NonBlockingLockExclusive)?;
    beside.file().write_all(first.as_bytes())?;
    beside.file().sync_data()?;
    Ok(beside)
}

/// Removes the temporary files of killed processes, also in other network namespaces: a namespace may be
/// gone, and its journal is then never opened again. Failures are ignored.
fn remove_leftovers(path: &Path) {
    let directory = path.parent().map(fs::read_dir).and_then(Result::ok);
    for entry in directory.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((place, process)) = name.to_str().and_then(TempFile::parse) else {
            continue;
        };
        if place.starts_with("onrush-tune.") && is_left(&entry.path(), process) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether the creator of a file has ended. A process of another PID namespace is detected by its lock.
fn is_left(path: &Path, process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let has_ended = pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    has_ended
        && opening().open(path).is_ok_and(|file| {
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        })
}

/// Syncs the directory, so that the file's name is on disk (fsync(2)).
fn settled(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    match File::open(directory)?.sync_all() {
        // Not supported by some file systems.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::apply::{Force, Journal, Root, revert};
    use crate::facts::Facts;

    #[test]
    fn empty_journal_is_damaged_and_kept() {
        let root = tempfile::tempdir().expect("a directory");
        let cpus = root.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&cpus).expect("a directory");
        fs::write(cpus.join("online"), "0\n").expect("a file");
        let path = Journal::path_below(root.path()).expect("a place");
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, "").expect("a file");
        let is_told = |lost: Vec<crate::apply::UnreadableLine>| {
            lost.len() == 1 && lost[0].number == 1 && lost[0].text.starts_with("the file is empty")
        };
        let glance = Journal::summary(&path, "b").expect("it can be read");
        assert!(is_told(glance.expect("a journal").lost));
        assert!(is_told(
            Journal::open(&path, "b").expect("open").lost().collect()
        ));
        let journal = Journal::open_to_undo(&path, "b", || {}).expect("open");
        let journal = journal.expect("a journal");
        assert!(is_told(journal.lost().collect()));
        let mut machine = Root::open(root.path()).expect("a directory");
        let reverted = revert(&mut machine, journal, Force::Leave).expect("reverted");
        assert_eq!(reverted.len(), 1);
        assert!(!reverted[0].is_settled());
        assert!(!path.exists() && path.with_extension("journal.damaged-1").exists());
    }

    #[test]
    fn journal_is_created_atomically() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let begin = |count: u32| {
            for _ in 0..count {
                Journal::open(&path, "b")
                    .expect("open")
                    .remove()
                    .expect("removed");
            }
        };
        let look = || {
            while !directory.path().join("over").exists() {
                let glance = Journal::summary(&path, "b").expect("it can be read");
                assert!(glance.is_none_or(|glance| glance.lost.is_empty()));
            }
        };
        std::thread::scope(|scope| {
            let looks = scope.spawn(look);
            let begins = [(); 2].map(|()| scope.spawn(|| begin(200)));
            for begins in begins {
                begins.join().expect("no panic");
            }
            fs::write(directory.path().join("over"), "").expect("a file");
            looks.join().expect("every journal begins as each does");
        });
        let left = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 1, "no other name is left");
    }

    #[test]
    fn leftover_of_killed_process_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: String| directory.path().join(name);
        // PIDs are at most PID_MAX_LIMIT, 4,194,304.
        let dead = || fs::write(place(".onrush-tune.7.journal.5000000.0.part".into()), "x");
        let ours = format!(".onrush-tune.7.journal.{}.0.part", std::process::id());
        let locked = ".onrush-tune.8.journal.5000000.0.part".to_owned();
        let other = ".result.json.5000000.0.part".to_owned();
        for name in [&ours, &locked, &other] {
            fs::write(place(name.clone()), "x").expect("a file");
        }
        let lock = fs::File::open(place(locked.clone())).expect("a file");
        lock.lock().expect("nobody has it");
        let path = place("onrush-tune.7.journal".into());
        let left = || {
            let entries = fs::read_dir(directory.path()).expect("a directory");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
            names.sort();
            names
        };
        let mut kept = [ours, locked, other];
        kept.sort();
        dead().expect("a file");
        assert!(
            Journal::open_to_undo(&path, "b", || {})
                .expect("open")
                .is_none()
        );
        assert_eq!(left(), kept);
        dead().expect("a file");
        let journal = Journal::open(&path, "b").expect("open");
        journal.remove().expect("removed");
        assert_eq!(left(), kept);
    }

    #[test]
    fn journal_of_previous_boot_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        drop(Journal::open(&path, "b").expect("open"));
        assert!(
            Journal::open_to_undo(&path, "c", || {})
                .expect("open")
                .is_none()
        );
        assert!(!path.exists());
        drop(Journal::open(&path, "b").expect("open"));
        // A process that replaces the journal holds the new file.
        let journal = Journal::open(&path, "c").expect("open");
        let glance = Journal::summary(&path, "c").expect("it can be read");
        let glance = glance.expect("a journal");
        assert!(glance.is_held);
        assert_eq!(glance.changes(&Facts::default()), journal.changes());
    }
}
