//! A process with all its descendants and their threads, followed through a window.
//!
//! Files stay open, so that a thread that is looked at each second costs a few reads. Directories are only read when the
//! number of threads changed or one has ended. A process that was once seen below the first is followed for as long as it
//! lives, whoever its parent is by then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use super::counters::{Count, Counters};
use super::process::{
    TreeUse, anonymous_memory, children, has_ended, name, own_ticks, switches, thread_count, ticks,
    time_in_queue, time_of_ticks, time_on_cpu,
};
use super::source::{KernelFile, Root};
use crate::limits::THREAD_ROWS_MAX;

/// The processes of a role.
#[derive(Debug)]
pub struct Tree {
    root: Root,
    pid: u32,
    processes: BTreeMap<u32, Process>,
    /// How many threads were seen; the next one gets this number.
    threads_seen: usize,
    /// What threads that have ended had used when they were last looked at.
    gone: ThreadUse,
    threads_ended: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Process {
    stat: KernelFile,
    status: KernelFile,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Debug)]
struct Thread {
    /// In the order in which threads were seen.
    number: usize,
    /// As it was called when it was first looked at whole.
    name: Option<String>,
    schedstat: KernelFile,
    stat: KernelFile,
    status: KernelFile,
    children: KernelFile,
    used: ThreadUse,
}

/// What one thread has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ThreadUse {
    cpu: Duration,
    wait: Duration,
    user_ticks: u64,
    system_ticks: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl ThreadUse {
    fn add(&mut self, other: ThreadUse) {
        self.cpu += other.cpu;
        self.wait += other.wait;
        self.user_ticks += other.user_ticks;
        self.system_ticks += other.system_ticks;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    fn counts(self) -> [(&'static str, Count); 6] {
        [
            ("cpus", Count::Time(self.cpu)),
            ("user", Count::Time(time_of_ticks(self.user_ticks))),
            ("system", Count::Time(time_of_ticks(self.system_ticks))),
            ("wait", Count::Time(self.wait)),
            ("voluntary_switches", Count::Total(self.voluntary_switches)),
            (
                "involuntary_switches",
                Count::Total(self.involuntary_switches),
            ),
        ]
    }
}

impl Tree {
    /// Follows a process from now on.
    pub fn follow(root: &Root, pid: u32) -> Tree {
        Tree {
            root: root.clone(),
            pid,
            processes: BTreeMap::new(),
            threads_seen: 0,
            gone: ThreadUse::default(),
            threads_ended: 0,
            buffer: Vec::new(),
        }
    }

    /// The ids of the processes that were alive when it was last read.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// Reads everything; what has vanished counts as what it was last.
    pub fn read(&mut self) -> TreeUse {
        let mut total = TreeUse::default();
        let mut waiting: Vec<u32> = self.processes.keys().copied().collect();
        waiting.push(self.pid);
        let mut done = BTreeSet::new();
        while let Some(pid) = waiting.pop() {
            if done.insert(pid) {
                self.read_process(pid, &mut total, &mut waiting);
            }
        }
        let mut used = self.gone;
        for thread in self
            .processes
            .values()
            .flat_map(|process| process.threads.values())
        {
            used.add(thread.used);
        }
        total.cpu = used.cpu;
        total.wait = used.wait;
        total.voluntary_switches = used.voluntary_switches;
        total.involuntary_switches = used.involuntary_switches;
        total.threads_ended = self.threads_ended;
        total
    }

    /// Reads one process into the sum, and adds its children to those that are still to be read.
    fn read_process(&mut self, pid: u32, total: &mut TreeUse, waiting: &mut Vec<u32>) {
        let root = &self.root;
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            stat: root.proc(&format!("{pid}/stat")),
            status: root.proc(&format!("{pid}/status")),
            threads: BTreeMap::new(),
        });
        let Some(stat) = process.stat.read(&mut self.buffer) else {
            let threads = self.processes.remove(&pid).map(|process| process.threads);
            for thread in threads.into_iter().flat_map(BTreeMap::into_values) {
                self.gone.add(thread.used);
                self.threads_ended += 1;
            }
            return;
        };
        let (user, system) = ticks(&stat).unwrap_or((0, 0));
        total.user_ticks += user;
        total.system_ticks += system;
        total.ended |= pid == self.pid && has_ended(&stat);
        let status = process.status.read(&mut self.buffer).unwrap_or_default();
        total.memory_bytes += anonymous_memory(&status).unwrap_or(0);
        let count = thread_count(&status).unwrap_or(0);
        total.threads += count;

        let mut ended = Vec::new();
        for (id, thread) in &mut process.threads {
            if !thread.read(&mut self.buffer, waiting) {
                ended.push(*id);
            }
        }
        for id in &ended {
            if let Some(thread) = process.threads.remove(id) {
                self.gone.add(thread.used);
                self.threads_ended += 1;
            }
        }
        if ended.is_empty() && process.threads.len() as u64 == count {
            return;
        }
        for id in thread_ids(&self.root, pid) {
            if process.threads.contains_key(&id) {
                continue;
            }
            let mut thread = Thread::new(&self.root, pid, id, self.threads_seen);
            // One that has ended since the directory was read was never seen.
            if thread.read(&mut self.buffer, waiting) {
                self.threads_seen += 1;
                process.threads.insert(id, thread);
            }
        }
    }

    /// Looks only at the time of the threads that are known: cheap enough for many times a second. Returns their time on
    /// the CPU, and that of those that have ended.
    pub fn glance(&mut self) -> Duration {
        let mut cpu = self.gone.cpu;
        for process in self.processes.values_mut() {
            for thread in process.threads.values_mut() {
                thread.glance(&mut self.buffer);
                cpu += thread.used.cpu;
            }
        }
        cpu
    }

    /// Adds a subject for each of the first threads, such as `server/0 onrush`.
    pub fn thread_counters(&self, role: &str, counters: &mut Counters) {
        for thread in self
            .processes
            .values()
            .flat_map(|process| process.threads.values())
        {
            if thread.number < THREAD_ROWS_MAX
                && let Some(name) = &thread.name
            {
                counters.add(
                    format!("{role}/{} {name}", thread.number),
                    thread.used.counts(),
                );
            }
        }
    }
}

