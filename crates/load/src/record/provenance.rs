//! Provenance of a result: program version, machine, and command line without secrets. Every JSON result begins with it.

pub(crate) mod secret;

use std::env;
use std::fs;

use serde::Serialize;

/// The first keys of every JSON result.
#[derive(Serialize)]
struct Provenance {
    version: &'static str,
    host: Host,
    command_line: Vec<String>,
}

/// The machine. Facts that the kernel does not report are `None`.
#[derive(Serialize)]
struct Host {
    hostname: Option<String>,
    kernel: Option<String>,
    cpus: Option<usize>,
}

/// Writes `result` as JSON after its provenance. The two have different keys.
pub(crate) fn to_json(result: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Whole<'a, T> {
        #[serde(flatten)]
        provenance: Provenance,
        #[serde(flatten)]
        result: &'a T,
    }
    let words = env::args_os().map(|word| word.to_string_lossy().into_owned());
    let provenance = Provenance {
        version: env!("CARGO_PKG_VERSION"),
        host: Host::this(),
        command_line: secret::masked(words),
    };
    serde_json::to_string_pretty(&Whole { provenance, result })
        .expect("numbers, strings, lists, and maps with string keys")
}

impl Host {
    fn this() -> Host {
        let read = |path| fs::read_to_string(path).ok();
        let word = |path| read(path).map(|text| text.trim().to_owned());
        Host {
            hostname: word("/proc/sys/kernel/hostname"),
            kernel: word("/proc/sys/kernel/osrelease"),
            cpus: read("/proc/stat").map(|stat| cpus(&stat)),
        }
    }
}

/// CPUs that are online: lines `cpu0` and so on of /proc/stat (proc_stat(5)).
fn cpus(stat: &str) -> usize {
    let numbers = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    numbers
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_online_cpus_are_counted() {
        assert_eq!(cpus("cpu  1 2\ncpu0 1\ncpu3 1\nintr 5\n"), 2);
    }
}
