//! A program in one network namespace with the /sys of another, as with `nsenter --net`.

use std::path::Path;

use onrush_tune::advise::{self, Request};
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::Tree;

use crate::namespace::Namespace;

fn read() -> Facts {
    facts::read(&Tree::open(Path::new("/")).expect("this machine"), None).expect("facts")
}

#[test]
fn sysfs_of_another_namespace_is_detected() {
    let here = read();
    here.check_namespace()
        .expect("this /sys is of this namespace");

    let Some(namespace) = Namespace::after("mixed", &["ip link add v0 type veth peer name v1"])
    else {
        return;
    };
    // Moves this thread only; /sys is not remounted.
    let mixed = namespace.inside(read);
    let error = mixed.check_namespace().expect_err("/sys is of another");
    let words = "/sys belongs to another network namespace than this program: use `ip netns exec`";
    assert!(error.to_string().contains(words), "{error}");
    let plan = advise::plan(&mixed, &Request::default()).expect("a plan");
    let mut notes = plan.notes.iter();
    assert!(notes.any(|note| format!("{} {}", note.about, note.text).contains(words)));
}
