//! Ends a search, and the trial in progress, on a signal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use onrush_load::error::Error;

use super::signals::on_signal;

/// Stops the trial in progress.
type Stop = Box<dyn Fn() + Send>;

/// Whether the user has asked to end the search.
pub(super) struct StopRequest {
    is_over: Arc<AtomicBool>,
    stop: Arc<Mutex<Option<Stop>>>,
}

impl StopRequest {
    /// Installs the signal handler: the first signal ends the search.
    pub(super) fn on_signal() -> Result<StopRequest, Error> {
        let end = StopRequest {
            is_over: Arc::default(),
            stop: Arc::default(),
        };
        let (is_over, stop) = (Arc::clone(&end.is_over), Arc::clone(&end.stop));
        on_signal(move || {
            is_over.store(true, Ordering::Relaxed);
            if let Ok(stop) = stop.lock()
                && let Some(stop) = &*stop
            {
                stop();
            }
        })?;
        Ok(end)
    }

    /// Sets the function that stops the trial in progress.
    pub(super) fn watch(&self, stop: impl Fn() + Send + 'static) {
        // A signal between two trials had nothing to stop.
        if self.is_over() {
            stop();
        }
        if let Ok(mut watched) = self.stop.lock() {
            *watched = Some(Box::new(stop));
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}
