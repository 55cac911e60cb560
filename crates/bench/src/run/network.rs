//! Network of a trial: a namespace for each host, with links between them.
//!
//! A namespace exists as long as a process is in it. An idle process holds each namespace and ends with bench, however
//! bench ends; the kernel then removes the interfaces. So nothing remains to be cleaned up.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::child::{Child, file_of, sleep_until_at_most};
use super::failure::{Failure, Try, failed};
use super::interrupt::Interrupt;
use super::leftover_processes::run_name;
use crate::limits::{READY_POLL, READY_WAIT_MAX};
use crate::scenario::{Host, Link, Network, Role, target};

/// First two octets of the addresses, which exist only in the namespaces. The third is the number of the pair of
/// interfaces, the fourth its end (198.18.0.0/15 is reserved for benchmarks, RFC 2544 C.2.2).
const NETWORK: [u8; 2] = [198, 18];

/// Holds a namespace: a shell that prints `ready` and then sleeps.
const HOLDER: &str = "mount -t sysfs sysfs /sys && echo ready && exec sleep 2147483647";

/// Minimum burst of a shaped interface in bytes. The burst is 1 ms of the rate: 1.25 MB at 10 Gbit/s.
const BURST_BYTES_MIN: u64 = 128 * 1024;

/// A network that exists until it is dropped.
pub(super) struct NetworkNamespaces<'a> {
    network: &'a Network,
    holders: Vec<Child>,
    /// The commands that created it, as for a shell.
    pub(super) commands: Vec<String>,
}

