//! `[host.NAME]` and `[[link]]`, and `hosts` of works and variants, which assigns roles to hosts.

use std::collections::BTreeMap;
use std::ops::Range;

use onrush_measure::amount;
use toml::de::DeTable;

use super::namespace::sysctl;
use super::remote::{
    ACCESS_KEYS, SETTING_KEYS, access, check_nodes, invalid_mask, is_mask, settings,
};
use crate::limits::{HOSTS_MAX, INTERFACES_MAX, LINKS_MAX, QUEUES_MAX};
use crate::scenario::network::{Host, Link, Network, target};
use crate::scenario::remote::{Access, Remote, RemoteHost, Settings};
use crate::scenario::section::{At, Read, Section, Source, check_named, unknown};
use crate::scenario::template::{Values, first_unknown, render};
use crate::scenario::value::parse_bits;
use crate::scenario::{Role, Variant};

const LINK_KEYS: &[&str] = &["between", "queues", "interfaces", "rate", "mtu", "steering"];

/// Hosts and links as written: values may contain parameters, which differ between variants.
pub(super) struct Networks<'a> {
    source: Source<'a>,
    hosts: Vec<(At<String>, HostSpec)>,
    links: Vec<At<&'a DeTable<'a>>>,
}

enum HostSpec {
    /// A network namespace and its kernel settings.
    Namespace(BTreeMap<String, String>),
    /// Another machine.
    Machine(Access, Settings),
}

/// Hosts of the roles of a variant; both are `None` without `hosts`.
#[derive(Default)]
pub(super) struct VariantHosts {
    pub(super) network: Option<Network>,
    pub(super) remote: Option<Remote>,
}