impl Thread {
    fn new(root: &Root, pid: u32, id: u32, number: usize) -> Thread {
        let file = |name: &str| root.proc(&format!("{pid}/task/{id}/{name}"));
        Thread {
            number,
            name: None,
            schedstat: file("schedstat"),
            stat: file("stat"),
            status: file("status"),
            children: file("children"),
            used: ThreadUse::default(),
        }
    }

    /// Reads all of it and adds the processes that it started; false when it has ended.
    fn read(&mut self, buffer: &mut Vec<u8>, started: &mut Vec<u32>) -> bool {
        if !self.glance(buffer) {
            return false;
        }
        if self.number < THREAD_ROWS_MAX {
            let stat = self.stat.read(buffer).unwrap_or_default();
            if self.name.is_none() {
                self.name = name(&stat).map(str::to_owned);
            }
            if let Some((user, system)) = own_ticks(&stat) {
                self.used.user_ticks = user;
                self.used.system_ticks = system;
            }
        }
        let status = self.status.read(buffer).unwrap_or_default();
        if let Some((voluntary, involuntary)) = switches(&status) {
            self.used.voluntary_switches = voluntary;
            self.used.involuntary_switches = involuntary;
        }
        started.extend(children(&self.children.read(buffer).unwrap_or_default()));
        true
    }

    fn glance(&mut self, buffer: &mut Vec<u8>) -> bool {
        let Some(schedstat) = self.schedstat.read(buffer) else {
            return false;
        };
        // A kernel without scheduler statistics counts nothing; the thread lives all the same.
        self.used.cpu = time_on_cpu(&schedstat)
            .unwrap_or_default()
            .max(self.used.cpu);
        self.used.wait = time_in_queue(&schedstat)
            .unwrap_or_default()
            .max(self.used.wait);
        true
    }
}

