//! The thread that sends spans to the collector: a core of its own, so that all of its waiting has an end.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use onrush_engine::{Core, Handle, Instant, Io};

use super::collector::{Again, Collector, Lookup, Refusal};
use super::otlp;
use super::sink::Sink;
use super::span::Finished;
use super::spans::Lost;
use crate::observe::trace::limits::SPANS_MESSAGE_BYTES_MAX;

/// That a collector takes spans again, or is in other trouble, is said this long after it was in trouble, at the earliest: one that
/// refuses some now and then would fill the error log otherwise.
const NEWS: Duration = Duration::from_secs(10);

/// The first pause before spans are sent again, and the longest: who was restarted is back within a second or so, and nobody has
/// to be asked more than twelve times a minute.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long the same spans are sent again, and the longest that a collector can ask us to wait: those that come meanwhile wait
/// behind them.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A thread; it is not waited for when this is dropped.
pub(super) struct Exporter {
    handle: Handle,
    /// Ends with the thread.
    ended: Mutex<Receiver<()>>,
}

impl Exporter {
    /// Sends spans until it is stopped.
    ///
    /// # Errors
    /// When there is no thread, or the kernel refuses what a core needs.
    pub(super) fn start(sink: &Arc<Sink>, lookup: Lookup) -> io::Result<Exporter> {
        let sink = Arc::clone(sink);
        let (report, reports) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::Builder::new()
            .name("traces".into())
            .spawn(move || {
                match Core::new(0, Io::Epoll) {
                    Ok(core) => {
                        // Whoever started it waits for this.
                        let _ = report.send(Ok(core.handle()));
                        run(&core, &sink, lookup);
                    }
                    Err(error) => {
                        let _ = report.send(Err(error));
                    }
                }
                drop::<mpsc::Sender<()>>(end);
            })?;
        let handle = reports.recv().map_err(io::Error::other)?;
        Ok(Exporter {
            handle: handle.map_err(|error| io::Error::other(error.to_string()))?,
            ended: Mutex::new(ended),
        })
    }

    /// Has it send what there is, for `patience` at most, and end.
    pub(super) fn stop(&self, patience: Duration) {
        self.handle.stop(patience);
    }

    /// Waits for the end of the thread, a little longer than it may take.
    pub(super) fn wait(&self, patience: Duration) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // It never sends anything: the channel ends, or the time does.
        let _ = ended.recv_timeout(patience + patience / 4);
    }
}

fn run(core: &Core, sink: &Arc<Sink>, lookup: Lookup) {
    let left = Rc::new(Cell::new(0));
    let sender = Sender {
        core: core.clone(),
        collector: Collector::new(core, sink, lookup),
        sink: Arc::clone(sink),
        left: Rc::clone(&left),
        health: Health::Works,
    };
    core.spawn(sender.send_all());
    core.run();
    let waiting: u64 = sink.spans.take().iter().map(|it| it.span.count()).sum();
    let lost = left.get() + waiting;
    if lost > 0 {
        sink.counts.lose(Lost::Ended, lost);
        tracing::warn!(
            lost,
            "{lost} spans were not sent to {} before the end",
            sink.name()
        );
    }
}

/// How the collector is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Works,
    /// What was lost before it was in trouble, in which one it is, and when that was said.
    Troubled {
        lost_before: u64,
        trouble: Trouble,
        said: Instant,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// It takes no message.
    Fails,
    /// It takes messages, and refuses spans in them.
    Refuses,
}

struct Sender {
    core: Core,
    collector: Collector,
    sink: Arc<Sink>,
    /// Spans that were taken and neither sent nor lost.
    left: Rc<Cell<u64>>,
    health: Health,
}

impl Sender {
    async fn send_all(mut self) {
        loop {
            self.wait().await;
            // What comes before the end has come by then.
            let is_last = self.core.is_stopping();
            let all = self.sink.spans.take();
            let count: u64 = all.iter().map(|it| it.span.count()).sum();
            self.left.set(self.left.get() + count);
            let mut rest = all.into_iter().peekable();
            while rest.peek().is_some() {
                let batch = batch(&mut rest, self.sink.plan.batch);
                self.send(&batch).await;
            }
            if is_last {
                return;
            }
        }
    }

