//! Time for which CPU quotas throttled this process: of its control group and its ancestors, in cgroup v1 and v2
//! (Linux, Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).

use std::fs;
use std::path::{Path, PathBuf};

use onrush_machine::cgroup::{self, Version};
use onrush_machine::process::number;

/// Longest throttled time of any group (us); `None` if no group has a quota. `root` is `/` except in tests.
pub(super) fn throttled_us(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let (version, path) = cgroup::path(&groups, "cpu")?;
    let (mount, point) = cgroup::mounts(&mounts, version, "cpu").next()?;
    // Within a namespace the group may be outside of the mount: use the root of the mount.
    let below = cgroup::below(&path, &mount).unwrap_or_default();
    let top = root.join(point.trim_start_matches('/'));
    let group = top.join(below.trim_start_matches('/'));
    let above = group.ancestors().take_while(|path| path.starts_with(&top));
    above.filter_map(|path| of_directory(path, version)).max()
}

/// Throttled time of one group, in microseconds; `None` without a quota.
fn of_directory(path: &Path, version: Version) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(PathBuf::from(path).join(file)).unwrap_or_default();
    match version {
        Version::One => {
            let quota: i64 = read("cpu.cfs_quota_us").trim().parse().ok()?;
            let held_ns = number(&read("cpu.stat"), "throttled_time ")?;
            (quota > 0).then_some(held_ns / 1000)
        }
        Version::Two => {
            let quota = read("cpu.max");
            if quota.is_empty() || quota.starts_with("max") {
                return None;
            }
            number(&read("cpu.stat"), "throttled_usec ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        throttled_us(root.path())
    }

    const TWO: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
    const ONE: &str =
        "33 32 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn cgroup_v2_quota_of_ancestor_is_found() {
        let held = (
            "sys/fs/cgroup/a/cpu.stat",
            "usage_usec 5\nthrottled_usec 250000\n",
        );
        let group = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", TWO),
            held,
        ];
        let with = |max| found(&[&group[..], &[("sys/fs/cgroup/a/cpu.max", max)]].concat());
        assert_eq!(with("50000 100000\n"), Some(250_000));
        assert_eq!(with("max 100000\n"), None);
        assert_eq!(found(&group), None);
    }

    #[test]
    fn cgroup_v1_quota_is_found() {
        let files = |quota| {
            found(&[
                (
                    "proc/self/cgroup",
                    "5:memory:/m\n4:cpu,cpuacct:/job\n0::/\n",
                ),
                ("proc/self/mountinfo", ONE),
                ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", quota),
                (
                    "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat",
                    "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000\n",
                ),
            ])
        };
        assert_eq!(files("50000\n"), Some(1500));
        assert_eq!(files("-1\n"), None);
    }

    #[test]
    fn cgroup_at_mount_root_is_found() {
        let mounted = ONE.replace(" / /sys", " /docker/abc /sys");
        let found = found(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n"),
            ("proc/self/mountinfo", &mounted),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "20000\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/cpu.stat",
                "throttled_time 7000\n",
            ),
        ]);
        assert_eq!(found, Some(7));
    }
}
