//! Model of a kernel with a driver, for behaviour that plain files do not have.

use std::collections::BTreeMap;
use std::io;

use onrush_machine::cpus::CpuSet;
use onrush_tune::Error;
use onrush_tune::apply::{self, Location};
use onrush_tune::facts::ethtool::{Channels, DriverSetting, Ethtool};
use onrush_tune::facts::process::Thread;
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::{Snapshot, Tree};

use super::Machine;

/// A change of the number of queues changes interrupt numbers and clears masks.
pub(crate) struct Model {
    pub(crate) shape: Machine,
    pub(crate) threads: BTreeMap<Location, CpuSet>,
    snapshot: Snapshot,
}

impl Model {
    pub(crate) fn new(shape: Machine, combined_max: u32) -> Model {
        let mut model = Model {
            snapshot: Snapshot::default(),
            threads: BTreeMap::new(),
            shape,
        };
        let channels = Channels {
            combined_max: Some(combined_max),
            ..Channels::default()
        };
        let said = Ethtool {
            channels: Some(channels),
            ..Ethtool::default()
        };
        model.snapshot.ethtool.insert("eth0".to_owned(), said);
        model.rebuild();
        model
    }

    /// Writes the shape's files again, except settings that are not about queues.
    fn rebuild(&mut self) {
        let root = self.shape.write();
        let tree = Tree::open(root.path()).expect("a root");
        tree.record();
        facts::read(&tree, None).expect("facts");
        let mut fresh = tree.recorded();
        let settings = self
            .snapshot
            .files
            .iter()
            .filter(|(path, _)| path.starts_with("/proc/sys/"));
        fresh
            .files
            .extend(settings.map(|(path, text)| (path.clone(), text.clone())));
        fresh.ethtool = self.snapshot.ethtool.clone();
        if let Some(channels) = fresh
            .ethtool
            .get_mut("eth0")
            .and_then(|said| said.channels.as_mut())
        {
            channels.combined = Some(self.shape.interfaces[0].queues as u32);
        }
        self.snapshot = fresh;
    }
}

impl apply::Machine for Model {
    fn facts(&self) -> Result<Facts, Error> {
        let mut facts = facts::read(&Tree::of_snapshot(self.snapshot.clone()), None)?;
        for (place, allowed) in &self.threads {
            let Location::Thread(process, thread, started) = *place else {
                panic!("{place} is no thread");
            };
            let of_program = Thread {
                process,
                started,
                allowed: allowed.clone(),
                ..Thread::default()
            };
            facts.application.insert(thread, of_program);
        }
        Ok(facts)
    }

    fn get(&self, place: &Location) -> io::Result<String> {
        let missing = || io::Error::from(rustix::io::Errno::NOENT);
        match place {
            Location::File(path) => self
                .snapshot
                .files
                .get(path)
                .map(|text| format!("{text}\n"))
                .ok_or_else(missing),
            Location::Driver(interface, knob) => {
                let value = self
                    .snapshot
                    .ethtool
                    .get(interface)
                    .and_then(|said| knob.value(said));
                value.map(|value| value.to_string()).ok_or_else(missing)
            }
            Location::Service(_) => Err(missing()),
            Location::Thread(..) => self
                .threads
                .get(place)
                .map(CpuSet::to_string)
                .ok_or_else(missing),
        }
    }

    fn put(&mut self, place: &Location, value: &str) -> io::Result<()> {
        match place {
            Location::File(path) => {
                let now = self
                    .snapshot
                    .files
                    .get_mut(path)
                    .ok_or(rustix::io::Errno::NOENT)?;
                *now = match CpuSet::parse_mask(value.trim()).filter(|_| path.ends_with("ps_cpus"))
                {
                    // The kernel formats masks with its own width.
                    Some(mask) => mask.mask_like(now),
                    None => value.trim().to_owned(),
                };
            }
            Location::Driver(_, DriverSetting::ChannelsCombined) => {
                self.shape.interfaces[0].queues = value.trim().parse().map_err(io::Error::other)?;
                self.shape.irq_first += 100;
                self.rebuild();
            }
            Location::Thread(..) => {
                let cpus = CpuSet::parse_list(value).ok_or(rustix::io::Errno::INVAL)?;
                *self
                    .threads
                    .get_mut(place)
                    .ok_or(rustix::io::Errno::NOENT)? = cpus;
            }
            Location::Driver(..) | Location::Service(_) => {
                return Err(rustix::io::Errno::OPNOTSUPP.into());
            }
        }
        Ok(())
    }
}

/// Values by device, queue and purpose, independent of interrupt numbers.
pub(crate) fn values(model: &Model) -> Vec<(String, String)> {
    let facts = apply::Machine::facts(model).expect("facts");
    let mut values = Vec::new();
    for interface in &facts.interfaces {
        for irq in &interface.irqs {
            let name = format!("{} {:?} {:?}", interface.name, irq.queue, irq.purpose);
            values.push((name, format!("{:?}", irq.affinity)));
        }
        for queue in &interface.receive {
            values.push((
                format!("{} rx {}", interface.name, queue.index),
                format!("{queue:?}"),
            ));
        }
        for queue in &interface.transmit {
            values.push((
                format!("{} tx {}", interface.name, queue.index),
                format!("{queue:?}"),
            ));
        }
    }
    values.extend(
        facts
            .system
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), format!("{value:?}"))),
    );
    values
}
