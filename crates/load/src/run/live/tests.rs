//! The view at several sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::verdict::reason::Reason;

/// Draws the view as text, one line per row of the terminal.
fn drawn(live: &LiveView, width: u16, height: u16) -> String {
    let mut terminal =
        Terminal::new(TestBackend::new(width, height)).expect("it has no terminal to fail");
    terminal
        .draw(|frame| draw(frame, live))
        .expect("it has no terminal to fail");
    terminal.backend().to_string()
}

fn live(seconds: u32) -> LiveView {
    let mut live = LiveView {
        headline: "http://a/ at 127.0.0.1:80: 10 connections over 1 thread".to_owned(),
        total_s: Some(60.0),
        ..LiveView::default()
    };
    for second in 1..=seconds {
        live.push(SecondRow {
            t: f64::from(second),
            connections: 10,
            requests: 1_000,
            rps: 1_000.0 + f64::from(second % 7) * 50.0,
            bytes_per_s: 120_000.0,
            p50_us: Some(80.0),
            p99_us: Some(900.0 + f64::from(second % 5) * 100.0),
            max_us: Some(4_000.0),
            ..SecondRow::default()
        });
        live.figures.responses += 1_000;
    }
    for value in 1..=10_000_u64 {
        for kind in [Kind::Response, Kind::Service] {
            live.figures.times.of_mut(kind).record(value * 1_000);
        }
        live.figures.times.of_mut(Kind::SendLag).record(2_000);
    }
    live.figures.statuses = [("2xx".to_owned(), 29_000), ("5xx".to_owned(), 1_000)].into();
    live.figures.errors = 12;
    live.errors_by_kind = [("reset".to_owned(), 12), ("timeout".to_owned(), 0)].into();
    live.waiting = 345;
    live
}

#[test]
fn standard_screen_shows_everything() {
    let screen = drawn(&live(30), 120, 40);
    for part in [
        "http://a/ at 127.0.0.1:80",
        "VALID so far",
        "30 s of 60 s",
        "responses",
        "response times",
        "distribution",
        "30,000",
        "120 kB/s",
        "waiting        345",
        "5xx",
        "reset",
        "99.9 %",
        "9.99 ms",
        "send lag",
        "p99",
        "q or Ctrl-C",
    ] {
        assert!(screen.contains(part), "{part} in\n{screen}");
    }
    assert!(!screen.contains("timeout"), "none happened:\n{screen}");
}

#[test]
fn incomplete_requests_make_percentiles_lower_bounds() {
    let mut live = live(30);
    for _ in 0..9_000 {
        live.figures
            .unanswered
            .record(2_000_000_000, 3_000_000_000, 1);
    }
    let screen = drawn(&live, 120, 40);
    assert!(screen.contains("p50 9.50ms  p99 ≥2s  max ≥2s"), "{screen}");
    assert!(screen.contains("≥3s"), "service times, too: {screen}");
    // No response at all.
    live.figures.times = crate::record::times::Times::default();
    let screen = drawn(&live, 120, 40);
    assert!(screen.contains("p50 ≥2s  p99 ≥2s  max ≥2s"), "{screen}");
}

#[test]
fn narrow_screen_keeps_percentiles() {
    let screen = drawn(&live(30), 60, 24);
    assert!(
        screen.contains("99.9 %") && screen.contains("9.99 ms"),
        "{screen}"
    );
    assert!(screen.contains("12 errors"), "{screen}");
    assert!(!screen.contains("statuses"), "{screen}");
}

#[test]
fn terminal_80x24_shows_errors_and_percentiles() {
    let screen = drawn(&live(30), 80, 24);
    for part in ["99.9 %", "9.99 ms", "reset", "5xx", "12 errors"] {
        assert!(screen.contains(part), "{part} in\n{screen}");
    }
}

#[test]
fn every_screen_size_shows_main_percentiles() {
    for (width, height) in [
        (36, 1),
        (36, 3),
        (40, 10),
        (60, 24),
        (80, 24),
        (120, 40),
        (300, 100),
    ] {
        let screen = drawn(&live(30), width, height);
        assert!(
            screen.contains("p50 5.00ms  p99 9.90ms  max 10ms"),
            "{width}x{height}:\n{screen}"
        );
    }
}

#[test]
fn charts_have_three_rows_at_80x24() {
    let screen = drawn(&live(30), 80, 24);
    let lines: Vec<&str> = screen.lines().collect();
    let at = |part: &str| {
        lines
            .iter()
            .position(|line| line.contains(part))
            .expect(part)
    };
    let (rate, times, spread) = (
        at(" responses "),
        at("response times"),
        at("percentiles so far"),
    );
    // Borders; the second chart also has the axis with its labels.
    assert!(times - rate - 2 > 2, "{screen}");
    assert!(spread - times - 4 > 2, "{screen}");
}

#[test]
fn axis_labels_do_not_overlap() {
    let mut live = live(5);
    live.push(SecondRow {
        t: 6.0,
        p50_us: Some(1.0),
        max_us: Some(900_000.0),
        ..SecondRow::default()
    });
    let low = drawn(&live, 80, 24);
    assert!(
        low.contains("│1 s │") && low.contains("│1 us│") && !low.contains("10 ms"),
        "{low}"
    );
    let high = drawn(&live, 120, 60);
    assert!(
        high.contains("│1 s   │") && high.contains("│10 ms │"),
        "{high}"
    );
}

#[test]
fn any_screen_size_is_drawn() {
    for (width, height) in [(1, 1), (3, 2), (10, 5), (83, 7), (84, 10), (300, 100)] {
        for seconds in [0, 1, 2, 500] {
            let mut live = live(seconds);
            drawn(&live, width, height);
            live.figures = Figures::default();
            live.total_s = None;
            drawn(&live, width, height);
            live.total_requests = Some(7);
            drawn(&live, width, height);
        }
    }
}

#[test]
fn first_reason_is_shown_with_verdict() {
    let mut live = live(3);
    let reason = Reason {
        state: State::Suspect,
        what: "CPU of its busiest thread".to_owned(),
        measured: "99 %".to_owned(),
        bound: "below 95 %".to_owned(),
        remedy: String::new(),
    };
    for (reasons, expected) in [
        (1, "SUSPECT so far  CPU of its busiest thread: 99 %"),
        (
            3,
            "SUSPECT so far and 2 more  CPU of its busiest thread: 99 %",
        ),
    ] {
        live.verdict = Verdict::from(vec![reason.clone(); reasons]);
        let screen = drawn(&live, 120, 40);
        assert!(screen.contains(expected), "{screen}");
    }
}

#[test]
fn old_rows_are_dropped() {
    let mut live = LiveView::default();
    (0..2 * LIVE_ROWS_MAX).for_each(|_| live.push(SecondRow::default()));
    assert_eq!(live.seconds.len(), LIVE_ROWS_MAX);
}

#[test]
fn progress_uses_nearer_of_count_and_time() {
    let mut live = live(30);
    assert_eq!(live.progress(), Some(0.5));
    live.total_requests = Some(40_016);
    assert_eq!(live.progress(), Some(0.75));
    live.total_requests = Some(1);
    assert_eq!(live.progress(), Some(1.0));
    live.total_requests = None;
    live.total_s = None;
    assert_eq!(live.progress(), None);
}
