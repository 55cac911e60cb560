//! Mail, wake-ups and promised values of other threads, on every driver.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use onrush_engine::{Core, Io, NotPosted, Reply, Simulation};

use super::ground::{SEEDS, on_every_driver, seeds};

const NUMBERS: u32 = 100;

#[test]
fn posted_closures_run_in_order() {
    on_every_driver(|core, _listener, _| async move {
        let (all_posted, posted) = core.promise();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (handle, received) = (core.handle(), Arc::clone(&seen));
        let on_core = thread::current().id();
        let poster = thread::spawn(move || {
            for number in 0..NUMBERS {
                let seen = Arc::clone(&seen);
                handle
                    .post(move |_| {
                        assert_eq!(thread::current().id(), on_core);
                        seen.lock().unwrap().push(number);
                    })
                    .unwrap();
            }
            handle.post(|_| all_posted.fulfil(())).unwrap();
        });
        assert_eq!(posted.await, Some(()));
        poster.join().unwrap();
        assert!(received.lock().unwrap().iter().copied().eq(0..NUMBERS));
    });
}

#[test]
fn posted_closure_spawns_task() {
    on_every_driver(|core, _listener, _| async move {
        let has_run = Arc::new(AtomicBool::new(false));
        let ran = Arc::clone(&has_run);
        let post = core.handle().post(move |core| {
            let same = core.clone();
            core.spawn(async move {
                same.sleep(Duration::from_micros(10)).await;
                ran.store(true, Ordering::Relaxed);
            });
        });
        post.unwrap();
        assert!(!has_run.load(Ordering::Relaxed), "not in this turn");
        while !has_run.load(Ordering::Relaxed) {
            core.sleep(Duration::from_micros(100)).await;
        }
    });
}

