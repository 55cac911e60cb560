//! Orphaned processes that cleared their environment, so that [`super::leftover_processes`] cannot find them. Bench is their
//! subreaper (prctl(2), `PR_SET_CHILD_SUBREAPER`), so they appear as children that it did not start.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpgrp, getpid, kill_process, set_child_subreaper, waitpid,
};

/// Number of searches: each process that is killed may leave children of its own.
const GENERATIONS_MAX: usize = 64;

pub(super) struct ExistingChildren(BTreeSet<i32>);

/// Makes this process a subreaper. Without it, orphans are not found.
pub(super) fn become_subreaper() {
    let _ = set_child_subreaper(Some(getpid()));
}

impl ExistingChildren {
    pub(super) fn now() -> ExistingChildren {
        ExistingChildren(children().collect())
    }

    /// Kills all children that appeared since and returns their number. Children in bench's own process group are still
    /// needed and are spared.
    pub(super) fn kill_new(&self) -> usize {
        let mut ended = BTreeSet::new();
        for _ in 0..GENERATIONS_MAX {
            let found: Vec<i32> = children().filter(|id| !self.0.contains(id)).collect();
            let before = ended.len();
            ended.extend(found.into_iter().filter(|id| end(*id)));
            if ended.len() == before {
                break;
            }
        }
        ended.len()
    }
}

/// Kills a child in another process group. Its id cannot be reused until it is reaped here.
fn end(id: i32) -> bool {
    let Some(pid) = Pid::from_raw(id) else {
        return false;
    };
    if getpgid(Some(pid)).is_ok_and(|group| group == getpgrp()) {
        return false;
    }
    kill_process(pid, Signal::KILL).is_ok() && waitpid(Some(pid), WaitOptions::empty()).is_ok()
}

fn children() -> impl Iterator<Item = i32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|line| {
            let ids = line.split_whitespace().map(str::parse);
            ids.filter_map(Result::ok).collect::<Vec<i32>>()
        })
}
