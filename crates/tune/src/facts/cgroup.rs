//! Control groups of a process up to the root of the hierarchy, with their CPU limits.
//!
//! Version 1 has a hierarchy per controller, version 2 a single one (cgroups(7)). Their mount points are in mountinfo;
//! if hidden, as by `ip netns exec`, they are searched in the mounts of the process and of process 1.

use serde::Serialize;

use crate::limits::GROUPS_MAX;
use crate::tree::Tree;
use onrush_machine::cgroup::{self, Version};
use onrush_machine::cpus::CpuSet;
use onrush_machine::process::number;

/// A control group with its limit on CPU time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Path from the root of the hierarchy, as in /proc/PID/cgroup.
    pub path: String,
    /// CPU time in microseconds allowed per period, and the period in microseconds (`cpu.max`, or `cpu.cfs_quota_us`
    /// and `cpu.cfs_period_us`); `None` is unlimited.
    pub quota: Option<(u64, u64)>,
    /// Periods in which it ran (`nr_periods` in cpu.stat); counted only while it has a quota.
    pub periods: u64,
    /// Periods in which it was throttled (`nr_throttled`).
    pub throttled: u64,
    /// Version of the hierarchy, which determines the names of files.
    pub version: Version,
}

impl Group {
    /// Allowed CPU time in CPUs; `None` is unlimited.
    pub fn cpus(&self) -> Option<f64> {
        let (quota, period) = self.quota?;
        Some(quota as f64 / period.max(1) as f64)
    }

    /// Files that contain the quota.
    pub fn quota_files(&self) -> &'static str {
        match self.version {
            Version::One => "cpu.cfs_quota_us in each cpu.cfs_period_us",
            Version::Two => "cpu.max",
        }
    }
}

/// Groups of a process, by default this one, that have or had a CPU quota, nearest first. The smallest quota applies.
pub(super) fn of_process(tree: &Tree, process: Option<u32>) -> Vec<Group> {
    let Some(chain) = Chain::of(tree, process, "cpu") else {
        return Vec::new();
    };
    let groups = chain.places.iter().filter_map(|(path, directory)| {
        let text = |file: &str| tree.text(&format!("{directory}/{file}"));
        let stat = text("cpu.stat").unwrap_or_default();
        let quota = match chain.version {
            Version::Two => text("cpu.max").and_then(|text| quota_of_two(&text)),
            Version::One => text("cpu.cfs_quota_us")
                .zip(text("cpu.cfs_period_us"))
                .and_then(|(quota, period)| pair(&quota, &period)),
        };
        let group = Group {
            path: path.clone(),
            quota,
            periods: number(&stat, "nr_periods ").unwrap_or(0),
            throttled: number(&stat, "nr_throttled ").unwrap_or(0),
            version: chain.version,
        };
        (group.quota.is_some() || group.periods > 0).then_some(group)
    });
    groups.collect()
}

/// Whether a process is in a CPU control group below the root whose files are not visible.
pub(super) fn is_hidden(tree: &Tree, process: Option<u32>) -> bool {
    let path = memberships(tree, process).and_then(|text| cgroup::path(&text, "cpu"));
    let is_below = path.is_some_and(|(_, path)| path != "/");
    is_below && Chain::of(tree, process, "cpu").is_none()
}

/// Parses `50000 100000`, or `max 100000`, which is no limit.
fn quota_of_two(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.split_once(' ')?;
    pair(quota, period)
}

/// A quota of -1, no limit, fails to parse.
fn pair(quota: &str, period: &str) -> Option<(u64, u64)> {
    Some((quota.trim().parse().ok()?, period.trim().parse().ok()?))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// No group limits them.
    All,
    These(CpuSet),
    /// There is a group, but its limit is not visible.
    Hidden,
}

