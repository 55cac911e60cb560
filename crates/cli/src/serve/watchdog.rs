//! The service manager's watchdog (sd_watchdog_enabled(3)): sends keep-alive notifications while all cores respond. The
//! manager ends a process whose notifications stop.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use onrush_engine::{Core, Handle, NotPosted};
use sd_notify::watchdog_enabled;

use super::supervisor;

/// Starts the notifications, if the manager expects them.
pub(super) fn start(cores: Vec<Handle>) -> io::Result<()> {
    let Some(patience) = watchdog_enabled() else {
        return Ok(());
    };
    // sd_watchdog_enabled(3) recommends half of the interval; a third leaves time for busy cores.
    let interval = patience / 3;
    let watch = move || {
        loop {
            let until = Instant::now() + interval;
            if all_cores_respond(&cores, patience / 2) {
                supervisor::alive();
            }
            thread::sleep(until.saturating_duration_since(Instant::now()));
        }
    };
    thread::Builder::new()
        .name("watchdog".into())
        .spawn(watch)?;
    Ok(())
}

/// Whether each core has processed its mail in time. A core that has ended does not count as hanging.
fn all_cores_respond(cores: &[Handle], patience: Duration) -> bool {
    let (tell, told) = mpsc::channel();
    let until = Instant::now() + patience;
    let mut asked = 0;
    for core in cores {
        let tell = tell.clone();
        let mail = move |_: &Core| {
            // The receiver may have given up.
            let _ = tell.send(());
        };
        match core.post(mail) {
            Ok(()) => asked += 1,
            Err(NotPosted::Ended) => {}
            Err(NotPosted::Full) => return false,
        }
    }
    // A core that ends drops its mail.
    drop(tell);
    (0..asked).all(|_| {
        let left = until.saturating_duration_since(Instant::now());
        !matches!(
            told.recv_timeout(left),
            Err(mpsc::RecvTimeoutError::Timeout)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::Io;

    /// Starts a core on its own thread, blocked in the middle of a turn until `word` arrives.
    fn core(word: mpsc::Receiver<()>) -> (Handle, thread::JoinHandle<()>) {
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let core = Core::new(0, Io::Epoll).expect("a core");
            tell.send(core.handle()).expect("it is waited for");
            core.spawn(async move { word.recv().unwrap_or_default() });
            core.run();
        });
        (told.recv().expect("a core"), thread)
    }

    #[test]
    fn hung_core_is_detected() {
        let (go, word) = mpsc::channel();
        let (hanging, first) = core(word);
        let (free, word) = mpsc::channel();
        drop(free);
        let (running, second) = core(word);
        let moment = Duration::from_millis(50);
        assert!(!all_cores_respond(
            &[running.clone(), hanging.clone()],
            moment
        ));
        go.send(()).expect("it waits");
        let minute = Duration::from_secs(60);
        let both = [running.clone(), hanging.clone()];
        assert!(all_cores_respond(&both, minute));
        both.iter().for_each(|core| core.stop(Duration::ZERO));
        first.join().expect("it ends");
        second.join().expect("it ends");
        assert!(all_cores_respond(&both, minute));
    }
}
