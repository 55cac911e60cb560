//! Groups changes, and joins changes of queues into ranges: `queues 0-15  all -> 48-63, one each`.

use crate::advise::{Action, Target, ValueFormat};
use crate::facts::Purpose;
use onrush_machine::cpus::CpuSet;

/// Maximum number of ranges shown; the rest is counted. The JSON report has all.
const RANGES_MAX: usize = 6;

pub(super) struct Group<'plan> {
    pub(super) actions: Vec<&'plan Action>,
}

#[derive(PartialEq)]
enum Key<'plan> {
    /// Changes of an interface's queues.
    Queues(&'plan str, &'static str),
    Reason(&'plan str),
}

/// Groups the changes of a plan, in the order of each group's first change.
pub(super) fn groups(actions: &[Action]) -> Vec<Group<'_>> {
    let mut groups: Vec<(Key<'_>, Group<'_>)> = Vec::new();
    for action in actions {
        let key = key(action);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.actions.push(action),
            None => groups.push((
                key,
                Group {
                    actions: vec![action],
                },
            )),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn key(action: &Action) -> Key<'_> {
    match &action.target {
        Target::Interrupt {
            interface, purpose, ..
        } => Key::Queues(
            interface,
            match purpose {
                Purpose::Both => "interrupts",
                Purpose::Receive => "receive interrupts",
                Purpose::Transmit => "transmit interrupts",
                Purpose::Control => "control interrupts",
            },
        ),
        Target::Steering { interface, .. } => Key::Queues(interface, "packet steering"),
        Target::Flows { interface, .. } => Key::Queues(interface, "flow tables"),
        Target::Senders { interface, .. } => Key::Queues(interface, "senders"),
        Target::Driver { .. }
        | Target::Setting { .. }
        | Target::File { .. }
        | Target::Service { .. }
        | Target::Thread { .. } => Key::Reason(&action.reason),
    }
}

impl Group<'_> {
    /// Reason of the group; if reasons differ by queue, the first one.
    pub(super) fn reason(&self) -> String {
        let first = &self.actions[0].reason;
        let others = self.actions.iter().filter(|action| action.reason != *first);
        match others.count() {
            0 => first.clone(),
            others => format!("{first} (the reason for {others} more is similar)"),
        }
    }

    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        match (self.actions.as_slice(), key(self.actions[0])) {
            ([_, _, ..], Key::Queues(interface, what)) => self.ranges(interface, what),
            _ => {
                let width = if columns < 100 { 30 } else { 44 };
                let line = |action: &&Action| {
                    let target = action.target.to_string();
                    let current = shown(&action.current);
                    format!("    {target:<width$} {current} -> {}", action.proposed)
                };
                self.actions.iter().map(line).collect()
            }
        }
    }

    fn ranges(&self, interface: &str, what: &str) -> Vec<String> {
        let mut ranges: Vec<Range> = Vec::new();
        for action in &self.actions {
            let next = Range::of(action);
            let is_taken = ranges.last_mut().is_some_and(|last| last.takes(&next));
            if !is_taken {
                ranges.push(next);
            }
        }
        let head = format!("    {interface} {what}");
        let mut lines = vec![head];
        let most = if ranges.len() <= RANGES_MAX {
            RANGES_MAX
        } else {
            RANGES_MAX - 1
        };
        lines.extend(ranges.iter().take(most).map(Range::line));
        let left: usize = ranges.iter().skip(most).map(Range::len).sum();
        if left > 0 {
            lines.push(format!("      and {left} more queues, listed by --json"));
        }
        lines
    }
}

/// Consecutive queues with the same old value, whose new value is the same or a sequence of CPUs, one per queue.
struct Range {
    first: usize,
    last: usize,
    now: String,
    then: String,
    /// New CPU of the first queue, if it is a single one.
    cpu: Option<usize>,
    /// Whether each queue has its own CPU; `None` while there is one queue.
    steps: Option<bool>,
}

impl Range {
    fn of(action: &Action) -> Range {
        let queue = match &action.target {
            Target::Interrupt { queue, .. }
            | Target::Steering { queue, .. }
            | Target::Flows { queue, .. }
            | Target::Senders { queue, .. } => *queue,
            Target::Driver { .. }
            | Target::Setting { .. }
            | Target::File { .. }
            | Target::Service { .. }
            | Target::Thread { .. } => 0,
        };
        let read = |text: &str| match ValueFormat::of(&action.path) {
            ValueFormat::CpuMask => CpuSet::parse_mask(text),
            ValueFormat::CpuList => CpuSet::parse_list(text),
            ValueFormat::Words => None,
        };
        let words = |text: &str| match read(text) {
            Some(cpus) if cpus.is_empty() => "no CPU".to_owned(),
            Some(cpus) => cpus.to_string(),
            None => shown(text).to_owned(),
        };
        let then = read(&action.proposed);
        Range {
            first: queue,
            last: queue,
            now: words(&action.current),
            then: words(&action.proposed),
            cpu: then
                .filter(|cpus| cpus.len() == 1)
                .and_then(|cpus| cpus.first()),
            steps: None,
        }
    }

    fn len(&self) -> usize {
        self.last - self.first + 1
    }

    /// Appends a range of one queue if it continues this one. This decides the kind of range.
    fn takes(&mut self, next: &Range) -> bool {
        if next.first != self.last + 1 || next.now != self.now {
            return false;
        }
        let is_same = next.then == self.then;
        let is_next = next.cpu.is_some() && self.cpu.map(|cpu| cpu + self.len()) == next.cpu;
        let is_taken = match self.steps {
            Some(false) => is_same,
            Some(true) => is_next,
            None => is_same || is_next,
        };
        if is_taken {
            self.steps.get_or_insert(is_next);
            self.last = next.first;
        }
        is_taken
    }

    fn line(&self) -> String {
        let queues = match self.len() {
            1 => format!("queue {}", self.first),
            _ => format!("queues {}-{}", self.first, self.last),
        };
        let then = match (self.steps, self.cpu) {
            (Some(true), Some(cpu)) => format!("{cpu}-{}, one each", cpu + self.len() - 1),
            _ => self.then.clone(),
        };
        format!("      {queues:<14} {} -> {then}", self.now)
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "nothing" } else { value }
}
