//! The full-screen view of a run under way: what is drawn, from what is known. Pure: it draws into a frame, and whoever
//! owns the terminal shows it.
//!
//! ```text
//!  title, response times in short, verdict as it stands, progress
//!  answers per second        │ counts
//!  response times over time  │ statuses and errors
//!  distribution              │ percentiles
//! ```

mod percentiles;

use std::collections::{BTreeMap, VecDeque};

use onrush_measure::units;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Bar, BarChart, BarGroup, Block, Chart, Dataset, GraphType, LineGauge, Paragraph, Row,
    Sparkline, Table,
};

use crate::figures::{Figures, Kind};
use crate::limits::LIVE_ROWS_MAX;
use crate::report::rows::SecondRow;
use crate::verdict::{State, Verdict};
use percentiles::{draw_percentiles, in_short};

/// Everything the view knows.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// What runs where, in one line.
    pub headline: String,
    /// How long the run is to take.
    pub total_s: Option<f64>,
    /// How many requests it is to make.
    pub total_requests: Option<u64>,
    /// The last seconds.
    pub seconds: VecDeque<SecondRow>,
    /// The whole run so far.
    pub figures: Figures,
    /// Its errors by kind, those that happened.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Requests that are due and not sent yet.
    pub waiting: u64,
    /// What can be said of it so far.
    pub verdict: Verdict,
}

impl Live {
    /// A second has passed.
    pub fn push(&mut self, row: SecondRow) {
        if self.seconds.len() == LIVE_ROWS_MAX {
            self.seconds.pop_front();
        }
        self.seconds.push_back(row);
    }

    fn elapsed_s(&self) -> f64 {
        self.seconds.back().map_or(0.0, |row| row.t)
    }

    /// The share of the run that is done, by whichever of its ends is nearer.
    fn progress(&self) -> Option<f64> {
        let by_time = self.total_s.map(|total| self.elapsed_s() / total);
        let figures = &self.figures;
        let finished = (figures.answers + figures.errors - figures.unexpected) as f64;
        let by_count = self.total_requests.map(|total| finished / total as f64);
        by_time
            .into_iter()
            .chain(by_count)
            .reduce(f64::max)
            .map(|share| share.clamp(0.0, 1.0))
    }

    /// The last `count` seconds, the oldest first.
    fn last(&self, count: usize) -> impl Iterator<Item = &SecondRow> {
        self.seconds
            .iter()
            .skip(self.seconds.len().saturating_sub(count))
    }
}

/// Lines above the charts.
const HEAD: u16 = 4;
/// Width of the column on the right.
const RIGHT: u16 = 42;
/// Width of the percentiles where they share a narrow view, and what must be left beside them to say something.
const PERCENTILES: u16 = 40;
const BESIDE_MIN: u16 = 30;

/// Draws the view.
pub fn draw(frame: &mut Frame<'_>, live: &Live) {
    let foot = u16::from(frame.area().height > HEAD);
    let [head, middle, foot] = Layout::vertical([
        Constraint::Length(HEAD),
        Constraint::Min(0),
        Constraint::Length(foot),
    ])
    .areas(frame.area());
    draw_head(frame, head, live);
    let is_narrow = middle.width < 2 * RIGHT;
    let right = if is_narrow { 0 } else { RIGHT };
    let [left, right] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(right)]).areas(middle);
    let thirds = match is_narrow {
        // With 19 rows each has three to draw in, and the percentiles four lines.
        true => [5, 7, 7],
        false => [5, 7, 7].map(|part| part + 1),
    };
    let whole = thirds.iter().sum();
    let thirds = thirds.map(|part| Constraint::Ratio(part, whole));
    let [rate, times, spread] = Layout::vertical(thirds).areas(left);
    draw_rate(frame, rate, live);
    draw_times(frame, times, live);
    if is_narrow {
        // The percentiles are what people came for, and errors what they did not.
        let beside = spread.width.saturating_sub(PERCENTILES);
        let beside = if beside < BESIDE_MIN { 0 } else { beside };
        let parts = [Constraint::Min(0), Constraint::Length(beside)];
        let [percentiles, statuses] = Layout::horizontal(parts).areas(spread);
        draw_percentiles(frame, percentiles, live);
        draw_statuses(frame, statuses, live);
    } else {
        draw_distribution(frame, spread, live);
        let [counts, statuses, percentiles] = Layout::vertical(thirds).areas(right);
        draw_counts(frame, counts, live);
        draw_statuses(frame, statuses, live);
        draw_percentiles(frame, percentiles, live);
    }
    let keys = Line::from(" q or Ctrl-C ends the run and prints the summary").dark_gray();
    frame.render_widget(keys, foot);
}

