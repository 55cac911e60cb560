//! Control groups (cgroups(7)): the group of a process, and where its hierarchy is mounted. Version 1 has a hierarchy for each
//! controller, version 2 one for all; a machine may have both.

use serde::Serialize;

/// Version of the interface of control groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all controllers.
    #[default]
    Two,
}

/// The path of the group of a process in the hierarchy of version 2, from `/proc/PID/cgroup`.
pub fn unified_path(memberships: &str) -> Option<&str> {
    let mut groups = memberships.lines().filter_map(membership);
    groups.find_map(|(controllers, path)| controllers.is_empty().then_some(path))
}

/// The path of the group of a process for a controller, from `/proc/PID/cgroup`. A controller is in version 1
/// or in version 2, never in both.
pub fn path(memberships: &str, controller: &str) -> Option<(Version, String)> {
    let mut groups = memberships.lines().filter_map(membership);
    let one = groups.find(|(names, _)| names.split(',').any(|name| name == controller));
    match one {
        Some((_, path)) => Some((Version::One, path.to_owned())),
        None => unified_path(memberships).map(|path| (Version::Two, path.to_owned())),
    }
}

/// `4:cpu,cpuacct:/a/b`, `0::/a/b`: a path may have colons, too.
fn membership(line: &str) -> Option<(&str, &str)> {
    let mut parts = line.splitn(3, ':').skip(1);
    Some((parts.next()?, parts.next()?))
}

/// Mounts of a controller's hierarchy, from `/proc/PID/mountinfo`: the group at the root of each mount, and the mount
/// point.
///
/// `31 23 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu` (proc_pid_mountinfo(5))
pub fn mounts(
    mountinfo: &str,
    version: Version,
    controller: &str,
) -> impl Iterator<Item = (String, String)> {
    mountinfo.lines().filter_map(move |line| {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let (root, point) = (unescaped(front.next()?), unescaped(front.next()?));
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1).unwrap_or_default());
        let is_it = match version {
            Version::Two => kind == "cgroup2",
            Version::One => {
                kind == controller
                    || kind == "cgroup" && options.split(',').any(|option| option == controller)
            }
        };
        is_it.then_some((root, point))
    })
}

/// Decodes octal escapes in a path of mountinfo: `\040`.
fn unescaped(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = behind
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Path of a group relative to the root of a mount: empty for the root itself, `None` if the group is not below it.
/// Both paths are relative to the reader's control group namespace; a group outside of it begins with `/..`.
pub fn below(path: &str, root: &str) -> Option<String> {
    let rest = match root {
        "/" => path,
        _ => path.strip_prefix(root)?,
    };
    let rest = rest.trim_end_matches('/');
    let leads_down =
        (rest.is_empty() || rest.starts_with('/')) && rest.split('/').all(|part| part != "..");
    leads_down.then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERSHIPS: &str = "9:name=systemd:/\n4:memory:/app:7\n1:cpu,cpuacct:/\n0::/../other\n";
    const MOUNTS: &str = "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        31 23 0:28 /a\\040b /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        32 23 0:29 / /dev/cpuset rw - cpuset none rw\n";

    #[test]
    fn cgroup_v1_and_v2_paths_are_found() {
        let of = |controller| path(MEMBERSHIPS, controller);
        assert_eq!(of("memory"), Some((Version::One, "/app:7".to_owned())));
        assert_eq!(of("cpuset"), Some((Version::Two, "/../other".to_owned())));
        assert_eq!(
            (unified_path(MEMBERSHIPS), path("", "cpu")),
            (Some("/../other"), None)
        );
        let mount = |version, controller| mounts(MOUNTS, version, controller).next();
        let pair = |root: &str, point: &str| Some((root.to_owned(), point.to_owned()));
        assert_eq!(
            mount(Version::One, "cpu"),
            pair("/a b", "/sys/fs/cgroup/cpu")
        );
        assert_eq!(mount(Version::One, "cpuset"), pair("/", "/dev/cpuset"));
        assert_eq!(mount(Version::Two, ""), pair("/", "/sys/fs/cgroup/unified"));
        assert_eq!(mount(Version::One, "memory"), None);
    }

    #[test]
    fn cgroup_outside_mount_root_is_not_visible() {
        assert_eq!(below("/a/b", "/a").as_deref(), Some("/b"));
        assert_eq!(below("/", "/").as_deref(), Some(""));
        assert_eq!((below("/ab", "/a"), below("/../a", "/")), (None, None));
    }
}