/// CPUs that the control group of a process, by default this one, allows.
pub(super) fn allowed(tree: &Tree, process: Option<u32>) -> Allowed {
    let Some(text) = memberships(tree, process) else {
        return Allowed::All;
    };
    let Some(chain) = Chain::of(tree, process, "cpuset") else {
        return match is_in_some(&text) {
            true => Allowed::Hidden,
            false => Allowed::All,
        };
    };
    // A group without the controller has no such file and inherits from the nearest group above it.
    let files: &[&str] = match chain.version {
        Version::Two => &["cpuset.cpus.effective"],
        Version::One => &VERSION_1_CPUS,
    };
    let read = |directory: &String, name: &&str| {
        let file = format!("{directory}/{name}");
        let text = tree.text(&file)?;
        let cpus = tree.parsed_or_trouble(&file, &text, CpuSet::parse_list(&text))?;
        (!cpus.is_empty()).then_some(cpus)
    };
    let mut places = chain.places.iter();
    let found =
        places.find_map(|(_, directory)| files.iter().find_map(|name| read(directory, name)));
    found.map_or(Allowed::All, Allowed::These)
}

/// Files of version 1 with the CPUs of a group: effective CPUs since Linux 3.17, and without a prefix if mounted as
/// `cpuset` or with `noprefix` (cpuset(7)).
const VERSION_1_CPUS: [&str; 4] = [
    "cpuset.effective_cpus",
    "cpuset.cpus",
    "effective_cpus",
    "cpus",
];

/// Groups of a process by hierarchy. If only `/proc/PID/cpuset` exists (cpuset(7)), its path is used for version 1.
fn memberships(tree: &Tree, process: Option<u32>) -> Option<String> {
    let name = name_of(process);
    let groups = tree
        .text(&format!("/proc/{name}/cgroup"))
        .unwrap_or_default();
    if is_in_some(&groups) {
        return Some(groups);
    }
    let Some(path) = tree.text(&format!("/proc/{name}/cpuset")) else {
        return (!groups.is_empty()).then_some(groups);
    };
    Some(format!("{}\n0:cpuset:{}", groups.trim_end(), path.trim()))
}

fn name_of(process: Option<u32>) -> String {
    process.map_or_else(|| "self".to_owned(), |number| number.to_string())
}

/// Whether there is a group that can limit CPUs: of version 2, or of the cpuset controller in version 1.
fn is_in_some(memberships: &str) -> bool {
    cgroup::path(memberships, "cpuset").is_some()
}

/// A group and its ancestors, nearest first, with their directories.
struct Chain {
    version: Version,
    places: Vec<(String, String)>,
}

impl Chain {
    /// Chain of a process for a controller; `None` if it has no group, or if no visible mount contains the hierarchy.
    fn of(tree: &Tree, process: Option<u32>, controller: &str) -> Option<Chain> {
        let (version, path) = cgroup::path(&memberships(tree, process)?, controller)?;
        let mut viewers = vec!["self".to_owned()];
        viewers.extend(process.map(|number| number.to_string()));
        viewers.push("1".to_owned());
        let mounts = viewers
            .iter()
            .flat_map(|viewer| mounts(tree, viewer, version, controller));
        let reaching: Vec<(String, String)> = mounts
            .filter_map(|(root, point)| Some((cgroup::below(&path, &root)?, point)))
            .collect();
        let is_there = |(_, point): &&(String, String)| !tree.names(point).is_empty();
        let found = reaching.iter().find(is_there);
        // A recording may lack the directory.
        let recorded = reaching.first().filter(|_| !tree.is_live());
        let (inside, point) = found.or(recorded)?.clone();
        let mut places = Vec::new();
        let (mut inside, mut path) = (inside, path);
        for _ in 0..GROUPS_MAX {
            let name = if path.is_empty() { "/" } else { &path };
            places.push((name.to_owned(), format!("{point}{inside}")));
            let Some((above, _)) = inside.rsplit_once('/') else {
                break;
            };
            inside.truncate(above.len());
            let above = path.rsplit_once('/').map_or(0, |(above, _)| above.len());
            path.truncate(above);
        }
        Some(Chain { version, places })
    }
}

