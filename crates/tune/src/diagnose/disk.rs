//! Disks as the limit. CPUs are idle while tasks wait for I/O.

use super::{Case, Confidence, Finding, Limiter, finding};

/// Share of time with a task stalled on I/O above which the disk is the likely limit.
const STALLED: f64 = 0.5;
/// The same in CPUs of iowait, for kernels without PSI.
const WAITING: f64 = 0.5;
/// Share of samples with a blocked thread of the process: likely, and sure.
const BLOCKED: f64 = 0.25;
const BLOCKED_SURE: f64 = 0.75;
/// Samples needed for a sure finding.
const SAMPLES_SURE: usize = 4;

impl Case<'_> {
    pub(super) fn disk(&self) -> Option<Finding> {
        let stalled = self.stalled();
        let (is_stalled, waited) = match stalled {
            Some(share) => (
                share >= STALLED,
                format!(
                    "tasks were stalled on a disk for {:.0} % of the time (PSI)",
                    share * 100.0
                ),
            ),
            None => (
                self.iowait() >= WAITING,
                format!(
                    "{:.2} CPUs were idle while a task waited for a disk (iowait)",
                    self.iowait()
                ),
            ),
        };
        let blocked = self.blocked();
        let (confidence, whose) = match &self.after.process {
            None if is_stalled => (Confidence::Medium, String::new()),
            None => return None,
            // State D also means other kernel waits; PSI or iowait must confirm the disk.
            Some(process) => {
                let share = blocked?;
                (share >= BLOCKED && self.stall_is_possible()).then_some(())?;
                let is_sure =
                    share >= BLOCKED_SURE && is_stalled && self.after.samples.len() >= SAMPLES_SURE;
                let confidence = match is_sure {
                    true => Confidence::High,
                    false => Confidence::Medium,
                };
                let whose = format!(
                    "a thread of {} was blocked (state D) in {:.0} % of {} samples, and ",
                    process.name,
                    share * 100.0,
                    self.after.samples.len()
                );
                (confidence, whose)
            }
        };
        finding(
            Limiter::Disk,
            confidence,
            format!("{whose}{waited}{}", self.busiest_disk()),
            "a faster disk, fewer and larger writes, fewer fsync(2), or more memory for the page cache",
        )
    }

    /// Share of time with a task stalled on I/O; `None` without PSI.
    pub(super) fn stalled(&self) -> Option<f64> {
        let (then, now) = (self.before.disk_stall, self.after.disk_stall?);
        (self.seconds() > 0.0)
            .then(|| now.saturating_sub(then.unwrap_or(0)) as f64 / 1e6 / self.seconds())
    }

    pub(super) fn iowait(&self) -> f64 {
        self.loads.values().map(|load| load.iowait).sum()
    }

    /// Share of samples with a blocked thread; `None` without samples.
    pub(super) fn blocked(&self) -> Option<f64> {
        self.share_of_samples(|sample| Some(sample.blocked? > 0))
    }

    fn stall_is_possible(&self) -> bool {
        self.stalled().is_none_or(|share| share >= BLOCKED) || self.iowait() >= BLOCKED
    }

    /// `; vda was in use for 97 % of it, 12.5 ms for each operation`
    fn busiest_disk(&self) -> String {
        let used = |(name, now): (&String, &crate::facts::Disk)| {
            let then = self.before.disks.get(name).copied().unwrap_or_default();
            let operations = now.operations.saturating_sub(then.operations);
            let busy = now.busy.saturating_sub(then.busy) as f64 / 1e3 / self.seconds();
            let each = now.waited.saturating_sub(then.waited) as f64 / operations.max(1) as f64;
            (operations > 0 && busy.is_finite()).then(|| (busy, name.clone(), each))
        };
        let busiest = self.after.disks.iter().filter_map(used);
        let busiest = busiest.max_by(|one, two| one.0.total_cmp(&two.0));
        busiest.map_or_else(String::new, |(busy, name, each)| {
            format!(
                "; {name} was busy for {:.0} % of it, {each:.1} ms per operation",
                busy.min(1.0) * 100.0
            )
        })
    }
}
