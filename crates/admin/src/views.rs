//! What the cores say of themselves when they are asked, as far as they answer in time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Core, Reply};
use onrush_serve::{CoreView, Inspector, RequestView};

/// How long a core may take. One that serves looks at its mail a thousand times a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Those that have answered, in the order of the cores, and the numbers of the others.
pub(crate) struct Views {
    pub(crate) cores: Vec<CoreView>,
    pub(crate) silent: Vec<usize>,
}

impl Views {
    pub(crate) async fn take(core: &Core, inspector: &Inspector) -> Views {
        let asked = (0..inspector.cores()).map(|number| {
            let (promise, reply) = core.promise();
            // Who does not take the question does not answer it.
            let _ = inspector.view(number, promise);
            (number, reply)
        });
        let asked: Vec<(usize, Reply<CoreView>)> = asked.collect();
        let mut views = Views {
            cores: Vec::new(),
            silent: Vec::new(),
        };
        let until = core.now_exact() + PATIENCE;
        for (number, reply) in asked {
            match within(core, reply, until.since(core.now_exact())).await {
                Some(view) => views.cores.push(view),
                None => views.silent.push(number),
            }
        }
        views
    }
}

/// The requests that are under way, the oldest first, and the cores that did not answer in time.
pub(crate) async fn requests(core: &Core, inspector: &Inspector) -> (Vec<RequestView>, Vec<usize>) {
    let asked = (0..inspector.cores()).map(|number| {
        let (promise, reply) = core.promise();
        // Who does not take the question does not answer it.
        let _ = inspector.requests(number, promise);
        (number, reply)
    });
    let asked: Vec<(usize, Reply<Vec<RequestView>>)> = asked.collect();
    let (mut all, mut silent) = (Vec::new(), Vec::new());
    let until = core.now_exact() + PATIENCE;
    for (number, reply) in asked {
        match within(core, reply, until.since(core.now_exact())).await {
            Some(views) => all.extend(views),
            None => silent.push(number),
        }
    }
    all.sort_unstable_by_key(|view| std::cmp::Reverse(view.age));
    (all, silent)
}

/// What comes of `reply` in time.
pub(crate) async fn within<T>(core: &Core, mut reply: Reply<T>, patience: Duration) -> Option<T> {
    let mut sleep = core.sleep(patience);
    poll_fn(|context| {
        if let Poll::Ready(value) = Pin::new(&mut reply).poll(context) {
            return Poll::Ready(value);
        }
        Pin::new(&mut sleep).poll(context).map(|()| None)
    })
    .await
}
