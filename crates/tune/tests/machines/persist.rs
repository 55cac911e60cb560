//! Files of `--persist`: the unit in systemd's view, and warnings about sysctl files that override the settings.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use onrush_tune::advise::{self, Plan, Request};
use onrush_tune::apply::{self, Machine, Root};
use onrush_tune::facts::Facts;
use tempfile::TempDir;

use crate::machine::{Kind, Machine as Shape};

fn root() -> TempDir {
    Shape::new(1, 16, 1)
        .with("eth0", Kind::Ixgbevf, 0, 2, 3)
        .write()
}

fn facts(root: &Path) -> Facts {
    Root::open(root).expect("a root").facts().expect("facts")
}

fn plan(root: &Path) -> Plan {
    advise::plan(&facts(root), &Request::default()).expect("a plan")
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, text).expect("written");
}

/// Checks the warnings for some sysctl files: one per expected file and value of somaxconn, which the plan sets to
/// 65535.
#[track_caller]
fn check_warnings(files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let root = root();
    for (file, text) in files {
        write(root.path(), file, text);
    }
    let program = Path::new("/usr/bin/onrush");
    apply::persist(root.path(), &plan(root.path()), &[], program).expect("written");
    let warnings = apply::overridden(&facts(root.path()));
    assert_eq!(warnings.len(), expected.len(), "{files:?}: {warnings:#?}");
    for (warning, (file, value)) in warnings.iter().zip(expected) {
        let words = format!(
            "/{file} is read after /etc/sysctl.d/90-onrush.conf and sets net.core.somaxconn to {value} instead of 65535"
        );
        assert!(warning.contains(&words), "{warning}");
    }
}

#[test]
fn conflicting_later_sysctl_file_is_a_warning() {
    const LOCAL: &str = "etc/sysctl.d/99-local.conf";
    for (file, text) in [
        (LOCAL, "net.core.somaxconn = 1024\n"),
        (
            LOCAL,
            "# ours\n-net/core/somaxconn=1024\nvm.swappiness = 1\n",
        ),
        ("etc/sysctl.conf", "net.core.somaxconn=1024"),
        ("run/sysctl.d/91-vendor.conf", "net.core.somaxconn = 1024\n"),
        (
            "usr/lib/sysctl.d/95-vendor.conf",
            "net.core.somaxconn = 1024\n",
        ),
    ] {
        check_warnings(&[(file, text)], &[(file, "1024")]);
    }
    for (file, text) in [
        ("etc/sysctl.d/50-local.conf", "net.core.somaxconn = 1024\n"),
        (
            "etc/sysctl.d/99-local.conf.bak",
            "net.core.somaxconn = 1024\n",
        ),
        (LOCAL, "net.core.somaxconn =  65535 \n"),
        (
            LOCAL,
            "# net.core.somaxconn = 1024\n; net.core.somaxconn = 1024\n",
        ),
        (LOCAL, "vm.swappiness = 1\n"),
    ] {
        check_warnings(&[(file, text)], &[]);
    }
}

#[test]
fn only_last_line_for_key_is_a_warning() {
    let (low, same) = (
        "net.core.somaxconn = 1024\n",
        "net.core.somaxconn = 65535\n",
    );
    let (first, second) = ("etc/sysctl.d/95-local.conf", "etc/sysctl.d/99-local.conf");
    check_warnings(&[(first, low), (second, same)], &[]);
    check_warnings(&[(first, same), (second, low)], &[(second, "1024")]);
    check_warnings(&[(second, &format!("{low}{same}"))], &[]);
    check_warnings(&[(second, low), ("etc/sysctl.conf", same)], &[]);
    // A file in /etc replaces the vendor's file of the same name.
    check_warnings(
        &[
            ("usr/lib/sysctl.d/99-vendor.conf", low),
            ("etc/sysctl.d/99-vendor.conf", ""),
        ],
        &[],
    );
}

