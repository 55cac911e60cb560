//! Clock frequency of each CPU, if the machine reports it.
//!
//! The source is the cpufreq driver, otherwise `/proc/cpuinfo` on x86. In a virtual machine without a cpufreq driver,
//! `/proc/cpuinfo` has the nominal frequency, so it is ignored.

use onrush_machine::cpus::CpuSet;

use super::counters::{Count, Counters};
use super::source::{KernelFile, Root};

/// Source of frequencies.
#[derive(Debug)]
pub enum Frequency {
    /// cpufreq: a file in kilohertz for each CPU.
    Driver(Vec<(usize, KernelFile)>),
    /// `/proc/cpuinfo`.
    Cpuinfo(KernelFile),
    /// Unknown, with the reason.
    Absent(&'static str),
}

impl Frequency {
    /// Finds the source of this machine.
    pub fn find(root: &Root) -> Frequency {
        let mut buffer = Vec::new();
        let online = root.sys_path("devices/system/cpu/online");
        let list = root
            .file(online)
            .read(&mut buffer)
            .map(|text| CpuSet::parse_list(&text).unwrap_or_default());
        let mut files = Vec::new();
        for cpu in list.unwrap_or_default().iter() {
            let name = format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
            let mut file = root.file(root.sys_path(&name));
            if file.read(&mut buffer).is_some() {
                files.push((cpu, file));
            }
        }
        if !files.is_empty() {
            return Frequency::Driver(files);
        }
        let mut cpuinfo = root.proc("cpuinfo");
        let text = cpuinfo.read(&mut buffer).unwrap_or_default();
        if is_virtual(&text) {
            return Frequency::Absent("a virtual machine does not report it");
        }
        if megahertz(&text).next().is_none() {
            return Frequency::Absent("neither cpufreq nor /proc/cpuinfo contains it");
        }
        Frequency::Cpuinfo(cpuinfo)
    }

    /// Adds `mhz` for each CPU.
    pub fn read(&mut self, buffer: &mut Vec<u8>, counters: &mut Counters) {
        match self {
            Frequency::Driver(files) => {
                for (cpu, file) in files {
                    let text = file.read(buffer);
                    if let Some(khz) = text.and_then(|text| text.trim().parse::<f64>().ok()) {
                        counters.add(format!("cpu{cpu}"), [("mhz", Count::Gauge(khz / 1e3))]);
                    }
                }
            }
            Frequency::Cpuinfo(file) => {
                let text = file.read(buffer).unwrap_or_default();
                for (cpu, mhz) in megahertz(&text) {
                    counters.add(format!("cpu{cpu}"), [("mhz", Count::Gauge(mhz))]);
                }
            }
            Frequency::Absent(_) => {}
        }
    }
}

fn is_virtual(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| {
        line.split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

/// CPU and megahertz, from `processor` and `cpu MHz`.
fn megahertz(cpuinfo: &str) -> impl Iterator<Item = (usize, f64)> {
    let mut cpu = None;
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        match name.trim_end() {
            "processor" => {
                cpu = value.trim().parse::<usize>().ok();
                None
            }
            "cpu MHz" => Some((cpu?, value.trim().parse().ok()?)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Creates files in a directory and reads the frequencies there.
    fn found(files: &[(&str, &str)]) -> Result<Counters, &'static str> {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        let root = Root::at(
            &directory.path().join("proc"),
            &directory.path().join("sys"),
        );
        let mut frequency = Frequency::find(&root);
        let mut counters = Counters::default();
        frequency.read(&mut Vec::new(), &mut counters);
        match frequency {
            Frequency::Absent(why) => Err(why),
            Frequency::Driver(_) | Frequency::Cpuinfo(_) => Ok(counters),
        }
    }

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: A CPU @ 2.60GHz\ncpu MHz\t\t: 2599.998\nflags\t\t: fpu vme\n\n\
        processor\t: 1\ncpu MHz\t\t: 3100.250\nflags\t\t: fpu vme\n";

    #[test]
    fn cpufreq_takes_precedence_over_cpuinfo() {
        let files = [
            ("sys/devices/system/cpu/online", "0-1\n"),
            (
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq",
                "3400000\n",
            ),
            ("proc/cpuinfo", CPUINFO),
        ];
        let by_driver = found(&files).expect("frequencies");
        assert_eq!(by_driver.at("cpu1", "mhz"), Some(Count::Gauge(3_400.0)));
        assert_eq!(by_driver.at("cpu0", "mhz"), None);
        let by_cpuinfo = found(&files[2..]).expect("frequencies");
        assert_eq!(by_cpuinfo.at("cpu1", "mhz"), Some(Count::Gauge(3_100.25)));
    }

    #[test]
    fn unknown_frequency_has_a_reason() {
        let cpuinfo = CPUINFO.replace("fpu vme", "fpu hypervisor vme");
        assert!(found(&[("proc/cpuinfo", &cpuinfo)]).is_err_and(|why| why.contains("virtual")));
        let arm = "processor\t: 0\nBogoMIPS\t: 243.75\n";
        assert!(found(&[("proc/cpuinfo", arm)]).is_err_and(|why| why.contains("neither")));
    }
}