/// Mounts of a hierarchy in a process's view: the group at the root of the mount, and its directory in our view.
fn mounts(tree: &Tree, viewer: &str, version: Version, controller: &str) -> Vec<(String, String)> {
    // Other mounts contain names of servers and directories, which must not be recorded.
    let is_group = |line: &str| line.contains(" - cgroup") || line.contains(" - cpuset ");
    let Some(text) = tree.lines(&format!("/proc/{viewer}/mountinfo"), is_group) else {
        // A recording without mountinfo: use systemd's mount points.
        let usual: &[&str] = match (version, controller) {
            (Version::Two, _) => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            (Version::One, "cpu") => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
            (Version::One, _) => &["/sys/fs/cgroup/cpuset", "/dev/cpuset"],
        };
        let found = usual.iter().filter(|_| viewer == "self");
        return found
            .map(|point| ("/".to_owned(), (*point).to_owned()))
            .collect();
    };
    let way = match viewer {
        "self" => String::new(),
        other => format!("/proc/{other}/root"),
    };
    cgroup::mounts(&text, version, controller)
        .map(|(root, point)| (root, format!("{way}{point}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Snapshot;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter();
        Tree::of_snapshot(Snapshot {
            files: files
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
            ..Snapshot::default()
        })
    }

    /// `path quota/period throttled/periods`
    fn told(groups: &[Group]) -> Vec<String> {
        let line = |group: &Group| {
            let quota = group.quota.map_or("-".to_owned(), |(quota, period)| {
                format!("{quota}/{period}")
            });
            format!(
                "{} {quota} {}/{}",
                group.path, group.throttled, group.periods
            )
        };
        groups.iter().map(line).collect()
    }

    const TWO: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn process_cgroups_include_ancestors() {
        let tree = tree(&[
            ("/proc/self/cgroup", "0::/user.slice"),
            ("/proc/77/cgroup", "0::/a/b"),
            ("/proc/self/mountinfo", TWO),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"),
            (
                "/sys/fs/cgroup/a/b/cpu.stat",
                "usage_usec 5\nnr_periods 0\nnr_throttled 0",
            ),
            ("/sys/fs/cgroup/a/cpu.max", "50000 100000"),
            (
                "/sys/fs/cgroup/a/cpu.stat",
                "nr_periods 48\nnr_throttled 48\nthrottled_usec 9",
            ),
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 5"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "200000 100000"),
        ]);
        assert_eq!(
            told(&of_process(&tree, Some(77))),
            ["/a 50000/100000 48/48"]
        );
        assert_eq!(
            told(&of_process(&tree, None)),
            ["/user.slice 200000/100000 0/0"]
        );
        assert_eq!(of_process(&tree, Some(78)), []);
    }

    #[test]
    fn cgroup_v1_is_read_from_its_mount() {
        let tree = tree(&[
            (
                "/proc/77/cgroup",
                "4:cpu,cpuacct:/docker/x/y\n3:cpuset:/\n0::/",
            ),
            (
                "/proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                 31 23 0:28 /docker/x /mnt/c\\040pu rw shared:3 - cgroup cgroup rw,cpu,cpuacct",
            ),
            ("/mnt/c pu/y/cpu.cfs_quota_us", "-1"),
            ("/mnt/c pu/y/cpu.cfs_period_us", "100000"),
            ("/mnt/c pu/cpu.cfs_quota_us", "25000"),
            ("/mnt/c pu/cpu.cfs_period_us", "100000"),
            (
                "/mnt/c pu/cpu.stat",
                "nr_periods 9\nnr_throttled 3\nthrottled_time 77",
            ),
        ]);
        let found = of_process(&tree, Some(77));
        assert!(found.iter().all(|group| group.version == Version::One));
        assert_eq!(told(&found), ["/docker/x 25000/100000 3/9"]);
    }

    #[test]
    fn hidden_cgroup_is_found_via_other_mount_namespace() {
        let files = |viewer: &str, root: &str| {
            tree(&[
                ("/proc/77/cgroup", "0::/../a"),
                (
                    "/proc/self/mountinfo",
                    "30 23 0:26 / /sys rw - sysfs sysfs rw",
                ),
                (
                    &format!("/proc/{viewer}/mountinfo"),
                    &TWO.replace(" / ", &format!(" {root} ")),
                ),
                (
                    &format!("/proc/{viewer}/root/sys/fs/cgroup/a/cpu.max"),
                    "1 2",
                ),
                (
                    &format!("/proc/{viewer}/root/sys/fs/cgroup/a/cpuset.cpus.effective"),
                    "2-3",
                ),
            ])
        };
        for viewer in ["77", "1"] {
            let tree = files(viewer, "/..");
            assert_eq!(told(&of_process(&tree, Some(77))), ["/../a 1/2 0/0"]);
            let expected = CpuSet::parse_list("2-3").expect("a list");
            assert_eq!(allowed(&tree, Some(77)), Allowed::These(expected));
        }
        // Outside of our namespace, and no mount reaches it.
        let nowhere = files("77", "/");
        assert_eq!(of_process(&nowhere, Some(77)), []);
        assert_eq!(allowed(&nowhere, Some(77)), Allowed::Hidden);
    }

    #[test]
    fn snapshot_records_only_cgroup_mounts() {
        let tree = tree(&[
            ("/proc/self/cgroup", "0::/"),
            (
                "/proc/self/mountinfo",
                &format!("40 23 0:44 / /mnt rw - nfs4 10.1.2.3:/export rw\n{TWO}\n"),
            ),
        ]);
        tree.record();
        of_process(&tree, None);
        assert_eq!(tree.recorded().files["/proc/self/mountinfo"], TWO);
    }

    #[test]
    fn cgroup_v1_cpuset_is_found_via_proc_cpuset() {
        let two = Allowed::These(CpuSet::parse_list("2-3").expect("a list"));
        let found = |mount: &str, file: &str, more: &[(&'static str, &'static str)]| {
            let base = [("/proc/self/cpuset", "/a/b"), (file, "2-3")];
            let mut files = [&base[..], more].concat();
            if !mount.is_empty() {
                files.push(("/proc/self/mountinfo", mount));
            }
            let files = files.iter();
            let point = file.split("/a/").next().unwrap_or_default().to_owned();
            let tree = Tree::of_snapshot(Snapshot {
                files: files
                    .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                    .collect(),
                directories: [(point, vec!["a".to_owned()])].into(),
                ..Snapshot::default()
            });
            allowed(&tree, None)
        };
        let one = "31 23 0:28 / /cg rw - cgroup cgroup rw,cpuset,noprefix";
        let old = "31 23 0:28 / /cg rw - cpuset none rw";
        for (mount, file) in [
            ("", "/sys/fs/cgroup/cpuset/a/b/cpuset.cpus"),
            ("", "/sys/fs/cgroup/cpuset/a/b/cpuset.effective_cpus"),
            ("", "/dev/cpuset/a/b/cpus"),
            (one, "/cg/a/b/cpus"),
            (old, "/cg/a/b/effective_cpus"),
            (old, "/cg/a/cpus"),
        ] {
            assert_eq!(found(mount, file, &[]), two, "{mount} {file}");
        }
        // Groups of other controllers do not limit CPUs.
        let others = ("/proc/self/cgroup", "4:memory:/m");
        assert_eq!(found(old, "/cg/a/b/cpus", &[others]), two);
        // The path is known, but no visible mount has the hierarchy.
        let proc = "20 23 0:4 / /proc rw - proc proc rw";
        assert_eq!(found(proc, "/cg/a/b/cpus", &[]), Allowed::Hidden);
    }

    #[test]
    fn cgroup_without_cpuset_inherits_parent_cpus() {
        let base = [
            ("/proc/self/cgroup", "0::/a/b/c"),
            ("/proc/self/mountinfo", TWO),
        ];
        let with = |more: &[(&'static str, &'static str)]| tree(&[&base[..], more].concat());
        assert_eq!(allowed(&with(&[]), None), Allowed::All);
        let one = with(&[("/sys/fs/cgroup/a/cpuset.cpus.effective", "1,3")]);
        let expected = CpuSet::parse_list("1,3").expect("a list");
        assert_eq!(allowed(&one, None), Allowed::These(expected));
        assert_eq!(allowed(&tree(&[]), None), Allowed::All);
    }
}
