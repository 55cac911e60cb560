//! Follows a process with all its descendants and their threads through a window.
//!
//! Files stay open, so that sampling a thread takes a few reads. Directories are read only if the number of threads
//! changed or a thread has ended. A process that was once seen as a descendant is followed until it ends, even if it is
//! reparented.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use super::counters::{Count, Counters};
use onrush_engine::clock::process_cpu_time;
use onrush_machine::process::{self, on_cpu_and_queued};

use super::process::{
    TreeUse, children, has_ended, ignores_children, parent, reaped_children_ticks, switches, ticks,
    time_of_ticks,
};
use super::source::{KernelFile, Root};
use crate::limits::THREAD_ROWS_MAX;

/// The processes of a role.
#[derive(Debug)]
pub struct Tree {
    root: Root,
    pid: u32,
    processes: BTreeMap<u32, Process>,
    /// Threads seen so far; the number of the next one.
    threads_seen: usize,
    /// Use of ended threads at their last reading.
    ended_use: ThreadUse,
    threads_ended: u64,
    /// CPU time of ended processes at their last reading.
    ended_cpu: Duration,
    /// CPU time of ended processes that is missing in `ended_cpu` and contained in the time of reaped children.
    reaped_cpu: Duration,
    failed: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Process {
    stat: KernelFile,
    status: KernelFile,
    cpu: Duration,
    parent: u32,
    ignores_children: bool,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Debug)]
