//! Full-screen view of a run: a thread draws the figures and reads the keys; the terminal is restored when it ends.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onrush_load::figures::Figures;
use onrush_load::live::{LiveView, draw};
use onrush_load::report::rows::SecondRow;
use onrush_load::run::StopHandle;
use onrush_load::snapshot::Snapshot;
use onrush_load::verdict::Verdict;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;

use super::length::RunLength;

/// Interval of key polling: short enough for people, and too rare to disturb the generator.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The open view.
pub(super) struct Screen {
    moments: Sender<Box<SecondFigures>>,
    thread: JoinHandle<()>,
}

/// Figures of one second.
struct SecondFigures {
    row: SecondRow,
    figures: Figures,
    errors_by_kind: BTreeMap<String, u64>,
    waiting: u64,
    verdict: Verdict,
}

impl Screen {
    /// Takes over the terminal and starts the thread.
    pub(super) fn open(
        headline: String,
        length: RunLength,
        stopper: StopHandle,
    ) -> io::Result<Screen> {
        let terminal = ratatui::try_init()?;
        IS_TERMINAL_TAKEN.store(true, Ordering::Relaxed);
        let (moments, received) = channel();
        let live = LiveView {
            headline,
            total_s: length.after.map(|after| after.as_secs_f64()),
            total_requests: length.count,
            ..LiveView::default()
        };
        let shown = move || show(terminal, live, &received, &stopper);
        match thread::Builder::new().name("live".into()).spawn(shown) {
            Ok(thread) => Ok(Screen { moments, thread }),
            Err(error) => {
                restore_terminal();
                Err(error)
            }
        }
    }

    /// Sends the figures of the next second to the view.
    pub(super) fn show(&self, moment: &Snapshot<'_>) {
        // Ignore the error: the view may have ended.
        let _ = self.moments.send(Box::new(SecondFigures {
            row: moment.row,
            figures: moment.figures(),
            errors_by_kind: moment.errors_by_kind(),
            waiting: moment.waiting(),
            verdict: moment.verdict(),
        }));
    }

    /// Ends the view and restores the terminal.
    pub(super) fn close(self) {
        drop(self.moments);
        let _ = self.thread.join();
        restore_terminal();
    }
}

/// Whether the view has taken over the terminal.
static IS_TERMINAL_TAKEN: AtomicBool = AtomicBool::new(false);

/// Restores the terminal (raw mode, screen, cursor) if the view has taken it over. Also called when the program ends in
/// the middle of a run.
pub(super) fn restore_terminal() {
    if IS_TERMINAL_TAKEN.swap(false, Ordering::Relaxed) {
        // Ignore errors: the terminal may be gone.
        let _ = ratatui::try_restore();
        let _ = execute!(io::stdout(), Show);
    }
}

fn show(
    mut terminal: DefaultTerminal,
    mut live: LiveView,
    moments: &Receiver<Box<SecondFigures>>,
    stopper: &StopHandle,
) {
    let mut is_new = true;
    loop {
        // The run continues when the terminal cannot be written.
        if is_new && terminal.draw(|frame| draw(frame, &live)).is_err() {
            return;
        }
        is_new = false;
        while event::poll(Duration::ZERO).unwrap_or(false) {
            match event::read() {
                Ok(Event::Key(key)) if is_end(key) => stopper.stop(),
                Ok(Event::Resize(..)) => is_new = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        match moments.recv_timeout(KEY_POLL_INTERVAL) {
            Ok(moment) => {
                let shown = *moment;
                live.push(shown.row);
                live.figures = shown.figures;
                live.errors_by_kind = shown.errors_by_kind;
                live.waiting = shown.waiting;
                live.verdict = shown.verdict;
                is_new = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Whether the key ends the run; in raw mode Ctrl-C is a key.
fn is_end(key: KeyEvent) -> bool {
    let is_control_c =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_control_c || key.code == KeyCode::Char('q') || key.code == KeyCode::Esc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_ctrl_c_end_run() {
        let key = |code, modifiers| is_end(KeyEvent::new(code, modifiers));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(key(KeyCode::Esc, KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(!key(KeyCode::Char('x'), KeyModifiers::CONTROL));
    }
}
