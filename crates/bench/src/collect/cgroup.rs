//! Control group of the programs: time throttled by its CPU quota, memory, and pressure (cgroups(7)). Supports both
//! versions, also mounted together.

use std::path::PathBuf;
use std::time::Duration;

use onrush_machine::cgroup::{self, Version};

use super::counters::{Count, Counters};
use super::pressure::{RESOURCES, pressure};
use super::source::{KernelFile, Root};

/// Files of a control group.
#[derive(Debug)]
pub struct ControlGroup {
    files: Vec<(Kind, KernelFile)>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Cpu,
    Memory,
    Pressure(&'static str),
}

const SUBJECT: &str = "cgroup";

impl ControlGroup {
    /// Finds the control group of a process. Programs inherit it from bench.
    pub fn find(root: &Root, process: &str) -> ControlGroup {
        let mut buffer = Vec::new();
        let mut text = |name: &str| {
            let mut file = root.proc(&format!("{process}/{name}"));
            file.read(&mut buffer).unwrap_or_default().into_owned()
        };
        let places = places(&text("mountinfo"), &text("cgroup"));
        let mut files = Vec::new();
        for place in &places {
            let mut names = vec![
                (Kind::Cpu, "cpu.stat".to_owned()),
                (Kind::Memory, "memory.current".to_owned()),
                (Kind::Memory, "memory.usage_in_bytes".to_owned()),
            ];
            names.extend(
                RESOURCES
                    .map(|resource| (Kind::Pressure(resource), format!("{resource}.pressure"))),
            );
            for (kind, name) in names {
                let mut file = root.file(place.join(name));
                if file.read(&mut buffer).is_some() {
                    files.push((kind, file));
                }
            }
        }
        ControlGroup { files }
    }

    /// Whether none of its files can be read.
    pub fn is_absent(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds the current counters.
    pub fn read(&mut self, buffer: &mut Vec<u8>, counters: &mut Counters) {
        for (kind, file) in &mut self.files {
            let text = file.read(buffer).unwrap_or_default();
            match kind {
                Kind::Cpu => cpu(&text, counters),
                Kind::Memory => {
                    if let Ok(bytes) = text.trim().parse() {
                        counters.add(SUBJECT, [("memory_bytes", Count::Gauge(bytes))]);
                    }
                }
                Kind::Pressure(resource) => pressure(resource, SUBJECT, &text, counters),
            }
        }
    }
}

/// Reads `cpu.stat`. `nr_periods` counts periods with work, `nr_throttled` those in which the quota was used up.
fn cpu(text: &str, counters: &mut Counters) {
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let value: u64 = value.trim().parse().ok()?;
        match name {
            "nr_periods" => Some(("quota_periods", Count::Total(value))),
            "nr_throttled" => Some(("throttled_periods", Count::Total(value))),
            "throttled_usec" => Some(("throttled", Count::Time(Duration::from_micros(value)))),
            "throttled_time" => Some(("throttled", Count::Time(Duration::from_nanos(value)))),
            "usage_usec" => Some(("cpus", Count::Time(Duration::from_micros(value)))),
            _ => None,
        }
    });
    counters.add(SUBJECT, values);
}

/// Directories of the process's groups, from its `mountinfo` and `cgroup` files: CPU and memory controllers of version
/// 1, and version 2.
fn places(mountinfo: &str, groups: &str) -> Vec<PathBuf> {
    let one = |controller: &'static str| {
        let (version, path) = cgroup::path(groups, controller)?;
        (version == Version::One).then_some((version, controller, path))
    };
    let two = || Some((Version::Two, "", cgroup::unified_path(groups)?.to_owned()));
    let found = [one("cpu"), one("memory"), two()].into_iter().flatten();
    let place = |(version, controller, path): (Version, &str, String)| {
        let (root, point) = cgroup::mounts(mountinfo, version, controller).next()?;
        // A group outside of the mount is above this namespace: use the root of the mount.
        Some(PathBuf::from(
            point + &cgroup::below(&path, &root).unwrap_or_default(),
        ))
    };
    let mut places: Vec<PathBuf> = found.filter_map(place).collect();
    // Both controllers of version 1 may share a hierarchy.
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_v1_and_v2_mounts_are_found() {
        let mounts = "24 23 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            31 24 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
            32 24 0:29 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
            33 24 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            34 24 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let groups =
            "9:name=systemd:/\n4:memory:/app/7\n3:cpuset:/\n1:cpu,cpuacct:/\n0::/../other\n";
        let expected = [
            "/sys/fs/cgroup/cpu",
            "/sys/fs/cgroup/memory/app/7",
            "/sys/fs/cgroup/unified",
        ];
        assert_eq!(places(mounts, groups), expected.map(PathBuf::from));
        let only_new = places(
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "0::/user.slice/a",
        );
        assert_eq!(only_new, [PathBuf::from("/sys/fs/cgroup/user.slice/a")]);
        assert!(places("", groups).is_empty() && places(mounts, "nothing").is_empty());
    }

    #[test]
    fn throttled_time_is_read_from_v1_and_v2() {
        let new = "usage_usec 1800000\nuser_usec 748209561\nnr_periods 5\nnr_throttled 3\nthrottled_usec 1500\n";
        let mut counters = Counters::default();
        cpu(new, &mut counters);
        let at = |measure| counters.at(SUBJECT, measure);
        assert_eq!(
            at("throttled"),
            Some(Count::Time(Duration::from_micros(1_500)))
        );
        assert_eq!(at("throttled_periods"), Some(Count::Total(3)));
        assert_eq!(
            at("cpus"),
            Some(Count::Time(Duration::from_micros(1_800_000)))
        );
        let mut counters = Counters::default();
        cpu(
            "nr_periods 5\nnr_throttled 3\nthrottled_time 1500000\n",
            &mut counters,
        );
        let throttled = counters.at(SUBJECT, "throttled");
        assert_eq!(throttled, Some(Count::Time(Duration::from_micros(1_500))));
    }

    #[test]
    fn cgroup_files_are_read_together() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(path("proc/7")).expect("a directory");
        std::fs::create_dir_all(path("group/a")).expect("a directory");
        let mounts = format!(
            "30 23 0:26 / {} rw - cgroup2 cgroup2 rw\n",
            path("group").display()
        );
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n";
        for (name, text) in [
            ("proc/7/mountinfo", mounts.as_str()),
            ("proc/7/cgroup", "0::/a\n"),
            ("group/a/cpu.stat", "usage_usec 5\n"),
            ("group/a/memory.current", "4096\n"),
            ("group/a/io.pressure", pressure),
        ] {
            std::fs::write(path(name), text).expect("a file");
        }
        let root = Root::at(&path("proc"), &path("sys"));
        let mut group = ControlGroup::find(&root, "7");
        let mut counters = Counters::default();
        group.read(&mut Vec::new(), &mut counters);
        let at = |measure| counters.at(SUBJECT, measure);
        assert_eq!(at("memory_bytes"), Some(Count::Gauge(4_096.0)));
        assert_eq!(at("cpus"), Some(Count::Time(Duration::from_micros(5))));
        assert_eq!(
            at("io_some_waiting"),
            Some(Count::Time(Duration::from_micros(77)))
        );
        assert!(ControlGroup::find(&root, "8").is_absent());
    }
}