struct Thread {
    /// Number in the order of discovery.
    number: usize,
    /// Name at the first complete reading.
    name: Option<String>,
    schedstat: KernelFile,
    stat: KernelFile,
    status: KernelFile,
    children: KernelFile,
    used: ThreadUse,
}

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
    /// Starts to follow a process.
    pub fn follow(root: &Root, pid: u32) -> Tree {
        Tree {
            root: root.clone(),
            pid,
            processes: BTreeMap::new(),
            threads_seen: 0,
            ended_use: ThreadUse::default(),
            threads_ended: 0,
            ended_cpu: Duration::ZERO,
            reaped_cpu: Duration::ZERO,
            failed: 0,
            buffer: Vec::new(),
        }
    }

    /// Ids of the processes alive at the last reading.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// Reads all processes and threads. Ended ones keep the values of their last reading.
    pub fn read(&mut self) -> TreeUse {
        let mut total = TreeUse::default();
        let mut waiting: Vec<u32> = self.processes.keys().copied().collect();
        waiting.push(self.pid);
        let mut done = BTreeSet::new();
        let mut waited = 0;
        let mut gone = Vec::new();
        while let Some(pid) = waiting.pop() {
            if done.insert(pid) {
                match self.read_process(pid, &mut total, &mut waiting) {
                    Some(ticks) => waited += ticks,
                    None => gone.extend(self.processes.remove_entry(&pid)),
                }
            }
        }
        self.failed += gone.iter().filter(|one| self.is_lost(one, &gone)).count() as u64;
        for (_, process) in gone {
            self.forget(process);
        }
        self.reaped_cpu = time_of_ticks(waited)
            .saturating_sub(self.ended_cpu)
            .max(self.reaped_cpu);
        let cpus = self.processes.values().map(|process| process.cpu);
        total.cpu = cpus.sum::<Duration>() + self.ended_cpu + self.reaped_cpu;
        total.failed = self.failed;
        let mut used = self.ended_use;
        for thread in self
            .processes
            .values()
            .flat_map(|process| process.threads.values())
        {
            used.add(thread.used);
        }
        total.wait = used.wait;
        total.voluntary_switches = used.voluntary_switches;
        total.involuntary_switches = used.involuntary_switches;
        total.threads_ended = self.threads_ended;
        total
    }

    /// Adds one process to `total` and its children to `waiting`. Returns the ticks of its reaped children; `None` if
    /// it has ended.
    fn read_process(
        &mut self,
        pid: u32,
        total: &mut TreeUse,
        waiting: &mut Vec<u32>,
    ) -> Option<u64> {
        let root = &self.root;
        let process = self
            .processes
            .entry(pid)
            .or_insert_with(|| Process::new(root, pid));
        // Read before `stat`, whose open file is bound to this process: this detects a reused id.
        let clock = process_cpu_time(pid);
        let stat = process.stat.read(&mut self.buffer)?;
        let (user, system) = ticks(&stat).unwrap_or((0, 0));
        total.user_ticks += user;
        total.system_ticks += system;
        total.ended |= pid == self.pid && has_ended(&stat);
        process.parent = parent(&stat).unwrap_or(0);
        let waited = reaped_children_ticks(&stat).unwrap_or(0);
        // Without this clock, ticks give the same time to within 20 ms.
        let cpu = match (clock, process::ticks(&stat)) {
            (Ok(cpu), _) => cpu,
            (Err(_), Some((user, system))) => time_of_ticks(user + system).max(process.cpu),
            (Err(_), None) => Duration::ZERO,
        };
        self.failed += u64::from(cpu < process.cpu || process::ticks(&stat).is_none());
        process.cpu = cpu.max(process.cpu);
        let status = process.status.read(&mut self.buffer).unwrap_or_default();
        process.ignores_children = ignores_children(&status);
        total.memory_bytes += process::bytes(&status, "RssAnon:").unwrap_or(0);
        let count = process::number(&status, "Threads:").unwrap_or(0);
        total.threads += count;
        self.read_threads(pid, count, waiting);
        Some(waited)
    }

    /// Whether the CPU time of an ended process since its last reading is lost: it is the first process of the role, or
    /// no followed process has reaped it. A process that was never read (parent 0) is not lost, because its parent's
    /// time includes it.
    fn is_lost(&self, (pid, process): &(u32, Process), gone: &[(u32, Process)]) -> bool {
        if *pid == self.pid {
            return true;
        }
        let with_it = gone.iter().find(|(pid, _)| *pid == process.parent);
        let parent = with_it.map(|(_, parent)| parent);
        let parent = parent.or_else(|| self.processes.get(&process.parent));
        process.parent != 0 && parent.is_none_or(|parent| parent.ignores_children)
    }

    fn forget(&mut self, process: Process) {
        self.ended_cpu += process.cpu;
        self.threads_ended += process.threads.len() as u64;
        for thread in process.threads.into_values() {
            self.ended_use.add(thread.used);
        }
    }

    fn read_threads(&mut self, pid: u32, count: u64, waiting: &mut Vec<u32>) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let mut ended = Vec::new();
        for (id, thread) in &mut process.threads {
            if !thread.read(&mut self.buffer, waiting) {
                ended.push(*id);
            }
        }
        for id in &ended {
            if let Some(thread) = process.threads.remove(id) {
                self.ended_use.add(thread.used);
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
            // Skips a thread that ended after the directory was read.
            if thread.read(&mut self.buffer, waiting) {
                self.threads_seen += 1;
                process.threads.insert(id, thread);
            }
        }
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

impl Process {
    fn new(root: &Root, pid: u32) -> Process {
        Process {
            stat: root.proc(&format!("{pid}/stat")),
            status: root.proc(&format!("{pid}/status")),
            cpu: Duration::ZERO,
            parent: 0,
            ignores_children: false,
            threads: BTreeMap::new(),
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

    /// Reads the thread and appends its child processes to `started`; false if it has ended.
    fn read(&mut self, buffer: &mut Vec<u8>, started: &mut Vec<u32>) -> bool {
        let Some(schedstat) = self.schedstat.read(buffer) else {
            return false;
        };
        // A kernel without scheduler statistics has zeros here, also for a living thread.
        let (cpu, wait) = on_cpu_and_queued(&schedstat).unwrap_or_default();
        self.used.cpu = Duration::from_nanos(cpu).max(self.used.cpu);
        self.used.wait = Duration::from_nanos(wait).max(self.used.wait);
        if self.number < THREAD_ROWS_MAX {
            let stat = self.stat.read(buffer).unwrap_or_default();
            if self.name.is_none() {
                self.name = process::name(&stat).map(str::to_owned);
            }
            if let Some((user, system)) = process::ticks(&stat) {
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

    /// A shell that answers each input line.
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

        /// Waits for one iteration of the shell's loop.
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
    fn grandchild_is_followed_until_exit() {
        // The inner shell does the work; the outer one waits for it.
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
        // The kind of switch depends on the scheduler.
        let switches = used.voluntary_switches + used.involuntary_switches;
        assert!(switches > 0 && used.cpu > Duration::ZERO, "{used:?}");
        assert!(used.threads == 2 && used.memory_bytes > 0, "{used:?}");
        assert!(!used.ended && used.threads_ended == 0, "{used:?}");
        shell.end();
        assert_eq!(tree.read().threads, 0);
        assert_eq!(tree.read().threads_ended, 2);
    }

    #[test]
    fn thread_waits_are_voluntary_switches() {
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
    fn cpu_time_of_ended_thread_is_kept() {
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
        // A joined thread may not have left the kernel yet.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while tree.processes[&ours].threads.contains_key(&id) {
            assert!(std::time::Instant::now() < deadline, "thread {id} stays");
            tree.read();
        }
        let after = tree.read();
        assert!(after.threads_ended > before.threads_ended);
        assert!(tree.ended_use.cpu >= used.cpu && after.cpu >= before.cpu);
    }

    fn burn() {
        let own = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        while own().tv_sec == 0 && own().tv_nsec < 50_000_000 {}
    }

    #[test]
    fn cpu_time_of_unseen_thread_is_counted() {
        let mut tree = Tree::follow(&Root::of_machine(), std::process::id());
        let before = tree.read();
        let clock = || process_cpu_time(std::process::id()).expect("our clock");
        let start = clock();
        // Starts and ends between two readings, like the thread of a client's connection.
        let worker = thread::spawn(|| {
            burn();
            rustix::thread::gettid().as_raw_nonzero()
        });
        let id = worker.join().expect("it ends");
        // The kernel may still list a joined thread for a moment.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while fs::exists(format!("/proc/self/task/{id}")).expect("a readable /proc") {
            assert!(std::time::Instant::now() < deadline, "thread {id} stays");
            thread::yield_now();
        }
        let burnt = clock() - start;
        let used = tree.read().since(before);
        assert!(used.cpu >= burnt, "{used:?}, {burnt:?}");
        assert_eq!(used.failed, 0);
    }

    #[test]
    fn cpu_time_of_unseen_process_is_counted() {
        // Each line starts a shell that the first one reaps.
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut shell = Shell::start(&format!(
            "while read line; do sh -c '{work}'; printf x; done"
        ));
        let mut tree = Tree::follow(&Root::of_machine(), shell.0.id());
        let before = tree.read();
        shell.ask();
        let used = tree.read().since(before);
        assert!(used.cpu >= Duration::from_millis(20), "{used:?}");
        assert_eq!(used.failed, 0);
        shell.end();
    }

    #[test]
    fn cpu_time_of_unreaped_process_is_lost() {
        let root = Root::of_machine();
        let process = |pid, parent, ignores_children| {
            let process = Process {
                parent,
                ignores_children,
                ..Process::new(&root, pid)
            };
            (pid, process)
        };
        let mut tree = Tree::follow(&root, 4);
        tree.processes
            .extend([process(5, 4, false), process(6, 4, true)]);
        let gone = [process(7, 5, false), process(8, 5, true)];
        for (parent, is_lost) in [
            (5, false),
            (6, true),
            (7, false),
            (8, true),
            // Reparented to another program.
            (1, true),
        ] {
            let ended = process(9, parent, false);
            assert_eq!(tree.is_lost(&ended, &gone), is_lost, "{parent}");
        }
        assert!(tree.is_lost(&process(4, 5, false), &gone));
        assert!(!tree.is_lost(&(9, Process::new(&root, 9)), &gone));
    }

    #[test]
    fn missing_process_is_a_failed_reading() {
        let mut tree = Tree::follow(&Root::of_machine(), u32::MAX);
        let failed = |failed| TreeUse {
            failed,
            ..TreeUse::default()
        };
        assert_eq!(tree.read(), failed(1));
        assert_eq!(tree.read(), failed(2));
    }
}