fn colour(state: State) -> Color {
    match state {
        State::Valid => Color::Green,
        State::Suspect => Color::Yellow,
        State::Invalid => Color::Red,
    }
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    // What people came for is there however few lines there are.
    let line = |at: u16| Rect {
        y: area.y + at.min(area.height),
        height: area.height.saturating_sub(at).min(1),
        ..area
    };
    let (title, times) = match area.height {
        ..HEAD => (line(1), line(0)),
        HEAD.. => (line(0), line(1)),
    };
    let (verdict, progress) = (line(2), line(3));
    frame.render_widget(in_short(live), times);
    frame.render_widget(Line::from(format!(" {}", live.headline)).bold(), title);
    let state = live.verdict.state;
    let mut words = vec![Span::styled(
        format!(" {state} so far"),
        Style::new().fg(colour(state)).bold(),
    )];
    if let [first, others @ ..] = &live.verdict.reasons[..] {
        // In front, where a narrow view has room for it.
        let others = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        words.push(Span::raw(format!(
            "{others}  {}: {} ({})",
            first.what, first.measured, first.bound
        )));
    }
    frame.render_widget(Line::from(words), verdict);
    let elapsed = live.elapsed_s();
    let label = match (live.total_s, live.total_requests) {
        (Some(total), _) => format!(" {elapsed:.0} s of {total:.0} s"),
        (None, Some(total)) => format!(" {elapsed:.0} s, {} requests in all", units::count(total)),
        (None, None) => format!(" {elapsed:.0} s, until you end it"),
    };
    match live.progress() {
        None => frame.render_widget(Line::from(label), progress),
        Some(share) => {
            let gauge = LineGauge::default()
                .ratio(share)
                .label(label)
                .filled_style(Style::new().fg(Color::Blue));
            frame.render_widget(gauge, progress);
        }
    }
}