/// Why networks cannot be created on this machine, if so.
pub(super) fn unavailable_reason() -> Option<String> {
    for (program, package) in [
        ("ip", "iproute2"),
        ("tc", "iproute2"),
        ("sysctl", "procps"),
        ("unshare", "util-linux"),
        ("nsenter", "util-linux"),
    ] {
        if file_of(program).is_none() {
            return Some(format!(
                "{program} is not installed: apt-get install {package}"
            ));
        }
    }
    let mut tried = Command::new("unshare");
    tried.args(["--net", "--mount", "true"]);
    let outcome = tried.stdin(Stdio::null()).output();
    match outcome {
        Ok(outcome) if outcome.status.success() => None,
        Ok(outcome) => Some(format!(
            "cannot create network namespaces ({}): run it as root",
            first_line(&outcome.stderr)
        )),
        Err(error) => Some(format!("cannot run unshare: {error}")),
    }
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

impl<'a> NetworkNamespaces<'a> {
    pub(super) fn make(
        network: &'a Network,
        root: &Path,
        interrupt: &Interrupt,
    ) -> Try<NetworkNamespaces<'a>> {
        let mut made = NetworkNamespaces {
            network,
            holders: Vec::new(),
            commands: Vec::new(),
        };
        for (index, host) in network.hosts.iter().enumerate() {
            let directory = root.join(format!("host-{index}"));
            fs::create_dir_all(&directory)?;
            let line = ["unshare", "--net", "--mount", "sh", "-c", HOLDER].map(String::from);
            let holder = Child::start(&line, &directory, &run_name(root))?;
            wait_for_holder(host, &holder, interrupt)?;
            made.holders.push(holder);
            made.run_in_namespace(index, &["ip", "link", "set", "lo", "up"])?;
        }
        for (index, link) in network.links.iter().enumerate() {
            for interface in 0..link.interfaces {
                made.link(index, link, interface)?;
            }
        }
        // After the links, because some settings belong to interfaces.
        for (index, host) in network.hosts.iter().enumerate() {
            made.settings(index, host)?;
        }
        Ok(made)
    }

    fn link(&mut self, index: usize, link: &Link, interface: u32) -> Try<()> {
        let subnet = self.network.subnet(index, interface);
        let name = format!("veth{subnet}");
        let queues = link.queues.to_string();
        let process = |end: usize, made: &NetworkNamespaces<'_>| {
            made.holders[link.ends[end]].id().to_string()
        };
        let (left, right) = (process(0, self), process(1, self));
        let of_end = |process: &str| -> Vec<String> {
            let words = [
                "name",
                &name,
                "numrxqueues",
                &queues,
                "numtxqueues",
                &queues,
                "netns",
                process,
            ];
            words.map(String::from).into()
        };
        let mut add: Vec<String> = ["ip", "link", "add"].map(String::from).into();
        add.extend(of_end(&left));
        add.extend(["type", "veth", "peer"].map(String::from));
        add.extend(of_end(&right));
        self.command(add)?;
        for (end, &host) in link.ends.iter().enumerate() {
            let address = format!("{}/24", address(subnet, end));
            self.run_in_namespace(host, &["ip", "address", "add", &address, "dev", &name])?;
            if let Some(mtu) = link.mtu {
                self.run_in_namespace(
                    host,
                    &["ip", "link", "set", &name, "mtu", &mtu.to_string()],
                )?;
            }
            self.run_in_namespace(host, &["ip", "link", "set", &name, "up"])?;
            if let Some(rate) = link.rate {
                self.shape(host, &name, rate)?;
            }
            if let Some(mask) = &link.steering[end] {
                self.set_rps_mask(host, &name, link.queues, mask)?;
            }
        }
        Ok(())
    }

    fn shape(&mut self, host: usize, name: &str, rate: u64) -> Try<()> {
        let rate_text = format!("{rate}bit");
        let burst = (rate / 8 / 1_000).max(BURST_BYTES_MIN).to_string();
        let words = [
            "tc", "qdisc", "replace", "dev", name, "root", "tbf", "rate", &rate_text,
        ];
        let more = ["burst", &burst, "latency", "20ms"];
        self.run_in_namespace(host, &[&words[..], &more[..]].concat())?;
        Ok(())
    }

    /// Sets the RPS mask of each receive queue, and verifies it.
    fn set_rps_mask(&mut self, host: usize, name: &str, queues: u32, mask: &str) -> Try<()> {
        for queue in 0..queues {
            let path = format!("/sys/class/net/{name}/queues/rx-{queue}/rps_cpus");
            // /sys of the holder shows the interfaces of its namespace.
            let seen = format!("/proc/{}/root{path}", self.holders[host].id());
            fs::write(&seen, mask).or_else(|error| {
                let host = &self.network.hosts[host].name;
                failed(format!(
                    "the steering mask `{mask}` was refused on `{host}`: {error}"
                ))
            })?;
            let host = &self.network.hosts[host].name;
            self.commands.push(format!("({host}) echo {mask} > {path}"));
        }
        Ok(())
    }

    fn settings(&mut self, index: usize, host: &Host) -> Try<()> {
        for (name, value) in &host.sysctl {
            let setting = format!("{name}={value}");
            // One argument, although the value may contain blanks.
            let complaint = self.run_in_namespace(index, &["sysctl", "-q", "-w", &setting])?;
            // sysctl(8) only warns about a read-only setting and exits with 0.
            if !complaint.is_empty() {
                let host = &host.name;
                return failed(format!(
                    "`{setting}` is not in force on host `{host}`: it is a setting of the whole machine, which a \
                     namespace can only read (sysctl reports: {complaint})"
                ));
            }
        }
        Ok(())
    }

    /// Runs a command in a host's namespace and returns the first line of its error output, usually empty.
    fn run_in_namespace(&mut self, host: usize, words: &[&str]) -> Try<String> {
        let line = words.iter().map(|word| (*word).to_owned()).collect();
        self.command(self.entered(host, line))
    }

    fn command(&mut self, line: Vec<String>) -> Try<String> {
        let said = line.join(" ");
        let outcome = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::null())
            .output()
            .or_else(|error| failed(format!("cannot create the network: `{said}`: {error}")))?;
        let complaint = first_line(&outcome.stderr);
        if !outcome.status.success() {
            let why = match complaint.as_str() {
                "" => "it printed no reason",
                why => why,
            };
            return failed(format!(
                "cannot create the network: `{said}` reports: {why}"
            ));
        }
        self.commands.push(said);
        Ok(complaint)
    }

    fn entered(&self, host: usize, line: Vec<String>) -> Vec<String> {
        let net = format!("--net=/proc/{}/ns/net", self.holders[host].id());
        let mut entered = vec!["nsenter".to_owned(), net];
        entered.extend(line);
        entered
    }

    /// Command line that runs `line` on a role's host.
    pub(super) fn of_role(&self, role: Role, line: Vec<String>) -> Vec<String> {
        match self.network.of.get(&role) {
            Some(host) => self.entered(*host, line),
            None => line,
        }
    }

    /// A process in the namespace of a role's host.
    pub(super) fn process_of(&self, role: Role) -> Option<u32> {
        let host = self.network.of.get(&role)?;
        Some(self.holders[*host].id())
    }

    /// Addresses at which a role reaches its target, one for each pair of interfaces.
    pub(super) fn targets(&self, role: Role) -> Vec<Ipv4Addr> {
        let has_proxy = || self.network.of.contains_key(&Role::Proxy);
        let asked = target(role, has_proxy);
        let (Some(&from), Some(&to)) = (self.network.of.get(&role), self.network.of.get(&asked))
        else {
            return Vec::new();
        };
        let Some((link, end)) = self.network.between(from, to) else {
            return vec![Ipv4Addr::LOCALHOST];
        };
        let ways = 0..self.network.links[link].interfaces;
        ways.map(|way| address(self.network.subnet(link, way), end))
            .collect()
    }

    /// Whether a port of a role's host accepts connections, tested on that host.
    pub(super) fn is_listening(&self, role: Role, port: u16) -> bool {
        let Some(host) = self.network.of.get(&role) else {
            return false;
        };
        let own = self
            .network
            .links
            .iter()
            .enumerate()
            .find_map(|(index, link)| {
                let end = link.ends.iter().position(|end| end == host)?;
                Some(address(self.network.subnet(index, 0), end))
            });
        let address = SocketAddr::from((own.unwrap_or(Ipv4Addr::LOCALHOST), port));
        let process = self.holders[*host].id();
        // In a separate thread, which cannot return to the namespace that it leaves.
        let asked = thread::spawn(move || connect_inside(process, address));
        asked.join().is_ok_and(|connected| connected.is_ok())
    }
}

