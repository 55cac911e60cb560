//! Bounded history of named log events: servers that failed or recovered, reloads and others. The last events of each
//! upstream server are kept in addition.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Maximum number of events.
const EVENTS_MAX: usize = 1000;

/// Maximum memory of these events in bytes: memory must not grow with the number or length of events.
const EVENTS_BYTES_MAX: usize = 128 * 1024;

/// Number of events kept for each upstream server, so that a busy server does not displace the events of others.
const EVENTS_PER_SERVER_MAX: usize = 8;

/// Maximum number of upstream servers with their own history. Events of further servers are only in the journal.
const SERVERS_MAX: usize = 10_000;

/// A named event of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Sequence number, from 1.
    pub number: u64,
    /// Time since the Unix epoch.
    pub time: Duration,
    /// `error`, `warn` or `info`.
    pub level: &'static str,
    /// Event name, such as `server_ejected`.
    pub kind: Box<str>,
    /// Message of the log line.
    pub message: Box<str>,
    /// Fields of the log line: `group`, `server`, `address`, …
    pub fields: Box<[(&'static str, Box<str>)]>,
}

impl Event {
    fn field(&self, name: &str) -> Option<String> {
        let mut fields = self.fields.iter();
        fields
            .find(|(known, _)| *known == name)
            .map(|(_, text)| text.to_string())
    }

    fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(_, text)| text.len());
        size_of::<Event>()
            + self.kind.len()
            + self.message.len()
            + size_of_val(&*self.fields)
            + fields.sum::<usize>()
    }
}

/// Journal of events. Clones share the same events.
#[derive(Clone, Default)]
pub struct Journal(Arc<Mutex<JournalState>>);

#[derive(Default)]
struct JournalState {
    /// Number of the last event.
    count: u64,
    events: VecDeque<Arc<Event>>,
    /// Memory used by `events`, in bytes.
    bytes: usize,
    /// By group name and server address.
    of_servers: BTreeMap<(String, String), VecDeque<Arc<Event>>>,
    /// Tasks waiting for the next event.
    waiting: Vec<Waker>,
}

impl Journal {
    /// Adds an event and assigns its number.
    pub fn add(&self, mut event: Event) {
        let kept = &mut *self.lock();
        kept.count += 1;
        event.number = kept.count;
        let event = Arc::new(event);
        if let Some(name) = event.field("group").zip(event.field("address")) {
            let has_room = kept.of_servers.len() < SERVERS_MAX;
            if has_room || kept.of_servers.contains_key(&name) {
                let of_server = kept.of_servers.entry(name).or_default();
                push_bounded(of_server, &event, EVENTS_PER_SERVER_MAX);
            }
        }
        kept.bytes += event.bytes();
        kept.events.push_back(event);
        while kept.events.len() > EVENTS_MAX
            || kept.bytes > EVENTS_BYTES_MAX && kept.events.len() > 1
        {
            let oldest = kept.events.pop_front();
            kept.bytes -= oldest.map_or(0, |event| event.bytes());
        }
        kept.waiting.drain(..).for_each(Waker::wake);
    }

    /// Kept events with a number greater than this.
    pub fn after(&self, number: u64) -> Vec<Arc<Event>> {
        let kept = self.lock();
        let behind = |event: &&Arc<Event>| event.number > number;
        kept.events.iter().filter(behind).cloned().collect()
    }

    /// Kept events of the server with this address in a group.
    pub fn of_server(&self, group: &str, address: &str) -> Vec<Arc<Event>> {
        let kept = self.lock();
        let name = (group.to_owned(), address.to_owned());
        let events = kept.of_servers.get(&name);
        events.into_iter().flatten().cloned().collect()
    }

    /// Number of the last event, or 0.
    pub fn last_number(&self) -> u64 {
        self.lock().count
    }

    /// Waits until there is an event with a number greater than this.
    pub(crate) async fn wait_after(&self, number: u64) {
        poll_fn(|context| {
            let mut kept = self.lock();
            if kept.count > number {
                return Poll::Ready(());
            }
            let waker = context.waker();
            if !kept.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
                kept.waiting.push(waker.clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // A poisoned lock is harmless: code under the lock does not panic halfway through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push_bounded(events: &mut VecDeque<Arc<Event>>, event: &Arc<Event>, max: usize) {
    if events.len() == max {
        events.pop_front();
    }
    events.push_back(Arc::clone(event));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, server: Option<&str>) -> Event {
        let named = server.map(|server| [("group", "app".into()), ("address", server.into())]);
        Event {
            number: 0,
            time: Duration::ZERO,
            level: "info",
            kind: kind.into(),
            message: "".into(),
            fields: named.into_iter().flatten().collect(),
        }
    }

    fn numbers(events: &[Arc<Event>]) -> Vec<u64> {
        events.iter().map(|event| event.number).collect()
    }

    #[test]
    fn latest_events_are_kept_per_server() {
        let journal = Journal::default();
        assert_eq!(journal.last_number(), 0);
        (0..20).for_each(|_| journal.add(event("server_up", Some("a"))));
        (0..EVENTS_MAX).for_each(|_| journal.add(event("reload", None)));
        let all = journal.after(0);
        assert_eq!((all.len(), all[0].number), (EVENTS_MAX, 21));
        assert_eq!(numbers(&journal.after(1018)), [1019, 1020]);
        assert_eq!(journal.last_number(), 1020);
        let last = numbers(&journal.of_server("app", "a"));
        assert_eq!(last, (13..=20).collect::<Vec<_>>());
        assert!(journal.of_server("app", "b").is_empty());
    }

    #[test]
    fn journal_memory_is_bounded() {
        let journal = Journal::default();
        let long = |bytes: usize| Event {
            message: "m".repeat(bytes).into(),
            ..event("reload", None)
        };
        (0..EVENTS_MAX).for_each(|_| journal.add(long(1000)));
        let kept = journal.after(0);
        let bytes: usize = kept.iter().map(|event| event.bytes()).sum();
        assert!(
            bytes <= EVENTS_BYTES_MAX && bytes > EVENTS_BYTES_MAX / 2,
            "{bytes}"
        );
        assert_eq!(journal.last_number(), EVENTS_MAX as u64);
        journal.add(long(EVENTS_BYTES_MAX));
        assert_eq!(numbers(&journal.after(0)), [EVENTS_MAX as u64 + 1]);
        journal.add(event("reload", None));
        assert_eq!(numbers(&journal.after(0)), [EVENTS_MAX as u64 + 2]);
        (0..2 * EVENTS_MAX).for_each(|_| journal.add(event("reload", None)));
        assert_eq!(
            journal.after(0).len(),
            EVENTS_MAX.min(EVENTS_BYTES_MAX / event("reload", None).bytes())
        );
    }
}
