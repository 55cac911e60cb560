//! Percentiles of the whole run so far, as lower bounds where requests without a response may change them. Pure.

use onrush_measure::histogram::Histogram;
use onrush_measure::units;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row, Table};

use super::{LiveView, block};
use crate::record::figures::Kind;
use crate::record::incomplete_waits::{Bounds, Censored};

/// The main response times in 36 columns, with `≥` if requests without a response may make them larger.
pub(super) fn summary_line(live: &LiveView) -> Line<'static> {
    let figures = &live.figures;
    let response = figures.times.of(Kind::Response);
    let waits = &figures.unanswered.response;
    if response.count() == 0 && waits.count() == 0 {
        return Line::from(" no responses yet").dark_gray();
    }
    let figure = |percentile: f64| {
        let count = response.count() + waits.count();
        match onrush_measure::percentile::supported(count).any(|of| of == percentile) {
            true => shown(Censored::new(response, waits).at(percentile)),
            false => "-".to_owned(),
        }
    };
    let parts = [
        (" p50 ", figure(50.0), Color::Green),
        ("  p99 ", figure(99.0), Color::Yellow),
        ("  max ", shown(longest(response, waits)), Color::Reset),
    ];
    let spans = parts.into_iter().flat_map(|(name, value, colour)| {
        let value = Span::styled(value, Style::new().fg(colour).bold());
        [Span::raw(name).dark_gray(), value]
    });
    spans.collect()
}

fn longest(times: &Histogram, waits: &Histogram) -> Bounds {
    let max = |times: &Histogram| match times.count() {
        0 => 0.0,
        _ => times.max() as f64,
    };
    let (known, waited) = (max(times), max(waits));
    Bounds {
        low: known.max(waited),
        high: if waited > known { f64::INFINITY } else { known },
    }
}

/// Formats a time, with `≥` if it is a lower bound.
fn shown(bounds: Bounds) -> String {
    let time = units::nanoseconds(bounds.low).replace(' ', "");
    match bounds.is_known() {
        true => time,
        false => format!("≥{time}"),
    }
}

/// Percentiles supported by `count`, as many as there is room for; the least important ones are left out first.
fn shown_percentiles(count: u64, room: usize) -> Vec<f64> {
    let mut shown: Vec<f64> = onrush_measure::percentile::supported(count).collect();
    for least in [75.0, 95.0, 90.0] {
        if shown.len() > room {
            shown.retain(|percentile| *percentile != least);
        }
    }
    shown
}

pub(super) fn draw_percentiles(frame: &mut Frame<'_>, area: Rect, live: &LiveView) {
    let kinds = [Kind::Response, Kind::Service, Kind::SendLag];
    let times = &live.figures.times;
    let unanswered = &live.figures.unanswered;
    let count = times.of(Kind::Response).count() + unanswered.response.count();
    // Rows without borders and header.
    let room = usize::from(area.height.saturating_sub(3));
    let rows: Vec<Row<'_>> = shown_percentiles(count, room)
        .into_iter()
        .map(|percentile| {
            let value = |kind| {
                let none = Histogram::new();
                let waits = unanswered.of(kind).unwrap_or(&none);
                let bounds = Censored::new(times.of(kind), waits).at(percentile);
                let time = units::nanoseconds(bounds.low);
                match bounds.is_known() {
                    true => time,
                    false => format!("≥{}", time.replace(' ', "")),
                }
            };
            let name = format!("{} %", units::percentile(percentile));
            Row::new(std::iter::once(name).chain(kinds.map(value)))
        })
        .collect();
    let head = Row::new(["", "response", "service", "send lag"]).dark_gray();
    let widths = [
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Min(8),
    ];
    let table = Table::new(rows, widths)
        .header(head)
        .block(block(" percentiles so far "));
    frame.render_widget(table, area);
}
