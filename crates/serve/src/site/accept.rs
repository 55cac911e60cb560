//! Chooses how new connections are distributed to cores: by the CPU that receives the packets, if that spreads them
//! evenly, or by a hash of addresses and ports. Pure.

use std::fmt;

use onrush_config::plan::{Accept, Address, Listener};
use onrush_engine::Errno;

/// CPUs that receive packets, found by the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivingCpus {
    /// CPUs online: local clients may run on any of them.
    pub online: Vec<usize>,
    /// CPUs that receive packets from the network, or why they are unknown.
    pub network: Result<Vec<usize>, String>,
}

/// How connections are distributed to cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DistributionMethod {
    Cpu,
    Hash,
}

/// How connections are distributed to cores, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    pub(crate) by: DistributionMethod,
    why: String,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            DistributionMethod::Cpu => "CPU",
            DistributionMethod::Hash => "hash",
        };
        write!(f, "connections to cores by {by} ({})", self.why)
    }
}

impl Distribution {
    /// The choice if the kernel refused to distribute by CPU.
    ///
    /// # Errors
    /// A sentence, if the plan requires it.
    pub(crate) fn refused(wish: Accept, errno: Errno) -> Result<Self, String> {
        let why = format!("the kernel does not report CPUs: {errno}");
        match wish {
            Accept::Cpu => Err(format!("{why}; set accept = \"auto\" or \"hash\"")),
            Accept::Auto | Accept::Hash => Ok(Self::by_hash(&why)),
        }
    }

    fn by_hash(why: &str) -> Self {
        Self {
            by: DistributionMethod::Hash,
            why: format!("auto: {why}"),
        }
    }

    fn asked(by: DistributionMethod) -> Self {
        Self {
            by,
            why: "as asked".into(),
        }
    }
}

/// Chooses for cores on these `cpus`. Returns `None` for one core, or if all listeners are Unix sockets, whose queue
/// all cores share. `before` is the choice of the process that this one replaces.
///
/// # Errors
/// A sentence, if the configured choice is impossible.
pub(crate) fn choose(
    wish: Accept,
    cpus: &[Option<usize>],
    listen: &[Listener],
    arrival: Option<&ReceivingCpus>,
    before: Option<DistributionMethod>,
) -> Result<Option<Distribution>, String> {
    let is_tcp = |listen: &Listener| matches!(listen.address, Address::Tcp(_));
    if cpus.len() == 1 || !listen.iter().any(is_tcp) {
        return Ok(None);
    }
    let own = own_cpus(cpus);
    let chosen = match (wish, own) {
        (Accept::Hash, _) => Distribution::asked(DistributionMethod::Hash),
        (Accept::Cpu, Err(why)) => return Err(format!("{why}; {}", cpu_pinning_advice(cpus))),
        (Accept::Cpu, Ok(_)) => Distribution::asked(DistributionMethod::Cpu),
        (Accept::Auto, Err(why)) => Distribution::by_hash(&why),
        (Accept::Auto, Ok(own)) => match (before, why_not(&own, listen, arrival)) {
            (Some(by), _) => Distribution {
                by,
                why: "auto: as in the previous process".into(),
            },
            (None, Some(why)) => Distribution::by_hash(&why),
            (None, None) => Distribution {
                by: DistributionMethod::Cpu,
                why: "auto: one core per CPU that receives packets".into(),
            },
        },
    };
    Ok(Some(chosen))
}

/// The CPU of each core, if no two cores share one.
fn own_cpus(cpus: &[Option<usize>]) -> Result<Vec<usize>, String> {
    let pinned: Option<Vec<usize>> = cpus.iter().copied().collect();
    let Some(pinned) = pinned else {
        return Err("the cores are not pinned".into());
    };
    let shared = |(at, cpu): (usize, &usize)| pinned[..at].contains(cpu).then_some(*cpu);
    match pinned.iter().enumerate().find_map(shared) {
        Some(cpu) => Err(format!("cores share CPU {cpu}")),
        None => Ok(pinned),
    }
}

/// Advice if not every core has its own CPU.
fn cpu_pinning_advice(cpus: &[Option<usize>]) -> String {
    let cores = cpus.len();
    let what = match cpus.iter().all(Option::is_some) {
        true => {
            format!(
                "{cores} threads need {cores} CPUs: list as many in cpus, or start fewer threads"
            )
        }
        // Fewer cores than CPUs.
        false => format!(
            "list a CPU for each of the {cores} threads, such as cpus = \"0-{}\", or start as many threads as there are CPUs",
            cores - 1
        ),
    };
    format!("{what}, or set accept = \"auto\"")
}

