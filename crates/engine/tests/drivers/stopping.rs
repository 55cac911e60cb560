//! Stopping cores and listeners.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Core, Input, Io, Kind, Stream};

use crate::ground::on_every_driver;

#[test]
fn stop_interrupts_only_idle_waits() {
    on_every_driver(|core, listener, address| async move {
        let finished = Rc::new(Cell::new(0));
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let count = Rc::clone(&finished);
        core.spawn(async move {
            let error = listener.accept().await.err().expect("interrupted");
            assert_eq!(error.kind, Kind::Stopping);
            count.set(count.get() + 1);
        });
        let count = Rc::clone(&finished);
        core.spawn(async move {
            let error = server
                .recv_unless_stopping(&mut Input::default())
                .await
                .unwrap_err();
            assert_eq!(error.kind, Kind::Stopping);
            count.set(count.get() + 1);
        });
        let (count, sleeper) = (Rc::clone(&finished), core.clone());
        core.spawn(async move {
            sleeper.stopped().await;
            sleeper.sleep(Duration::from_millis(3)).await;
            assert_eq!(count.get(), 2);
            count.set(3);
        });
        core.yield_now().await;
        core.stop(Duration::from_secs(60));
        while finished.get() < 3 {
            core.sleep(Duration::from_millis(1)).await;
        }
        drop(client);
    });
}

#[test]
fn later_longer_stop_does_not_extend_drain() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let waiting = core.clone();
        core.spawn(async move { waiting.sleep(Duration::from_secs(3600)).await });
        core.stop(Duration::ZERO);
        core.stop(Duration::from_secs(3600));
        assert_eq!(core.run(), 1, "the sleeper is cut off");
    }
}

#[test]
fn later_shorter_stop_shortens_drain() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let (waiting, stopper) = (core.clone(), core.clone());
        core.spawn(async move { waiting.sleep(Duration::from_secs(3600)).await });
        core.spawn(async move {
            stopper.stop(Duration::from_secs(3600));
            stopper.stopped().await;
            stopper.stop(Duration::ZERO);
        });
        assert_eq!(core.run(), 1, "the sleeper is cut off");
    }
}

#[test]
fn repeated_stops_do_not_delay_stop() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let (waiting, handle) = (core.clone(), core.handle());
        core.spawn(async move {
            waiting.stopped().await;
            for _ in 0..100 {
                waiting.yield_now().await;
            }
        });
        let stopper = std::thread::spawn(move || {
            for _ in 0..10_000 {
                handle.stop(Duration::from_secs(60));
            }
        });
        assert_eq!(core.run(), 0);
        stopper.join().unwrap();
    }
}

#[test]
fn stop_from_other_thread() {
    let cpus = onrush_engine::cpu::allowed()
        .into_iter()
        .map(Some)
        .collect();
    let setup = onrush_engine::Setup {
        io: Io::Epoll,
        cpus,
    };
    let cores = onrush_engine::start(&setup, |core| {
        let waiting = core.clone();
        core.spawn(async move { waiting.stopped().await });
        assert_eq!(core.run(), 0);
        core.id()
    })
    .unwrap();
    cores.stop(Duration::from_secs(1));
    let ids = cores.join();
    assert_eq!(ids, (0..ids.len()).collect::<Vec<_>>());
}

#[test]
fn ended_listener_accepts_queued_connection() {
    on_every_driver(|core, listener, address| async move {
        let waiting = Stream::connect(&core, &address, None).await.unwrap();
        listener.end();
        let accepted = listener.accept().await.unwrap();
        for _ in 0..2 {
            let error = listener.accept().await.err().expect("it has ended");
            assert_eq!(error.kind, Kind::Stopping);
        }
        drop(listener);
        assert!(!core.is_stopping());
        waiting.queue(&b"on"[..]);
        waiting.flush().await.unwrap();
        let mut input = Input::default();
        while input.bytes().len() < 2 {
            accepted.recv(&mut input).await.unwrap();
        }
        assert_eq!(input.bytes(), b"on");
    });
}

#[test]
fn ending_listener_wakes_pending_accept() {
    on_every_driver(|core, listener, _| async move {
        let listener = Rc::new(listener);
        let (ended, seen) = (Rc::new(Cell::new(false)), Rc::clone(&listener));
        let note = Rc::clone(&ended);
        core.spawn(async move {
            let error = seen.accept().await.err().expect("nobody comes");
            assert_eq!(error.kind, Kind::Stopping);
            note.set(true);
        });
        core.sleep(Duration::from_millis(1)).await;
        assert!(!ended.get());
        listener.end();
        while !ended.get() {
            core.sleep(Duration::from_millis(1)).await;
        }
    });
}