fn block(title: impl Into<Line<'static>>) -> Block<'static> {
    Block::bordered()
        .border_style(Style::new().fg(Color::DarkGray))
        .title(title)
}

fn draw_rate(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    let now = live.seconds.back().map_or(0.0, |row| row.rps);
    let mut title = vec![Span::raw(format!(" {} answers ", units::rate(now)))];
    if live.figures.errors > 0 {
        let errors = format!(" {} errors ", units::count(live.figures.errors));
        title.push(Span::styled(errors, Style::new().fg(Color::Red).bold()));
    }
    let block = block(Line::from(title));
    let width = usize::from(block.inner(area).width);
    let rates: Vec<u64> = live.last(width).map(|row| row.rps.round() as u64).collect();
    let sparkline = Sparkline::default()
        .data(&rates)
        .style(Style::new().fg(Color::Blue))
        .block(block);
    frame.render_widget(sparkline, area);
}

/// Percentiles on a logarithmic axis: a stall of a second and a median of 50 us are on one picture.
fn draw_times(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    type Pick = fn(&SecondRow) -> Option<f64>;
    let picks: [(&str, Color, Pick); 4] = [
        ("max", Color::DarkGray, |row| row.max_us),
        ("p99.9", Color::Red, |row| row.p99_9_us),
        ("p99", Color::Yellow, |row| row.p99_us),
        ("p50", Color::Green, |row| row.p50_us),
    ];
    // Braille has two dots in a cell.
    let shown = usize::from(area.width).max(1) * 2;
    type Curve = (&'static str, Color, Vec<(f64, f64)>);
    let curves: Vec<Curve> = picks
        .into_iter()
        .map(|(name, colour, pick)| {
            let point = |row: &SecondRow| Some((row.t, pick(row).filter(|us| *us > 0.0)?.log10()));
            (name, colour, live.last(shown).filter_map(point).collect())
        })
        .collect();
    let legend = curves
        .iter()
        .map(|(name, colour, _)| Span::styled(format!("{name} "), Style::new().fg(*colour)));
    let title = std::iter::once(Span::raw(" response times  ")).chain(legend);
    let titled = block(title.collect::<Line<'static>>());
    let values = || {
        curves
            .iter()
            .flat_map(|(.., points)| points)
            .map(|point| point.1)
    };
    let low = values().fold(f64::INFINITY, f64::min).floor();
    let high = values()
        .fold(f64::NEG_INFINITY, f64::max)
        .ceil()
        .max(low + 1.0);
    if !low.is_finite() {
        return frame.render_widget(Paragraph::new("no answers yet").block(titled), area);
    }
    let datasets = curves.iter().map(|(name, colour, points)| {
        Dataset::default()
            .name(*name)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(*colour))
            .data(points)
    });
    let first = live.last(shown).next().map_or(0.0, |row| row.t);
    let last = live.elapsed_s().max(first + 1.0);
    let power = |exponent: f64| units::nanoseconds(10_f64.powf(exponent) * 1000.0);
    // Borders, the axis and its labels aside; several labels on a row would be drawn over each other.
    let rows = area.height.saturating_sub(4);
    let step = if high - low < f64::from(rows) {
        1.0
    } else {
        high - low
    };
    let labels = std::iter::successors(Some(low), |at| Some(at + step));
    let labels = labels.take_while(|at| *at <= high).map(power);
    let chart = Chart::new(datasets.collect())
        .block(titled)
        .x_axis(
            Axis::default()
                .bounds([first, last])
                .labels([format!("{first:.0} s"), format!("{last:.0} s")])
                .style(Style::new().fg(Color::DarkGray)),
        )
        .y_axis(
            Axis::default()
                .bounds([low, high])
                .labels(labels)
                .style(Style::new().fg(Color::DarkGray)),
        );
    frame.render_widget(chart, area);
}

/// Response times of the whole run, each column a step of time.
fn draw_distribution(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    const WIDTH: u16 = 7;
    let block = block(" distribution of response times, % ");
    let inner = block.inner(area);
    let columns = usize::from(inner.width / (WIDTH + 1)).max(1);
    let response = live.figures.times.of(Kind::Response);
    if response.count() == 0 {
        return frame.render_widget(block, area);
    }
    let (low, high) = (response.min().max(1) as f64, response.max().max(2) as f64);
    let step = (high / low).powf(1.0 / columns as f64).max(1.0 + 1e-9);
    let mut counts = vec![0_u64; columns];
    for (ns, count) in response.recorded() {
        let at = (ns.max(1) as f64 / low).log(step) as usize;
        counts[at.min(columns - 1)] += count;
    }
    let bars: Vec<Bar<'_>> = (1..)
        .zip(&counts)
        .map(|(at, count)| {
            let share = *count as f64 * 100.0 / response.count() as f64;
            let edge = units::nanoseconds(low * step.powi(at)).replace(' ', "");
            Bar::default()
                // Thousandths, so that a tenth of a per cent is higher than nothing.
                .value((share * 1000.0) as u64)
                .text_value(if share > 0.0 {
                    format!("{share:.1}")
                } else {
                    String::new()
                })
                .label(Line::from(edge))
                .style(Style::new().fg(Color::Blue))
                .value_style(Style::new().reversed())
        })
        .collect();
    let chart = BarChart::default()
        .data(BarGroup::default().bars(&bars))
        .bar_width(WIDTH)
        .block(block);
    frame.render_widget(chart, area);
}

fn draw_counts(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    let last = live.seconds.back().copied().unwrap_or_default();
    let figures = &live.figures;
    let errors = Style::new().fg(if figures.errors > 0 {
        Color::Red
    } else {
        Color::Reset
    });
    let rows = [
        Row::new(["answers".to_owned(), units::count(figures.answers)]),
        Row::new(["errors".to_owned(), units::count(figures.errors)]).style(errors),
        Row::new(["waiting".to_owned(), units::count(live.waiting)]),
        Row::new(["never sent".to_owned(), units::count(figures.missed)]),
        Row::new(["connections".to_owned(), units::count(last.connections)]),
        Row::new(["received".to_owned(), units::bytes(last.bytes_per_s) + "/s"]),
    ];
    let widths = [Constraint::Length(14), Constraint::Min(0)];
    frame.render_widget(Table::new(rows, widths).block(block(" counts ")), area);
}

fn draw_statuses(frame: &mut Frame<'_>, area: Rect, live: &Live) {
    let status = |(class, count): (&String, &u64)| {
        let colour = match &**class {
            "2xx" => Color::Green,
            "4xx" | "5xx" => Color::Red,
            _ => Color::Reset,
        };
        Row::new([class.clone(), units::count(*count)]).style(Style::new().fg(colour))
    };
    let error = |(kind, count): (&String, &u64)| {
        Row::new([kind.replace('_', " "), units::count(*count)]).style(Style::new().fg(Color::Red))
    };
    // Errors first: there may be more statuses than lines.
    let rows: Vec<Row<'_>> = live
        .errors_by_kind
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(error)
        .chain(live.figures.statuses.iter().map(status))
        .collect();
    let widths = [Constraint::Length(24), Constraint::Min(0)];
    let table = Table::new(rows, widths).block(block(" statuses and errors "));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::verdict::Reason;

    /// The view as text, a line for each row of the terminal.
    fn drawn(live: &Live, width: u16, height: u16) -> String {
        let mut terminal =
            Terminal::new(TestBackend::new(width, height)).expect("it has no terminal to fail");
        terminal
            .draw(|frame| draw(frame, live))
            .expect("it has no terminal to fail");
        terminal.backend().to_string()
    }

    fn live(seconds: u32) -> Live {
        let mut live = Live {
            headline: "http://a/ at 127.0.0.1:80: 10 connections over 1 thread".to_owned(),
            total_s: Some(60.0),
            ..Live::default()
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
            live.figures.answers += 1_000;
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
    fn everything_is_on_a_screen_of_common_size() {
        let screen = drawn(&live(30), 120, 40);
        for part in [
            "http://a/ at 127.0.0.1:80",
            "VALID so far",
            "30 s of 60 s",
            "answers",
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
    fn what_is_not_answered_shows_in_the_percentiles_that_it_may_change() {
        let mut live = live(30);
        for _ in 0..9_000 {
            live.figures
                .unanswered
                .record(2_000_000_000, 3_000_000_000, 1);
        }
        let screen = drawn(&live, 120, 40);
        assert!(screen.contains("p50 9.50ms  p99 >2s  max >2s"), "{screen}");
        assert!(screen.contains(">3s"), "service times, too: {screen}");
        // Nothing was answered at all.
        live.figures.times = crate::times::Times::default();
        let screen = drawn(&live, 120, 40);
        assert!(screen.contains("p50 >2s  p99 >2s  max >2s"), "{screen}");
    }

    #[test]
    fn a_narrow_screen_keeps_the_percentiles() {
        let screen = drawn(&live(30), 60, 24);
        assert!(
            screen.contains("99.9 %") && screen.contains("9.99 ms"),
            "{screen}"
        );
        assert!(screen.contains("12 errors"), "{screen}");
        assert!(!screen.contains("statuses"), "{screen}");
    }

    #[test]
    fn the_smallest_terminal_of_old_shows_errors_by_kind_beside_the_percentiles() {
        let screen = drawn(&live(30), 80, 24);
        for part in ["99.9 %", "9.99 ms", "reset", "5xx", "12 errors"] {
            assert!(screen.contains(part), "{part} in\n{screen}");
        }
    }

    #[test]
    fn the_median_p99_and_the_largest_are_on_a_screen_of_any_size() {
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
    fn each_chart_of_the_smallest_terminal_of_old_has_more_than_two_rows() {
        let screen = drawn(&live(30), 80, 24);
        let lines: Vec<&str> = screen.lines().collect();
        let at = |part: &str| {
            lines
                .iter()
                .position(|line| line.contains(part))
                .expect(part)
        };
        let (rate, times, spread) = (
            at(" answers "),
            at("response times"),
            at("percentiles so far"),
        );
        // Borders, and of the second the axis with its labels.
        assert!(times - rate - 2 > 2, "{screen}");
        assert!(spread - times - 4 > 2, "{screen}");
    }

    #[test]
    fn labels_of_the_axis_are_not_drawn_over_each_other() {
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
    fn any_size_and_any_moment_can_be_drawn() {
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
    fn the_first_reason_stands_beside_the_verdict() {
        let mut live = live(3);
        let reason = Reason {
            state: State::Suspect,
            what: "its busiest thread's CPU".to_owned(),
            measured: "99 %".to_owned(),
            bound: "below 95 %".to_owned(),
            remedy: String::new(),
        };
        for (reasons, expected) in [
            (1, "SUSPECT so far  its busiest thread's CPU: 99 %"),
            (
                3,
                "SUSPECT so far and 2 more  its busiest thread's CPU: 99 %",
            ),
        ] {
            live.verdict = Verdict::from(vec![reason.clone(); reasons]);
            let screen = drawn(&live, 120, 40);
            assert!(screen.contains(expected), "{screen}");
        }
    }

    #[test]
    fn old_seconds_are_forgotten() {
        let mut live = Live::default();
        (0..2 * LIVE_ROWS_MAX).for_each(|_| live.push(SecondRow::default()));
        assert_eq!(live.seconds.len(), LIVE_ROWS_MAX);
    }

    #[test]
    fn progress_is_that_of_the_nearer_end() {
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
}