/// Why distribution by CPU would be uneven for cores on these CPUs.
fn why_not(own: &[usize], listen: &[Listener], arrival: Option<&ReceivingCpus>) -> Option<String> {
    let Some(arrival) = arrival else {
        return Some("the CPUs that receive packets are unknown".into());
    };
    let is_local = |listen: &Listener| match &listen.address {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    };
    // On the loopback interface, packets are received on the sender's CPU.
    let taking = match (listen.iter().all(is_local), &arrival.network) {
        (true, _) => &arrival.online,
        (false, Ok(cpus)) => cpus,
        (false, Err(why)) => return Some(why.clone()),
    };
    let without = |cpus: &[usize], others: &[usize]| {
        let mut cpus = cpus.iter().copied();
        cpus.find(|cpu| !others.contains(cpu))
    };
    if let Some(cpu) = without(taking, own) {
        return Some(format!("CPU {cpu} receives packets and has no core"));
    }
    let cpu = without(own, taking)?;
    Some(format!("CPU {cpu} has a core and receives no packets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(addresses: &[&str]) -> Vec<Listener> {
        let listen = |text: &&str| onrush_config::address::parse_listen(text).expect("an address");
        addresses.iter().map(listen).collect()
    }

    fn said(
        wish: Accept,
        cpus: &[Option<usize>],
        addresses: &[&str],
        arrival: &ReceivingCpus,
    ) -> String {
        match choose(wish, cpus, &listening(addresses), Some(arrival), None) {
            Ok(None) => "nothing".into(),
            Ok(Some(accepting)) => accepting.to_string(),
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn cpu_distribution_requires_matching_cores() {
        let arrival = |network: Result<&[usize], &str>| ReceivingCpus {
            online: vec![0, 1],
            network: network.map(<[usize]>::to_vec).map_err(str::to_owned),
        };
        let both = arrival(Ok(&[0, 1]));
        let two = [Some(0), Some(1)];
        let (local, all) = (&["127.0.0.1:80"][..], &[":80"][..]);
        let by_cpu = "connections to cores by CPU (auto: one core per CPU that receives packets)";
        let by_hash = |why: &str| format!("connections to cores by hash (auto: {why})");
        for (cpus, addresses, arrival, expected) in [
            (&two[..], local, &both, by_cpu.to_owned()),
            (&two, all, &both, by_cpu.to_owned()),
            (&two, &["[::1]:80", "unix:/a"], &both, by_cpu.to_owned()),
            (&[Some(1), Some(0)], all, &both, by_cpu.to_owned()),
            (&[Some(0)], all, &both, "nothing".to_owned()),
            (&two, &["unix:/a"], &both, "nothing".to_owned()),
            (
                &[None, None],
                all,
                &both,
                by_hash("the cores are not pinned"),
            ),
            (
                &[Some(0), Some(0)],
                all,
                &both,
                by_hash("cores share CPU 0"),
            ),
            (
                &two,
                all,
                &arrival(Ok(&[0, 1, 2])),
                by_hash("CPU 2 receives packets and has no core"),
            ),
            (
                &two,
                all,
                &arrival(Ok(&[0])),
                by_hash("CPU 1 has a core and receives no packets"),
            ),
            (&two, all, &arrival(Err("veth0 …")), by_hash("veth0 …")),
            // For loopback the CPUs are known.
            (&two, local, &arrival(Err("veth0 …")), by_cpu.to_owned()),
            (
                &[Some(1), Some(2)],
                local,
                &both,
                by_hash("CPU 0 receives packets and has no core"),
            ),
        ] {
            let said = said(Accept::Auto, cpus, addresses, arrival);
            assert_eq!(said, expected, "{cpus:?} {addresses:?} {arrival:?}");
        }
        let unknown = choose(Accept::Auto, &two, &listening(all), None, None).expect("no wish");
        let like_before = choose(
            Accept::Auto,
            &two,
            &listening(all),
            None,
            Some(DistributionMethod::Cpu),
        );
        let like_before = like_before.expect("no wish").expect("two cores");
        assert_eq!(like_before.by, DistributionMethod::Cpu);
        let unknown = unknown.expect("two cores").to_string();
        assert_eq!(
            unknown,
            by_hash("the CPUs that receive packets are unknown")
        );
    }

    #[test]
    fn configured_distribution_is_used_or_refused() {
        let arrival = ReceivingCpus {
            online: vec![0, 1, 2, 3],
            network: Ok(vec![3]),
        };
        let two = [Some(0), Some(1)];
        for (wish, cpus, expected) in [
            (
                Accept::Cpu,
                &two[..],
                "connections to cores by CPU (as asked)",
            ),
            (
                Accept::Cpu,
                &[None, None],
                "error: the cores are not pinned; list a CPU for each of the 2 threads, such as cpus = \"0-1\", or start as many threads as there are CPUs, or set accept = \"auto\"",
            ),
            (
                Accept::Cpu,
                &[Some(1), Some(1)],
                "error: cores share CPU 1; 2 threads need 2 CPUs: list as many in cpus, or start fewer threads, or set accept = \"auto\"",
            ),
            (
                Accept::Hash,
                &two,
                "connections to cores by hash (as asked)",
            ),
            (
                Accept::Hash,
                &[None, None],
                "connections to cores by hash (as asked)",
            ),
        ] {
            assert_eq!(said(wish, cpus, &[":80"], &arrival), expected);
        }
    }

    #[test]
    fn kernel_refusal_falls_back_to_hash() {
        let refused = |wish| Distribution::refused(wish, Errno::NOPROTOOPT);
        assert_eq!(
            refused(Accept::Auto).map(|chosen| chosen.by),
            Ok(DistributionMethod::Hash)
        );
        let why = refused(Accept::Cpu).expect_err("it was asked for");
        assert!(
            why.starts_with("the kernel does not report CPUs: "),
            "{why}"
        );
    }
}
