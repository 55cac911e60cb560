//! Tests of tasks without a core.

use super::*;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::limits::CORES_MAX;

/// An index without a core.
const PLACE: u16 = CORES_MAX as u16 - 1;

#[test]
fn self_woken_task_runs_again() {
    let tasks = Tasks::new(PLACE, Clock::Real);
    let runs = Rc::new(Cell::new(0));
    let seen = Rc::clone(&runs);
    tasks.spawn(
        Work::TASK,
        Box::pin(poll_fn(move |context| {
            seen.set(seen.get() + 1);
            if seen.get() == 3 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })),
    );
    tasks.run(10);
    assert_eq!((runs.get(), tasks.count()), (3, 0));
}

#[test]
fn yielded_tasks_run_in_order() {
    let tasks = Rc::new(Tasks::new(PLACE, Clock::Real));
    let order = Rc::new(RefCell::new(Vec::new()));
    for number in 0..YIELDED_PER_TURN + 1 {
        let (own, order) = (Rc::clone(&tasks), Rc::clone(&order));
        tasks.spawn(
            Work::TASK,
            Box::pin(poll_fn(move |_| {
                order.borrow_mut().push(number);
                own.yield_now();
                Poll::<()>::Pending
            })),
        );
    }
    tasks.run(1000);
    assert!(order.take().into_iter().eq(0..YIELDED_PER_TURN + 1), "once");
    let mut wanted = (0..YIELDED_PER_TURN + 1).cycle();
    for _ in 0..5 {
        assert!(tasks.has_ready());
        tasks.run(1000);
        let turn: Vec<usize> = wanted.by_ref().take(YIELDED_PER_TURN).collect();
        assert_eq!(order.take(), turn);
    }
    tasks.clear();
    assert!(!tasks.has_ready());
}

#[test]
fn task_over_operation_budget_waits_for_next_turn() {
    for (charged, runs_in_a_turn) in [(OPERATIONS_PER_POLL, 10), (OPERATIONS_PER_POLL + 1, 1)] {
        let tasks = Rc::new(Tasks::new(PLACE, Clock::Real));
        let runs = Rc::new(Cell::new(0));
        let (own, seen) = (Rc::clone(&tasks), Rc::clone(&runs));
        tasks.spawn(
            Work::TASK,
            Box::pin(poll_fn(move |_| {
                seen.set(seen.get() + 1);
                own.charge(charged);
                assert!(!own.may_continue());
                Poll::<()>::Pending
            })),
        );
        for turn in 1..4 {
            tasks.run(10);
            assert_eq!(runs.get(), turn * runs_in_a_turn);
        }
        tasks.clear();
    }
}

#[test]
fn stale_task_id_wakes_no_task() {
    let tasks = Tasks::new(PLACE, Clock::Real);
    let first = tasks.spawn(Work::TASK, Box::pin(async {}));
    tasks.run(1);
    let polled = Rc::new(Cell::new(0));
    let seen = Rc::clone(&polled);
    let second = tasks.spawn(
        Work::TASK,
        Box::pin(poll_fn(move |_| {
            seen.set(seen.get() + 1);
            Poll::Pending
        })),
    );
    tasks.run(10);
    assert_eq!(first.index, second.index, "the place is reused");
    tasks.wake(first);
    tasks.run(10);
    assert_eq!(polled.get(), 1);
}

/// A task that never ends, stores its waker and counts its polls.
fn waiting(waker: &Rc<RefCell<Option<Waker>>>, polls: &Rc<Cell<u32>>) -> Future_ {
    let (waker, polls) = (Rc::clone(waker), Rc::clone(polls));
    Box::pin(poll_fn(move |context| {
        polls.set(polls.get() + 1);
        *waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }))
}

/// Runs a closure when it is dropped.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn task_woken_in_destructor_runs() {
    let tasks = Tasks::new(PLACE, Clock::Real);
    let (waker, polls) = (Rc::default(), Rc::default());
    tasks.spawn(Work::TASK, waiting(&waker, &polls));
    let at_end = AtEnd({
        let waker = Rc::clone(&waker);
        move || waker.borrow_mut().take().into_iter().for_each(Waker::wake)
    });
    // Dropped with the future, not when the future is ready.
    tasks.spawn(
        Work::TASK,
        Box::pin(poll_fn(move |_| {
            let _held = &at_end;
            Poll::Ready(())
        })),
    );
    tasks.run(2);
    assert!(tasks.has_ready(), "it was woken");
    tasks.run(10);
    assert_eq!(polls.get(), 2);
    tasks.clear();
}

#[test]
fn tasks_spawned_while_clearing_are_dropped() {
    let tasks = Rc::new(Tasks::new(PLACE, Clock::Real));
    let held = Rc::new(());
    let (own, kept) = (Rc::clone(&tasks), Rc::clone(&held));
    let at_end = AtEnd(move || {
        let kept = Rc::clone(&kept);
        own.spawn(
            Work::TASK,
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(kept);
            }),
        );
    });
    tasks.spawn(
        Work::TASK,
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(at_end);
        }),
    );
    tasks.run(5);
    tasks.clear();
    assert_eq!((Rc::strong_count(&held), tasks.count()), (1, 0));
    assert!(!tasks.has_ready());
}

#[test]
fn clear_drops_each_future_once() {
    let tasks = Tasks::new(PLACE, Clock::Real);
    let held = Rc::new(());
    for _ in 0..10 {
        let held = Rc::clone(&held);
        tasks.spawn(
            Work::TASK,
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(held);
            }),
        );
    }
    tasks.run(5);
    tasks.clear();
    assert_eq!((Rc::strong_count(&held), tasks.count()), (1, 0));
}
