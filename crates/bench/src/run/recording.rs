//! Records a CPU profile of each role with perf during a window, and converts it to folded stacks and a flame graph.
//!
//! perf is an external program and expensive, so it runs only on request. A missing or failing perf is not an error:
//! the trial notes why it has no profile.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::child::{Child, file_of, sleep_until_at_most};
use super::failure::{Failure, Try};
use super::interrupt::Interrupt;
use super::leftover_processes::run_name;
use super::profiles::Profiles;
use super::subject::Subject;
use crate::collect::stacks::{Folded, fold};
use crate::limits::{POLL, PROFILE_DATA_MAX, PROFILE_HERTZ, PROFILE_READ_WAIT_MAX};
use crate::outcome::Trial;
use crate::scenario::Role;

/// The perf processes of one window. Dropping it stops them.
#[derive(Debug)]
pub(super) struct Recording {
    perf: Option<PathBuf>,
    scratch: PathBuf,
    started: BTreeMap<Role, Result<Child, String>>,
}

impl Recording {
    pub(super) fn new(scratch: &Path) -> Recording {
        Recording {
            perf: file_of("perf"),
            scratch: scratch.join("perf"),
            started: BTreeMap::new(),
        }
    }

    fn run(&self) -> String {
        self.scratch.parent().map_or(String::new(), run_name)
    }

    /// Records the processes of a role, including later descendants.
    pub(super) fn start(&mut self, role: Role, pids: &[u32]) {
        let Some(perf) = &self.perf else {
            let why = "perf is not installed: apt-get install linux-perf";
            self.started.insert(role, Err(why.into()));
            return;
        };
        let directory = self.directory(role);
        let list: Vec<String> = pids.iter().map(u32::to_string).collect();
        let line = [
            perf.display().to_string(),
            "record".into(),
            // The kernel's timer, because virtual machines rarely have hardware counters.
            "--event=cpu-clock".into(),
            format!("--freq={PROFILE_HERTZ}"),
            "-g".into(),
            // Reading build ids takes longer than a window, and symbols are found without them.
            "--no-buildid".into(),
            "--no-buildid-cache".into(),
            format!("--max-size={PROFILE_DATA_MAX}"),
            format!("--output={}", directory.join("data").display()),
            format!("--pid={}", list.join(",")),
        ];
        let _ = fs::remove_dir_all(&directory);
        let child = fs::create_dir_all(&directory)
            .and_then(|()| Child::start(&line, &directory, &self.run()));
        let child = child.map_err(|error| format!("perf did not start: {error}"));
        self.started.insert(role, child);
    }

    fn directory(&self, role: Role) -> PathBuf {
        self.scratch.join(role.name())
    }

    pub(super) fn stop(&mut self) {
        for child in self.started.values_mut().flatten() {
            child.stop();
        }
    }

    /// Writes the profiles, and adds their paths, or the reasons why there are none, to the trial.
    pub(super) fn write(
        mut self,
        profiles: &mut Profiles,
        subject: &Subject<'_>,
        interrupt: &Interrupt,
        trial: &mut Trial,
    ) -> Try<()> {
        let started = std::mem::take(&mut self.started);
        for (role, child) in started {
            let folded = match child {
                Ok(child) => self.read(role, &child, interrupt)?,
                Err(why) => Err(why),
            };
            let round = subject.round.to_string();
            let parts = [
                &subject.work.name,
                &subject.variant.name,
                &round,
                role.name(),
            ];
            match folded.and_then(|folded| profiles.write(parts, &folded)) {
                Ok(path) => {
                    trial.profiles.insert(role, path);
                }
                Err(why) => {
                    let role = role.name();
                    trial
                        .left_out
                        .push(format!("the CPU profile of the {role} ({why})"));
                }
            }
        }
        let _ = fs::remove_dir_all(&self.scratch);
        Ok(())
    }

    fn read(
        &self,
        role: Role,
        recorder: &Child,
        interrupt: &Interrupt,
    ) -> Try<Result<Folded, String>> {
        let directory = self.directory(role);
        let data = directory.join("data");
        let Some(perf) = self.perf.as_ref().filter(|_| data.exists()) else {
            return Ok(Err(format!("perf failed; {}", recorder.output_tail())));
        };
        let line = [
            perf.display().to_string(),
            "script".into(),
            format!("--input={}", data.display()),
            "--fields=comm,ip,sym,dso".into(),
            // Inlined functions would be resolved by an external program, one address at a time.
            "--no-inline".into(),
        ];
        let reader = directory.join("script");
        let reader =
            fs::create_dir_all(&reader).and_then(|()| Child::start(&line, &reader, &self.run()))?;
        let deadline = Instant::now() + PROFILE_READ_WAIT_MAX;
        while !reader.has_ended() {
            if interrupt.is_requested() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() > deadline {
                let seconds = PROFILE_READ_WAIT_MAX.as_secs();
                return Ok(Err(format!(
                    "perf did not resolve function names within {seconds} s"
                )));
            }
            sleep_until_at_most(POLL, deadline);
        }
        let folded = fold(&reader.output());
        if folded.samples == 0 {
            return Ok(Err(format!("no samples; {}", recorder.output_tail())));
        }
        Ok(Ok(folded))
    }
}