impl<'a> Networks<'a> {
    pub(super) fn read(section: &Section<'a>) -> Read<Networks<'a>> {
        let source = section.source;
        let mut hosts = Vec::new();
        if let Some(table) = section.table("host")? {
            let names = Section::names(table.value);
            let keys: Vec<&str> = names.iter().map(|name| name.value).collect();
            let outer = Section::open(source, table.value, table.span, &keys)?;
            for name in names {
                check_named(source, "host", &name)?;
                let inner = outer
                    .table(name.value)?
                    .ok_or_else(|| outer.missing(name.value, "a table"))?;
                let host = written(source, inner.value, name.span.clone())?;
                let name = At {
                    value: name.value.to_owned(),
                    span: name.span,
                };
                hosts.push((name, host));
            }
        }
        let links = section.tables("link")?;
        if hosts.len() > HOSTS_MAX || links.len() > LINKS_MAX {
            return Err(source.mistake(
                0..0,
                format!("expected at most {HOSTS_MAX} hosts and {LINKS_MAX} links"),
            ));
        }
        Ok(Networks {
            source,
            hosts,
            links,
        })
    }

    /// The hosts of a variant, from its own `hosts` or from the `hosts` of its work.
    pub(super) fn of_variant(
        &self,
        work: &Section<'a>,
        own: &Section<'a>,
        variant: &Variant,
    ) -> Read<VariantHosts> {
        let section = if own.value("hosts").is_some() {
            own
        } else {
            work
        };
        let Some(table) = section.table("hosts")? else {
            return Ok(VariantHosts::default());
        };
        if own.value("hosts").is_some() {
            self.check_taken(&table, variant)?;
        }
        let of = self.roles(&table, variant)?;
        let mut used: Vec<usize> = of.values().copied().collect();
        used.sort_unstable();
        used.dedup();
        let is_machine = |host: &usize| matches!(self.hosts[*host].1, HostSpec::Machine(..));
        if used.iter().any(is_machine) {
            let remote = self.machines(&table, &of, &used, variant)?;
            return Ok(VariantHosts {
                remote: Some(remote),
                network: None,
            });
        }
        let place = |host: usize| used.iter().position(|known| *known == host);
        let hosts = used.iter().map(|host| {
            let (name, host) = &self.hosts[*host];
            let sysctl = match host {
                HostSpec::Namespace(sysctl) => self.all_filled(sysctl, &variant.set, &name.span)?,
                HostSpec::Machine(..) => BTreeMap::new(),
            };
            Ok(Host {
                name: name.value.clone(),
                sysctl,
            })
        });
        let hosts = hosts.collect::<Read<Vec<Host>>>()?;
        let mut links = Vec::new();
        for table in &self.links {
            let link = Section::open(self.source, table.value, table.span.clone(), LINK_KEYS)?;
            let ends = self.ends(&link)?;
            if let (Some(a), Some(b)) = (place(ends[0]), place(ends[1])) {
                links.push(self.link(&link, ends, [a, b], &variant.set)?);
            }
        }
        let of = of
            .into_iter()
            .filter_map(|(role, host)| Some((role, place(host)?)));
        let network = Network {
            hosts,
            links,
            of: of.collect(),
        };
        self.check_links(&network, variant, table.span)?;
        Ok(VariantHosts {
            network: Some(network),
            remote: None,
        })
    }

    fn machines(
        &self,
        table: &At<&'a DeTable<'a>>,
        of: &BTreeMap<Role, usize>,
        used: &[usize],
        variant: &Variant,
    ) -> Read<Remote> {
        let mut hosts = Vec::new();
        for host in used {
            let (name, host) = &self.hosts[*host];
            let HostSpec::Machine(access, settings) = host else {
                let said = format!(
                    "`{}` is a network namespace of this machine, but another role is on another machine: expected one kind of host",
                    name.value
                );
                return Err(self.source.mistake(table.span.clone(), said));
            };
            let tune = settings.tune.as_ref();
            let tune = tune.map(|words| self.filled(words, &variant.set, &name.span));
            let settings = Settings {
                sysctl: self.all_filled(&settings.sysctl, &variant.set, &name.span)?,
                steering: self.all_filled(&settings.steering, &variant.set, &name.span)?,
                tune: tune.transpose()?.filter(|words| words != "none"),
            };
            if let Some(odd) = settings.steering.values().find(|mask| !is_mask(mask)) {
                return Err(self.source.mistake(name.span.clone(), invalid_mask(odd)));
            }
            hosts.push(RemoteHost {
                name: name.value.clone(),
                access: access.clone(),
                settings,
            });
        }
        let place = |host: &usize| used.iter().position(|known| known == host);
        let of = of.iter();
        let remote = Remote {
            hosts,
            of: of
                .filter_map(|(role, host)| Some((*role, place(host)?)))
                .collect(),
        };
        check_nodes(&self.source, &remote, &table.span)?;
        Ok(remote)
    }

    fn all_filled(
        &self,
        texts: &BTreeMap<String, String>,
        set: &Values,
        span: &Range<usize>,
    ) -> Read<BTreeMap<String, String>> {
        let filled = texts
            .iter()
            .map(|(key, text)| Ok((key.clone(), self.filled(text, set, span)?)));
        filled.collect()
    }

    fn names(&self) -> Vec<&str> {
        self.hosts
            .iter()
            .map(|(name, _)| name.value.as_str())
            .collect()
    }

    fn host(&self, name: &At<String>) -> Read<usize> {
        let names = self.names();
        names
            .iter()
            .position(|known| *known == name.value)
            .ok_or_else(|| {
                let said = unknown("host", &name.value, &names);
                self.source.mistake(name.span.clone(), said)
            })
    }

    /// Index of the host of each role of the variant.
    fn roles(&self, table: &At<&'a DeTable<'a>>, variant: &Variant) -> Read<BTreeMap<Role, usize>> {
        let names = Role::ALL.map(Role::name);
        let hosts = Section::open(self.source, table.value, table.span.clone(), &names)?;
        let mut of = BTreeMap::new();
        for role in variant.roles.keys() {
            let name = hosts.text(role.name())?.ok_or_else(|| {
                hosts.missing(
                    role.name(),
                    "each role of the variant needs a host, or no role has one",
                )
            })?;
            of.insert(*role, self.host(&name)?);
        }
        Ok(of)
    }

    /// Rejects a host for a role that the variant does not have. `hosts` of a work may include roles that some of its
    /// variants lack.
    fn check_taken(&self, table: &At<&'a DeTable<'a>>, variant: &Variant) -> Read<()> {
        for name in Section::names(table.value) {
            let mut taken = variant.roles.keys();
            if !taken.any(|role| role.name() == name.value) {
                let said = format!("this variant has no {}: remove its host", name.value);
                return Err(self.source.mistake(name.span, said));
            }
        }
        Ok(())
    }

    fn ends(&self, link: &Section<'a>) -> Read<[usize; 2]> {
        let names = link.texts("between")?.ok_or_else(|| {
            let hosts = "expected two hosts, such as [\"left\", \"right\"]";
            link.missing("between", hosts)
        })?;
        let [a, b] = &names[..] else {
            return Err(self
                .source
                .mistake(link.span.clone(), "a link has two ends: expected two hosts"));
        };
        let ends = [self.host(a)?, self.host(b)?];
        if ends[0] == ends[1] {
            let said = "a link connects two different hosts; roles on the same host need none";
            return Err(self.source.mistake(b.span.clone(), said));
        }
        Ok(ends)
    }

    fn link(
        &self,
        link: &Section<'a>,
        written: [usize; 2],
        ends: [usize; 2],
        set: &Values,
    ) -> Read<Link> {
        let number = |key: &str, bounds: Range<u64>| -> Read<Option<u64>> {
            let Some(text) = link.single(key)? else {
                return Ok(None);
            };
            let filled = self.filled(&text.value, set, &text.span)?;
            let number = amount::count(&filled).ok();
            let number = number.filter(|number| bounds.contains(number));
            number.map(Some).ok_or_else(|| {
                let said = format!(
                    "expected a whole number from {} to {} as `{key}`, found `{filled}`",
                    bounds.start,
                    bounds.end - 1
                );
                self.source.mistake(text.span, said)
            })
        };
        let queues = number("queues", 1..QUEUES_MAX + 1)?.unwrap_or(1);
        let interfaces = number("interfaces", 1..INTERFACES_MAX + 1)?.unwrap_or(1);
        // The minimum of IPv4 (RFC 791) and the maximum of veth.
        let mtu = number("mtu", 68..65_536)?;
        let rate = match link.single("rate")? {
            None => None,
            Some(text) => {
                let filled = self.filled(&text.value, set, &text.span)?;
                let said = || {
                    let said = format!(
                        "expected bits per second such as \"1g\" or \"500m\", found `{filled}`"
                    );
                    self.source.mistake(text.span.clone(), said)
                };
                Some(parse_bits(&filled).ok_or_else(said)?)
            }
        };
        Ok(Link {
            ends,
            interfaces: interfaces as u32,
            queues: queues as u32,
            rate,
            mtu: mtu.map(|mtu| mtu as u32),
            steering: self.steering(link, written, set)?,
        })
    }

    fn steering(
        &self,
        link: &Section<'a>,
        ends: [usize; 2],
        set: &Values,
    ) -> Read<[Option<String>; 2]> {
        let mut masks = [None, None];
        let Some(table) = link.table("steering")? else {
            return Ok(masks);
        };
        let names = ends.map(|end| self.hosts[end].0.value.as_str());
        let section = Section::open(self.source, table.value, table.span, &names)?;
        for (mask, name) in masks.iter_mut().zip(names) {
            let Some(text) = section.single(name)? else {
                continue;
            };
            let filled = self.filled(&text.value, set, &text.span)?;
            if !is_mask(&filled) {
                return Err(self.source.mistake(text.span, invalid_mask(&filled)));
            }
            *mask = Some(filled);
        }
        Ok(masks)
    }

    /// Replaces parameters by the values of the variant.
    fn filled(&self, text: &str, set: &Values, span: &Range<usize>) -> Read<String> {
        match first_unknown(text, |name| set.contains_key(name)) {
            None => Ok(render(text, set)),
            Some(stranger) => {
                let names: Vec<&str> = set.keys().map(String::as_str).collect();
                let said = unknown("value", &format!("{{{stranger}}}"), &names);
                Err(self.source.mistake(span.clone(), said))
            }
        }
    }

    /// Checks that there is a link between each role and the role that it connects to.
    fn check_links(&self, network: &Network, variant: &Variant, span: Range<usize>) -> Read<()> {
        for role in variant.roles.keys().filter(|role| **role != Role::Server) {
            let asked = target(*role, || variant.roles.contains_key(&Role::Proxy));
            if network.path_count(*role, asked) > 0 {
                continue;
            }
            let name = |role: Role| {
                let host = network.of.get(&role);
                host.map_or("?", |host| network.hosts[*host].name.as_str())
            };
            let said = format!(
                "the {} on `{}` connects to the {} on `{}`, but no [[link]] connects these hosts",
                role.name(),
                name(*role),
                asked.name(),
                name(asked)
            );
            return Err(self.source.mistake(span, said));
        }
        Ok(())
    }
}

/// Reads a host, which is of exactly one kind.
fn written<'a>(source: Source<'a>, table: &'a DeTable<'a>, span: Range<usize>) -> Read<HostSpec> {
    let kinds: Vec<&str> = ["namespace"].into_iter().chain(ACCESS_KEYS).collect();
    let keys: Vec<&str> = kinds.iter().copied().chain(SETTING_KEYS).collect();
    let host = Section::open(source, table, span.clone(), &keys)?;
    let mut given = kinds.iter().filter(|kind| host.value(kind).is_some());
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        let said = format!(
            "a host has exactly one of `namespace`, `local`, `ssh` and `slurm`; this one has `{one}` and `{other}`"
        );
        return Err(source.mistake(span, said));
    }
    match access(&host)? {
        Some(access) => Ok(HostSpec::Machine(access, settings(&host)?)),
        None => {
            // Rejects `sysctl`, `steering` and `tune`, which only machines have.
            let host = Section::open(source, table, span, &kinds)?;
            sysctl(&host).map(HostSpec::Namespace)
        }
    }
}