#[test]
fn settings_of_earlier_runs_are_checked() {
    let root = root();
    let persist = |settings: &[(String, String)]| {
        let program = Path::new("/usr/bin/onrush");
        apply::persist(root.path(), &plan(root.path()), settings, program).expect("written");
        apply::overridden(&facts(root.path()))
    };
    let backlog = ("net/core/netdev_max_backlog".to_owned(), "16384".to_owned());
    assert_eq!(persist(&[backlog]), [""; 0]);
    write(
        root.path(),
        "etc/sysctl.d/99-local.conf",
        "net.core.netdev_max_backlog = 1000\n",
    );
    let warnings = persist(&[]);
    assert!(
        matches!(&warnings[..], [only] if only.contains("sets net.core.netdev_max_backlog to 1000 instead of 16384")),
        "{warnings:#?}"
    );
}

fn words<'text>(unit: &'text str, key: &str) -> Vec<&'text str> {
    let lines = unit.lines().filter_map(|line| line.split_once('='));
    let values = lines.filter(|(name, _)| *name == key);
    values
        .flat_map(|(_, value)| value.split_whitespace())
        .collect()
}

#[test]
fn unit_is_ordered_after_interfaces_and_before_servers() {
    let root = root();
    let program = Path::new("/usr/bin/onrush");
    apply::persist(root.path(), &plan(root.path()), &[], program).expect("written");
    let units = root.path().join("etc/systemd/system");
    let unit = fs::read_to_string(units.join("onrush-tune.service")).expect("a unit");
    for (key, expected) in [
        (
            "After",
            &[
                "systemd-networkd-wait-online.service",
                "NetworkManager-wait-online.service",
                "networking.service",
                "irqbalance.service",
            ][..],
        ),
        (
            "Before",
            &[
                "network-online.target",
                "onrush.service",
                "nginx.service",
                "haproxy.service",
                "docker.service",
            ],
        ),
        ("Wants", &["network-online.target"]),
        ("WantedBy", &["multi-user.target"]),
        ("Type", &["oneshot"]),
        ("RemainAfterExit", &["yes"]),
    ] {
        let found = words(&unit, key);
        let missing = expected.iter().find(|word| !found.contains(word));
        assert_eq!(missing, None, "{key}: {unit}");
    }
    let wants = units.join("multi-user.target.wants/onrush-tune.service");
    assert_eq!(
        fs::canonicalize(wants).expect("a link"),
        units.join("onrush-tune.service")
    );
}

/// Output of `systemd-analyze verify` for a unit, empty if it is valid; `None` without systemd.
fn verify(unit: &Path) -> Option<String> {
    let output = Command::new("systemd-analyze")
        .arg("verify")
        .arg(unit)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: systemd-analyze is not installed");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn systemd_starts_servers_after_the_unit() {
    let root = root();
    // The program's path and the interface's name contain characters that are special in a unit.
    let program = root.path().join("100% new/on rush");
    fs::create_dir_all(program.parent().expect("a directory")).expect("made");
    symlink("/bin/true", &program).expect("a link");
    let mut plan = plan(root.path());
    plan.request.interfaces = vec!["e$a%b\"c".to_owned()];
    apply::persist(root.path(), &plan, &[], &program).expect("written");
    let units = root.path().join("etc/systemd/system");
    let Some(said) = verify(&units.join("onrush-tune.service")) else {
        return;
    };
    assert_eq!(said, "");
    write(
        root.path(),
        "etc/systemd/system/boot.target",
        "[Unit]\nWants=onrush-tune.service nginx.service\n",
    );
    for (order, expected) in [
        ("After=network-online.target", None),
        // systemd finds a cycle in an order that contradicts the unit's.
        ("Before=onrush-tune.service", Some("ordering cycle")),
    ] {
        let server = format!("[Unit]\n{order}\n[Service]\nExecStart=/bin/true\n");
        write(root.path(), "etc/systemd/system/nginx.service", &server);
        let said = verify(&units.join("boot.target")).expect("systemd");
        match expected {
            Some(words) => assert!(said.contains(words), "{said}"),
            None => assert_eq!(said, ""),
        }
    }
}
