//! Programs that left their parents and cleared their environment, so that [`super::strays`] does not know them: the kernel
//! makes us their parent (prctl(2), `PR_SET_CHILD_SUBREAPER`). They are children that nobody here started.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpgrp, getpid, kill_process, set_child_subreaper, waitpid,
};

/// How often children are looked for again: each that is ended may leave some of its own to us.
const GENERATIONS_MAX: usize = 64;

/// Children from before a trial, which are not of it.
pub(super) struct Before(BTreeSet<i32>);

/// Takes over what leaves its parent from now on; where the kernel refuses, nothing comes to us.
pub(super) fn adopt() {
    let _ = set_child_subreaper(Some(getpid()));
}

impl Before {
    /// Those there are now.
    pub(super) fn now() -> Before {
        Before(children().collect())
    }

    /// Ends all children that came since; how many there were. What we started and still need has our own process group.
    pub(super) fn end_others(&self) -> usize {
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

/// Ends a child that is in another process group. It is ours, so its number stays its own until we have waited for it.
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