    /// Waits until there is enough, or its time has come, or there will be no more.
    async fn wait(&self) {
        let mut over = pin!(self.core.sleep_unless_stopping(self.sink.plan.interval));
        poll_fn(|context| {
            self.sink.spans.wait(context.waker());
            if self.sink.spans.was_called() {
                return Poll::Ready(());
            }
            over.as_mut().poll(context)
        })
        .await;
    }

    /// Sends the spans of these requests, again and again for a while where that may help.
    async fn send(&mut self, batch: &[Finished]) {
        let count: u64 = batch.iter().map(|it| it.span.count()).sum();
        let message = self
            .collector
            .message(&otlp::request(&self.sink.plan, batch));
        let until = self.core.now_exact() + RETRY_MAX;
        let mut pause = PAUSE_FIRST;
        let why = loop {
            let refusal = match self.collector.send(&message).await {
                Ok(refused) => {
                    self.took(count, refused);
                    return;
                }
                Err(refusal) => refusal,
            };
            self.fails(&refusal);
            if self.core.is_stopping() {
                // They are counted with those that nobody has sent.
                return;
            }
            let wait = match refusal.again {
                Again::Never => break Lost::Refused,
                // Whatever it says: without a pause it would be asked for ever.
                Again::After(wait) => wait.unwrap_or(pause).clamp(PAUSE_FIRST, RETRY_MAX),
            };
            self.core.sleep_unless_stopping(wait).await;
            if self.core.now_exact() > until {
                break Lost::Unreachable;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        };
        self.sink.counts.lose(why, count);
        self.left.set(self.left.get() - count);
    }

    /// The collector has taken so many spans, and refused some of them for a reason.
    fn took(&mut self, count: u64, (refused, why): (u64, String)) {
        let refused = refused.min(count);
        self.sink.counts.export(count - refused);
        self.left.set(self.left.get() - count);
        if refused > 0 {
            let why = match why.is_empty() {
                true => "it does not say why",
                false => &why,
            };
            self.refuses((refused, count), why);
            self.sink.counts.lose(Lost::Refused, refused);
            return;
        }
        if !why.is_empty() {
            // A warning (OTLP, "Partial success").
            tracing::debug!("{} says: {why}", self.sink.name());
        }
        let Health::Troubled {
            lost_before, said, ..
        } = self.health
        else {
            return;
        };
        if self.core.now_exact().since(said) < NEWS {
            return;
        }
        self.health = Health::Works;
        let lost = self.sink.counts.lost() - lost_before;
        tracing::warn!(
            event = "traces_work",
            lost,
            "{} takes spans again; {lost} were lost",
            self.sink.name()
        );
    }

    /// Says so, once.
    fn fails(&mut self, refusal: &Refusal) {
        if self.is_news(Trouble::Fails) {
            tracing::error!(
                event = "traces_fail",
                "{} takes no spans, as many as there is room for are kept until it does: {}",
                self.sink.name(),
                refusal.why
            );
        }
    }

    /// Says so, once: of so many spans it has refused some.
    fn refuses(&mut self, (refused, count): (u64, u64), why: &str) {
        if self.is_news(Trouble::Refuses) {
            let spans = if count == 1 { "span" } else { "spans" };
            tracing::error!(
                event = "traces_refused",
                refused,
                "{} has refused {refused} of {count} {spans}, which are lost: {why}",
                self.sink.name()
            );
        }
    }

    /// Whether it was in no trouble, or in another one for long enough; it is in this one from now on.
    fn is_news(&mut self, trouble: Trouble) -> bool {
        let now = self.core.now_exact();
        let lost_before = match self.health {
            Health::Works => self.sink.counts.lost(),
            Health::Troubled {
                lost_before,
                trouble: known,
                said,
            } if known != trouble && now.since(said) >= NEWS => lost_before,
            Health::Troubled { .. } => return false,
        };
        self.health = Health::Troubled {
            lost_before,
            trouble,
            said: now,
        };
        true
    }
}

/// The next requests, with about `spans_max` spans, and few enough for a message.
fn batch(
    rest: &mut std::iter::Peekable<std::vec::IntoIter<Finished>>,
    spans_max: usize,
) -> Vec<Finished> {
    let (mut spans, mut bytes) = (0, 0);
    let mut batch = Vec::new();
    while let Some(next) = rest.peek() {
        spans += next.span.count() as usize;
        bytes += next.span.bytes();
        if !batch.is_empty() && (spans > spans_max || bytes > SPANS_MESSAGE_BYTES_MAX) {
            break;
        }
        batch.extend(rest.next());
    }
    batch
}