fn thread_ids(root: &Root, pid: u32) -> Vec<u32> {
    let directory = fs::read_dir(root.proc_path(&format!("{pid}/task")));
    let entries = directory.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A shell that waits for lines and answers each with one.
    struct Shell(Child, ChildStdin, ChildStdout);

    impl Shell {
        fn start(script: &str) -> Shell {
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("sh starts");
            let stdin = child.stdin.take().expect("a pipe");
            let stdout = child.stdout.take().expect("a pipe");
            Shell(child, stdin, stdout)
        }

        /// One byte for one byte: the shell has been through its loop once more.
        fn ask(&mut self) {
            self.1.write_all(b"go\n").expect("it reads");
            self.2.read_exact(&mut [0]).expect("it answers");
        }

        fn end(mut self) {
            drop(self.1);
            self.0.wait().expect("it ends");
        }
    }

    #[test]
    fn a_child_of_a_child_is_followed_to_its_end() {
        // The inner shell does the work, the outer one only waits for it.
        let mut shell = Shell::start("sh -c 'while read line; do printf x; done'; :");
        let root = Root::of_machine();
        let mut tree = Tree::follow(&root, shell.0.id());
        shell.ask();
        let before = tree.read();
        assert_eq!(tree.pids().count(), 2);
        for _ in 0..200 {
            shell.ask();
        }
        let now = tree.read();
        let used = now.since(before);
        // Which kind they are depends on who has a CPU when an answer comes.
        let switches = used.voluntary_switches + used.involuntary_switches;
        assert!(switches > 0 && used.cpu > Duration::ZERO, "{used:?}");
        assert!(used.threads == 2 && used.memory_bytes > 0, "{used:?}");
        assert!(!used.ended && used.threads_ended == 0, "{used:?}");
        shell.end();
        assert_eq!(tree.read().threads, 0);
        assert_eq!(tree.read().threads_ended, 2);
    }

    #[test]
    fn each_time_that_a_thread_waits_is_a_voluntary_switch() {
        let (done, hear_done) = mpsc::channel();
        let (ask_to_end, hear_end) = mpsc::channel::<()>();
        let worker = thread::Builder::new().name("waits".into());
        let worker = worker.spawn(move || {
            for _ in 0..100 {
                assert!(hear_end.recv_timeout(Duration::from_millis(1)).is_err());
            }
            done.send(()).expect("the test listens");
            let _ = hear_end.recv();
        });
        let worker = worker.expect("it starts");
        hear_done.recv().expect("it is done");
        let mut tree = Tree::follow(&Root::of_machine(), std::process::id());
        tree.read();
        let mut counters = Counters::default();
        tree.thread_counters("server", &mut counters);
        let threads = tree.processes[&std::process::id()].threads.values();
        let mut waits = threads.filter(|thread| thread.name.as_deref() == Some("waits"));
        let number = waits.next().expect("the thread").number;
        let switches = counters.at(&format!("server/{number} waits"), "voluntary_switches");
        assert!(
            matches!(switches, Some(Count::Total(100..))),
            "{counters:?}"
        );
        ask_to_end.send(()).expect("it listens");
        worker.join().expect("it ends");
    }

    #[test]
    fn time_of_a_thread_that_has_ended_is_kept() {
        let (started, hear_start) = mpsc::channel();
        let (ask_to_end, hear_end) = mpsc::channel::<()>();
        let root = Root::of_machine();
        let mut tree = Tree::follow(&root, std::process::id());
        let worker = thread::spawn(move || {
            let own = fs::read_to_string("/proc/thread-self/stat").expect("our numbers");
            let mut sum = 0_u64;
            for number in 0..20_000_000_u64 {
                sum = sum.wrapping_mul(31).wrapping_add(number);
            }
            started.send((own, sum)).expect("the test listens");
            let _ = hear_end.recv();
        });
        let (own, _) = hear_start.recv().expect("it started");
        let id: u32 = own
            .split(' ')
            .next()
            .expect("an id")
            .parse()
            .expect("a number");
        let ours = std::process::id();
        let before = tree.read();
        let used = tree.processes[&ours].threads[&id].used;
        assert!(used.cpu > Duration::ZERO);
        ask_to_end.send(()).expect("it listens");
        worker.join().expect("it ends");
        // Whoever is joined may still be on its way out of the kernel.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while tree.processes[&ours].threads.contains_key(&id) {
            assert!(std::time::Instant::now() < deadline, "thread {id} stays");
            tree.read();
        }
        let after = tree.read();
        assert!(after.threads_ended > before.threads_ended);
        assert!(tree.gone.cpu >= used.cpu && after.cpu >= before.cpu);
    }

    #[test]
    fn a_process_that_is_not_there_has_used_nothing() {
        let mut tree = Tree::follow(&Root::of_machine(), u32::MAX);
        assert_eq!(tree.read(), TreeUse::default());
        assert_eq!(tree.glance(), Duration::ZERO);
    }
}
