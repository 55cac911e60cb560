//! The thread that sends spans to the collector. It runs a core of its own so that every wait has a timeout.

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
use super::spans::SpanLoss;
use crate::observe::trace::limits::SPANS_MESSAGE_BYTES_MAX;

/// Minimum interval between log messages about the collector's state, so that occasional refusals do not flood the
/// error log.
const STATE_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// First and longest pause before spans are sent again: a restarted collector is usually back within a second, and more
/// than twelve attempts per minute are pointless.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long the same spans are retried, and the longest accepted `Retry-After`. Later spans wait meanwhile.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Handle of the thread. Dropping it does not wait for the thread.
pub(super) struct Exporter {
    handle: Handle,
    /// Disconnected when the thread ends.
    ended: Mutex<Receiver<()>>,
}

impl Exporter {
    /// Starts the thread, which sends spans until it is stopped. Fails if the thread or its core cannot be created.
    pub(super) fn start(sink: &Arc<Sink>, lookup: Lookup) -> io::Result<Exporter> {
        let sink = Arc::clone(sink);
        let (report, reports) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::Builder::new()
            .name("traces".into())
            .spawn(move || {
                match Core::new(0, Io::Epoll) {
                    Ok(core) => {
                        // The starting thread waits for this.
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

    /// Makes the thread send all waiting spans, for at most `patience`, and end.
    pub(super) fn stop(&self, patience: Duration) {
        self.handle.stop(patience);
    }

    /// Waits for the end of the thread, slightly longer than it may take.
    pub(super) fn wait(&self, patience: Duration) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent: either the channel disconnects or the wait times out.
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
        sink.counts.lose(SpanLoss::Ended, lost);
        tracing::warn!(
            lost,
            "{lost} spans were not sent to {} before the end",
            sink.name()
        );
    }
}

/// State of the collector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Works,
    /// Lost spans before the failure, its kind, and when it was logged.
    Troubled {
        lost_before: u64,
        trouble: Trouble,
        said: Instant,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// The collector accepts no messages.
    Fails,
    /// The collector accepts messages but refuses spans in them.
    Refuses,
}

struct Sender {
    core: Core,
    collector: Collector,
    sink: Arc<Sink>,
    /// Spans taken from the queue and neither sent nor lost.
    left: Rc<Cell<u64>>,
    health: Health,
}

impl Sender {
    async fn send_all(mut self) {
        loop {
            self.wait().await;
            // Spans queued before the stop are in the queue now.
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

    /// Waits until enough requests are queued, the interval is over, or the core stops.
    async fn wait(&self) {
        let mut over = pin!(self.core.sleep_unless_stopping(self.sink.plan.interval));
        poll_fn(|context| {
            self.sink.spans.wait(context.waker());
            if self.sink.spans.take_wake_flag() {
                return Poll::Ready(());
            }
            over.as_mut().poll(context)
        })
        .await;
    }

    /// Sends the spans of these requests, retrying temporary failures for a while.
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
                // These spans are counted with the unsent ones.
                return;
            }
            let wait = match refusal.again {
                Again::Never => break SpanLoss::Refused,
                // Ignore shorter values: without a pause the retries would be a busy loop.
                Again::After(wait) => wait.unwrap_or(pause).clamp(PAUSE_FIRST, RETRY_MAX),
            };
            self.core.sleep_unless_stopping(wait).await;
            if self.core.now_exact() > until {
                break SpanLoss::Unreachable;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        };
        self.sink.counts.lose(why, count);
        self.left.set(self.left.get() - count);
    }

    /// Counts accepted and refused spans, and logs a refusal or a recovery.
    fn took(&mut self, count: u64, (refused, why): (u64, String)) {
        let refused = refused.min(count);
        self.sink.counts.export(count - refused);
        self.left.set(self.left.get() - count);
        if refused > 0 {
            let why = match why.is_empty() {
                true => "no reason given",
                false => &why,
            };
            self.refuses((refused, count), why);
            self.sink.counts.lose(SpanLoss::Refused, refused);
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
        if self.core.now_exact().since(said) < STATE_LOG_INTERVAL {
            return;
        }
        self.health = Health::Works;
        let lost = self.sink.counts.lost() - lost_before;
        tracing::warn!(
            event = "traces_work",
            lost,
            "{} accepts spans again; {lost} were lost",
            self.sink.name()
        );
    }

    /// Logs the failure once.
    fn fails(&mut self, refusal: &Refusal) {
        if self.is_news(Trouble::Fails) {
            tracing::error!(
                event = "traces_fail",
                "{} does not accept spans; they are kept while the queue has room: {}",
                self.sink.name(),
                refusal.why
            );
        }
    }

    /// Logs once that the collector refused some of `count` spans.
    fn refuses(&mut self, (refused, count): (u64, u64), why: &str) {
        if self.is_news(Trouble::Refuses) {
            let spans = if count == 1 { "span" } else { "spans" };
            tracing::error!(
                event = "traces_refused",
                refused,
                "{} refused {refused} of {count} {spans}, which are lost: {why}",
                self.sink.name()
            );
        }
    }

    /// Records the trouble. Returns whether to log it: the collector worked before, or had another trouble for long
    /// enough.
    fn is_news(&mut self, trouble: Trouble) -> bool {
        let now = self.core.now_exact();
        let lost_before = match self.health {
            Health::Works => self.sink.counts.lost(),
            Health::Troubled {
                lost_before,
                trouble: known,
                said,
            } if known != trouble && now.since(said) >= STATE_LOG_INTERVAL => lost_before,
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

/// Takes the next requests: about `spans_max` spans, and few enough bytes for one message.
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
