//! Network namespaces for tests that need the kernel.

#![allow(dead_code)] // each test program uses its part

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{self, Command};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A temporary network namespace; removed on drop.
pub(crate) struct Namespace(String);

impl Namespace {
    /// Creates a namespace and runs `steps` in it; prints the reason and returns `None` if that fails.
    pub(crate) fn after(purpose: &str, steps: &[&str]) -> Option<Namespace> {
        let namespace = Namespace(format!("onrush-tune-{purpose}-{}", process::id()));
        let add = format!("ip netns add {}", namespace.0);
        let inside = |step: &&str| format!("ip netns exec {} {step}", namespace.0);
        for line in [add].into_iter().chain(steps.iter().map(inside)) {
            let output = Command::new("sh").args(["-c", &line]).output();
            if !output.as_ref().is_ok_and(|output| output.status.success()) {
                eprintln!(
                    "skipped: `{line}` failed ({output:?}); this takes root, iproute2 and what the steps use"
                );
                return None;
            }
        }
        Some(namespace)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Runs a function on a thread in the namespace.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(Path::new("/run/netns").join(&self.0)).expect("it was made");
        let work = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("as who made it");
            work()
        };
        thread::scope(|scope| scope.spawn(work).join().expect("a result"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}
