//! Queries to all cores, with a time limit.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Core, NotPosted, Promise, Reply};
use onrush_serve::{
    ConnectionQuery, ConnectionsView, CoreView, Inspector, ProfileView, RequestView, SpansView,
};

/// Time limit for the answer of a core. A serving core checks its mail a thousand times per second.
pub(crate) const CORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Views of the cores that answered, in their order, and the numbers of the others.
pub(crate) struct CoreViews {
    pub(crate) cores: Vec<CoreView>,
    pub(crate) unresponsive: Vec<usize>,
    /// Trace spans that were sent and lost.
    pub(crate) spans: SpansView,
}

impl CoreViews {
    pub(crate) async fn take(core: &Core, inspector: &Inspector) -> CoreViews {
        let ask = |number, promise| inspector.view(number, promise);
        let (cores, silent) = query_cores(core, inspector.cores(), ask).await;
        CoreViews {
            cores,
            unresponsive: silent,
            spans: inspector.spans(),
        }
    }
}

/// Requests in flight, oldest first, and the cores that did not answer.
pub(crate) async fn requests(core: &Core, inspector: &Inspector) -> (Vec<RequestView>, Vec<usize>) {
    let asked = core.now_exact();
    let ask = |number, promise| inspector.requests(number, asked, promise);
    let (all, silent) = query_cores(core, inspector.cores(), ask).await;
    let mut all = all.concat();
    all.sort_unstable_by_key(|view| std::cmp::Reverse(view.age));
    (all, silent)
}

/// Profiles of the cores, and the cores that did not answer.
pub(crate) async fn profiles(core: &Core, inspector: &Inspector) -> (Vec<ProfileView>, Vec<usize>) {
    let ask = |number, promise| inspector.profile(number, promise);
    query_cores(core, inspector.cores(), ask).await
}

/// Connections that match a query, by core, and the cores that did not answer.
pub(crate) async fn connections(
    core: &Core,
    inspector: &Inspector,
    query: &ConnectionQuery,
) -> (Vec<ConnectionsView>, Vec<usize>) {
    let asked = core.now_exact();
    let ask = |number, promise| inspector.connections(number, (query.clone(), asked), promise);
    query_cores(core, inspector.cores(), ask).await
}

/// Queries each of `cores`. Returns the answers in order, and the numbers of the cores that did not answer in time.
pub(crate) async fn query_cores<T: Send + 'static>(
    core: &Core,
    cores: usize,
    ask: impl Fn(usize, Promise<T>) -> Result<(), NotPosted>,
) -> (Vec<T>, Vec<usize>) {
    let asked = (0..cores).map(|number| {
        let (promise, reply) = core.promise();
        // A core that cannot take the query counts as not responding.
        let _ = ask(number, promise);
        (number, reply)
    });
    let asked: Vec<(usize, Reply<T>)> = asked.collect();
    let (mut answers, mut silent) = (Vec::new(), Vec::new());
    let until = core.now_exact() + CORE_TIMEOUT;
    for (number, reply) in asked {
        match with_timeout(core, reply, until.since(core.now_exact())).await {
            Some(answer) => answers.push(answer),
            None => silent.push(number),
        }
    }
    (answers, silent)
}

/// Waits for `reply` up to `patience`.
pub(crate) async fn with_timeout<T>(
    core: &Core,
    mut reply: Reply<T>,
    patience: Duration,
) -> Option<T> {
    let mut sleep = core.sleep(patience);
    poll_fn(|context| {
        if let Poll::Ready(value) = Pin::new(&mut reply).poll(context) {
            return Poll::Ready(value);
        }
        Pin::new(&mut sleep).poll(context).map(|()| None)
    })
    .await
}