/// Gives a task's waker to a thread that wakes it `times` times.
async fn woken_elsewhere(times: usize) {
    let woken = Arc::new(AtomicUsize::new(0));
    let mut thread = None;
    poll_fn(|context| {
        let start = |waker: Waker| {
            let woken = Arc::clone(&woken);
            thread::spawn(move || {
                for _ in 0..times {
                    woken.fetch_add(1, Ordering::Release);
                    waker.wake_by_ref();
                }
            })
        };
        thread.get_or_insert_with(|| start(context.waker().clone()));
        match woken.load(Ordering::Acquire) == times {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    thread.take().unwrap().join().unwrap();
}

#[test]
fn wake_from_other_thread() {
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            eprintln!("skipped: this kernel has no {io:?}");
            continue;
        }
        let core = Core::new(0, io).unwrap();
        for times in [1, 2, 10_000] {
            core.spawn(woken_elsewhere(times));
        }
        assert_eq!(core.run(), 0);
    }
}

/// More tasks than the bound on wake-ups, all woken by one thread while the core is blocked.
#[test]
fn wakes_beyond_queue_limit_reach_all_tasks() {
    on_every_driver(|core, _listener, _| async move {
        const TASKS: usize = 3000;
        let wakers = Rc::new(RefCell::new(Vec::new()));
        let done = Rc::new(Cell::new(0));
        for _ in 0..TASKS {
            let (wakers, done) = (Rc::clone(&wakers), Rc::clone(&done));
            let mut is_first = true;
            core.spawn(async move {
                poll_fn(move |context| match std::mem::take(&mut is_first) {
                    true => {
                        wakers.borrow_mut().push(context.waker().clone());
                        Poll::Pending
                    }
                    false => Poll::Ready(()),
                })
                .await;
                done.set(done.get() + 1);
            });
        }
        while wakers.borrow().len() < TASKS {
            core.yield_now().await;
        }
        let all = wakers.take();
        thread::spawn(move || all.into_iter().for_each(Waker::wake))
            .join()
            .unwrap();
        while done.get() < TASKS {
            core.sleep(Duration::from_micros(100)).await;
        }
    });
}

#[test]
fn destructor_of_task_wakes_another() {
    struct WakesWhenDropped(Waker, Rc<Cell<bool>>);
    impl Drop for WakesWhenDropped {
        fn drop(&mut self) {
            self.1.set(true);
            self.0.wake_by_ref();
        }
    }
    on_every_driver(|core, _listener, _| async move {
        let is_dropped = Rc::new(Cell::new(false));
        poll_fn(|context| {
            if is_dropped.get() {
                return Poll::Ready(());
            }
            let guard = WakesWhenDropped(context.waker().clone(), Rc::clone(&is_dropped));
            // The future owns the guard, so the guard is dropped after the last poll.
            let mut future = Box::pin(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
            core.spawn(poll_fn(move |context| {
                let _ = future.as_mut().poll(context);
                Poll::Ready(())
            }));
            Poll::Pending
        })
        .await;
    });
}

#[test]
fn full_or_stopped_mailbox_refuses_posts() {
    let core = Core::simulated(Simulation::with_seed(1));
    let handle = core.handle();
    let run = Arc::new(AtomicUsize::new(0));
    let post = || {
        let run = Arc::clone(&run);
        handle.post(move |_| {
            run.fetch_add(1, Ordering::Relaxed);
        })
    };
    let taken = (0..10_000).take_while(|_| post().is_ok()).count();
    assert_eq!(post(), Err(NotPosted::Full));
    assert_eq!(core.run(), 0);
    assert_eq!(run.load(Ordering::Relaxed), taken);
    assert_eq!(post(), Ok(()), "there is room again");
    drop(core);
    assert_eq!(post(), Err(NotPosted::Ended));
    assert_eq!(Arc::strong_count(&run), 1, "what was not run is dropped");
}

#[test]
fn dropped_promise_and_reply_are_detected() {
    on_every_driver(|core, _listener, _| async move {
        let (promise, reply) = core.promise::<u32>();
        drop(promise);
        assert_eq!(reply.await, None);
        let (promise, reply) = core.promise::<u32>();
        assert!(promise.is_wanted());
        drop(reply);
        assert!(!promise.is_wanted());
        promise.fulfil(1);
        let (promise, reply) = core.promise::<u32>();
        let thread = thread::spawn(move || drop(promise));
        assert_eq!(reply.await, None);
        thread.join().unwrap();
    });
}

#[test]
fn simulated_promises_are_reproducible() {
    let arrivals = |seed| {
        let core = Core::simulated(Simulation::with_seed(seed));
        let times = Rc::new(RefCell::new(Vec::new()));
        for number in 0..4u64 {
            let (promise, reply): (_, Reply<u64>) = core.promise();
            thread::spawn(move || promise.fulfil(number));
            let (core_too, times) = (core.clone(), Rc::clone(&times));
            core.spawn(async move {
                let number = reply.await.unwrap();
                times.borrow_mut().push((number, core_too.now()));
            });
        }
        assert_eq!(core.run(), 0);
        times.take()
    };
    for seed in seeds(SEEDS) {
        assert_eq!(arrivals(seed), arrivals(seed), "seed {seed}");
    }
}

#[test]
fn posted_closure_reads_attached_value() {
    on_every_driver(|core, _listener, _| async move {
        let there = Rc::new(Cell::new(7));
        let weak = Rc::downgrade(&there);
        core.attach(weak);
        let found = async |core: &Core| {
            let (promise, reply) = core.promise();
            let look = move |core: &Core| {
                let number = core.attached::<Cell<i32>>();
                let other = core.attached::<Cell<u8>>();
                promise.fulfil((number.map(|number| number.get()), other.is_some()));
            };
            core.handle().post(look).unwrap();
            reply.await.unwrap()
        };
        assert_eq!(found(&core).await, (Some(7), false));
        drop(there);
        assert_eq!(found(&core).await, (None, false));
    });
}
