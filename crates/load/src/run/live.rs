//! Full-screen view of a run in progress. Pure: it draws into a frame, which the owner of the terminal displays.
//!
//! ```text
//!  title, main response times, current verdict, progress
//!  responses per second      │ counts
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

use crate::limits::LIVE_ROWS_MAX;
use crate::record::figures::{Figures, Kind};
use crate::report::rows::SecondRow;
use crate::verdict::Verdict;
use crate::verdict::reason::State;
use percentiles::{draw_percentiles, summary_line};

/// Contents of the view.
#[derive(Clone, Debug, Default)]
pub struct LiveView {
    /// Target, threads and connections in one line.
    pub headline: String,
    /// Duration of the run, if limited.
    pub total_s: Option<f64>,
    /// Number of requests of the run, if limited.
    pub total_requests: Option<u64>,
    /// The last seconds.
    pub seconds: VecDeque<SecondRow>,
    /// Figures of the whole run so far.
    pub figures: Figures,
    /// Errors by kind, without zeros.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Requests due and not yet sent.
    pub waiting: u64,
    /// Verdict so far.
    pub verdict: Verdict,
}

impl LiveView {
    /// Adds a second.
    pub fn push(&mut self, row: SecondRow) {
        if self.seconds.len() == LIVE_ROWS_MAX {
            self.seconds.pop_front();
        }
        self.seconds.push_back(row);
    }

    fn elapsed_s(&self) -> f64 {
        self.seconds.back().map_or(0.0, |row| row.t)
    }

    /// Progress of the run: the larger of progress by time and by count.
    fn progress(&self) -> Option<f64> {
        let by_time = self.total_s.map(|total| self.elapsed_s() / total);
        let figures = &self.figures;
        let finished = (figures.responses + figures.errors - figures.unexpected) as f64;
        let by_count = self.total_requests.map(|total| finished / total as f64);
        by_time
            .into_iter()
            .chain(by_count)
            .reduce(f64::max)
            .map(|share| share.clamp(0.0, 1.0))
    }

    /// The last `count` seconds, oldest first.
    fn last(&self, count: usize) -> impl Iterator<Item = &SecondRow> {
        self.seconds
            .iter()
            .skip(self.seconds.len().saturating_sub(count))
    }
}

/// Lines above the charts.
const HEAD: u16 = 4;
/// Width of the right column.
const RIGHT: u16 = 42;
/// Width of the percentiles in a narrow view, and the minimum width for the statuses next to them.
const PERCENTILES: u16 = 40;
const BESIDE_MIN: u16 = 30;

/// Draws the view into `frame`.
pub fn draw(frame: &mut Frame<'_>, live: &LiveView) {
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
        // With 19 rows each chart has three rows to draw in, and the percentiles have four lines.
        true => [5, 7, 7],
        false => [5, 7, 7].map(|part| part + 1),
    };
    let whole = thirds.iter().sum();
    let thirds = thirds.map(|part| Constraint::Ratio(part, whole));
    let [rate, times, spread] = Layout::vertical(thirds).areas(left);
    draw_rate(frame, rate, live);
    draw_times(frame, times, live);
    if is_narrow {
        // In a narrow view only the percentiles and the errors are shown, because they matter most.
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

fn draw_head(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
    // The response times are shown first if there are few lines.
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
    frame.render_widget(summary_line(live), times);
    frame.render_widget(Line::from(format!(" {}", live.headline)).bold(), title);
    let state = live.verdict.state;
    let mut words = vec![Span::styled(
        format!(" {state} so far"),
        Style::new().fg(colour(state)).bold(),
    )];
    if let [first, others @ ..] = &live.verdict.reasons[..] {
        // Before the reason, so that a narrow view does not cut it off.
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
        (None, Some(total)) => {
            let requests = units::plural(total, "request");
            format!(" {elapsed:.0} s, {requests} in all")
        }
        (None, None) => format!(" {elapsed:.0} s, until stopped"),
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

fn draw_rate(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
    let now = live.seconds.back().map_or(0.0, |row| row.rps);
    let mut title = vec![Span::raw(format!(" {} responses ", units::rate(now)))];
    if live.figures.errors > 0 {
        let errors = format!(" {} ", units::plural(live.figures.errors, "error"));
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

/// Percentiles on a logarithmic axis, so that a stall of a second and a median of 50 us are both visible.
fn draw_times(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
    type Pick = fn(&SecondRow) -> Option<f64>;
    let picks: [(&str, Color, Pick); 4] = [
        ("max", Color::DarkGray, |row| row.max_us),
        ("p99.9", Color::Red, |row| row.p99_9_us),
        ("p99", Color::Yellow, |row| row.p99_us),
        ("p50", Color::Green, |row| row.p50_us),
    ];
    // A braille cell is two dots wide.
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
        return frame.render_widget(Paragraph::new("no responses yet").block(titled), area);
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
    // Rows without borders, axis and labels; several labels in one row would overlap.
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

fn draw_distribution(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
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
                // In thousandths of a per cent, so that 0.1 % is higher than nothing.
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

fn draw_counts(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
    let last = live.seconds.back().copied().unwrap_or_default();
    let figures = &live.figures;
    let errors = Style::new().fg(if figures.errors > 0 {
        Color::Red
    } else {
        Color::Reset
    });
    let rows = [
        Row::new(["responses".to_owned(), units::count(figures.responses)]),
        Row::new(["errors".to_owned(), units::count(figures.errors)]).style(errors),
        Row::new(["waiting".to_owned(), units::count(live.waiting)]),
        Row::new(["never sent".to_owned(), units::count(figures.missed)]),
        Row::new(["connections".to_owned(), units::count(last.connections)]),
        Row::new(["received".to_owned(), units::bytes(last.bytes_per_s) + "/s"]),
    ];
    let widths = [Constraint::Length(14), Constraint::Min(0)];
    frame.render_widget(Table::new(rows, widths).block(block(" counts ")), area);
}

fn draw_statuses(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
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
mod tests;
