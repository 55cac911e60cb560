//! Slurm nodes as hosts: one allocation for all of them, held by a salloc(1) process that ends with bench, and a job
//! step for each agent.

use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::super::agent_protocol::read_line;
use super::super::child::{command_with_pdeathsig, sleep_until_at_most};
use super::super::interrupt::Interrupt;
use super::connect::{AccessMethod, Executable, missing};
use super::connection::output_tail;
use crate::limits::{
    ALLOCATION_WAIT_MAX, GREETING_LINES_MAX, HOSTS_MAX, NODES_MAX, POLL, STOP_WAIT_MAX,
};
use crate::scenario::Slurm;

/// Runs within the allocation: prints the job and its nodes, and then waits for the end of its input.
const HOLDER: &str = "echo \"job $SLURM_JOB_ID\"; scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed \"s/^/node /\"; \
    echo end; exec cat >/dev/null";

/// Allocated nodes; dropping it releases them.
pub(super) struct Allocation {
    process: Child,
    /// Closing it ends the allocation.
    input: Option<ChildStdin>,
    job: String,
    free: Vec<String>,
}

impl Allocation {
    /// Allocates this many whole nodes. All Slurm hosts of an experiment have the same options.
    pub(super) fn of(
        hosts: &[&Slurm],
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<Allocation, String> {
        for program in ["salloc", "srun", "scontrol"] {
            if let Some(missing) = missing(program, "slurm-client") {
                return Err(missing);
            }
        }
        let nodes: u32 = hosts.iter().map(|slurm| slurm.nodes).sum();
        let errors = scratch.join("salloc.txt");
        let file = File::create(&errors).map_err(|error| error.to_string())?;
        let options = hosts.first().map_or(&[][..], |slurm| &slurm.options);
        let mut process = command_with_pdeathsig("salloc")
            .arg(format!("--nodes={nodes}"))
            // Other jobs on the same node would distort the measurement.
            .arg("--exclusive")
            .args(options)
            .args(["sh", "-c", HOLDER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot run salloc: {error}"))?;
        let input = process.stdin.take();
        let output = process.stdout.take();
        let mut allocation = Allocation {
            process,
            input,
            job: String::new(),
            free: Vec::new(),
        };
        let Some(output) = output else {
            unreachable!("it was asked for");
        };
        let (sender, receiver) = sync_channel(1);
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            for _ in 0..GREETING_LINES_MAX {
                let line = read_line(&mut output).ok().flatten();
                let is_end = line.is_none();
                if sender.send(line).is_err() || is_end {
                    return;
                }
            }
        });
        let deadline = Instant::now() + ALLOCATION_WAIT_MAX;
        loop {
            if interrupt.is_requested() {
                return Err("interrupted".into());
            }
            match receiver.recv_timeout(POLL) {
                Ok(Some(line)) if line == "end" => return allocation.checked(nodes),
                Ok(Some(line)) => allocation.take(&line),
                Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("salloc fails; {}", output_tail(&errors)));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    let hours = ALLOCATION_WAIT_MAX.as_secs() / 3_600;
                    return Err(format!("salloc allocated no nodes within {hours} h"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn take(&mut self, line: &str) {
        if let Some(job) = line.strip_prefix("job ") {
            self.job = job.to_owned();
        } else if let Some(node) = line.strip_prefix("node ")
            && self.free.len() < NODES_MAX as usize * HOSTS_MAX
        {
            self.free.push(node.to_owned());
        }
    }

    fn checked(mut self, nodes: u32) -> Result<Allocation, String> {
        if self.job.is_empty() || self.free.len() != nodes as usize {
            return Err(format!(
                "salloc allocated the nodes {:?} of job `{}`, but {nodes} were requested",
                self.free, self.job
            ));
        }
        // Nodes are taken from the end.
        self.free.reverse();
        Ok(self)
    }

    pub(super) fn node(&mut self) -> Result<(String, IpAddr), String> {
        let Some(node) = self.free.pop() else {
            return Err("the allocation has no more nodes".into());
        };
        let address = address(&node)?;
        Ok((node, address))
    }

    /// Way to a node: a job step that shares its resources with the programs that the agent starts.
    pub(super) fn way(&self, node: &str, copy: &Executable) -> AccessMethod {
        let job = format!("--jobid={}", self.job);
        let list = format!("--nodelist={node}");
        let words = [
            "srun",
            &job,
            "--nodes=1",
            "--ntasks=1",
            &list,
            "--overlap",
            "--cpu-bind=none",
            "--mpi=none",
            // The agent changes to its own directory.
            "--chdir=/",
            "sh",
            "-c",
            &copy.script(),
        ];
        AccessMethod {
            line: words.map(String::from).into(),
            condition: format!("`srun --nodelist={node} true` works"),
        }
    }
}

impl Allocation {
    fn terminate(&self) {
        let process = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        if let Some(process) = process {
            // Fails if it has ended, in which case there is nothing to cancel.
            let _ = kill_process(process, Signal::TERM);
        }
    }

    fn has_ended_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                return false;
            }
            sleep_until_at_most(POLL, deadline);
        }
        true
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.input.take();
        if self.job.is_empty() {
            // Still waiting for nodes: on SIGTERM salloc cancels the request; a killed salloc would leave it in the
            // queue.
            self.terminate();
        }
        if !self.has_ended_within(STOP_WAIT_MAX) {
            self.terminate();
            self.has_ended_within(STOP_WAIT_MAX);
        }
        // Slurm releases the nodes when salloc has ended, also after a kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Address of a node, as Slurm itself resolves it.
fn address(node: &str) -> Result<IpAddr, String> {
    let mut command = Command::new("scontrol");
    command.args(["--oneliner", "show", "node", node]);
    let outcome = command.stdin(Stdio::null()).output();
    let outcome = outcome.map_err(|error| format!("cannot run scontrol: {error}"))?;
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let name = node_address(&text).unwrap_or(node);
    let found = (name, 0).to_socket_addrs().ok();
    let found = found.and_then(|mut all| all.next());
    found.map(|found| found.ip()).ok_or_else(|| {
        format!(
            "Slurm gives the name `{name}` for the node `{node}`, which cannot be resolved here"
        )
    })
}

fn node_address(text: &str) -> Option<&str> {
    let mut words = text.split_ascii_whitespace();
    words.find_map(|word| word.strip_prefix("NodeAddr="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_address_comes_from_slurm() {
        let text = "NodeName=n2 Arch=x86_64 CoresPerSocket=1 \n NodeAddr=10.78.2.2 NodeHostName=n2 Version=22.05.8";
        assert_eq!(node_address(text), Some("10.78.2.2"));
        assert_eq!(node_address("Node n9 not found"), None);
    }
}