fn connect_inside(process: u32, address: SocketAddr) -> io::Result<TcpStream> {
    let namespace = fs::File::open(format!("/proc/{process}/ns/net"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    TcpStream::connect_timeout(&address, Duration::from_secs(1))
}

fn address(subnet: u32, end: usize) -> Ipv4Addr {
    let [a, b] = NETWORK;
    // 32 links with 16 pairs are 512 networks.
    let (high, low) = ((subnet / 256) as u8, (subnet % 256) as u8);
    Ipv4Addr::new(a, b + high, low, end as u8 + 1)
}

fn wait_for_holder(host: &Host, holder: &Child, interrupt: &Interrupt) -> Try<()> {
    let deadline = Instant::now() + READY_WAIT_MAX;
    loop {
        if holder.output().contains("ready") {
            return Ok(());
        }
        if interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        if holder.has_ended() || Instant::now() > deadline {
            return failed(format!(
                "cannot create host `{}`; {}",
                host.name,
                holder.output_tail()
            ));
        }
        sleep_until_at_most(READY_POLL, deadline);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Error of creating a network of one host with this setting.
    fn refusal(setting: (&str, &str)) -> Option<String> {
        let network = Network {
            hosts: vec![Host {
                name: "left".into(),
                sysctl: BTreeMap::from([(setting.0.into(), setting.1.into())]),
            }],
            links: Vec::new(),
            of: BTreeMap::new(),
        };
        let root = tempfile::tempdir().expect("a directory");
        let interrupt = Interrupt::listen().expect("signals can be listened for");
        match NetworkNamespaces::make(&network, root.path(), &interrupt) {
            Ok(_) => None,
            Err(failure) => Some(format!("{failure:?}")),
        }
    }

    #[test]
    fn ineffective_setting_is_an_error() {
        if let Some(why) = unavailable_reason() {
            eprintln!("skipped: {why}");
            return;
        }
        assert_eq!(refusal(("net.ipv4.tcp_fin_timeout", "7")), None);
        let said = refusal(("net.core.rmem_max", "99999")).expect("it is read-only there");
        assert!(
            said.contains("`net.core.rmem_max=99999` is not in force on host `left`"),
            "{said}"
        );
        let said = refusal(("net.nonsense", "1")).expect("nobody has it");
        assert!(said.contains("net.nonsense"), "{said}");
    }

    #[test]
    fn interface_pairs_have_distinct_addresses() {
        assert_eq!(address(0, 0).to_string(), "198.18.0.1");
        assert_eq!(address(7, 1).to_string(), "198.18.7.2");
        assert_eq!(address(256, 1).to_string(), "198.19.0.2");
    }
}
