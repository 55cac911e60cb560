//! Draws the view in a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table as Grid, TableState};

use crate::history::{History, of_route, of_server};
use crate::keys::HELP;
use crate::moment::{Core, Request, Server, Traffic};
use crate::unit::{amount, share, time};
use crate::view::{Mode, Table, UpdateMode, View};

/// Fewest lines of a table: the header and one row.
const TABLE_MIN: u16 = 2;

/// Terminal width in columns from which the optional columns are drawn.
const WIDE: u16 = 90;

/// Width of a row's sparkline in columns.
const BARS: usize = 20;

/// Draws the view. Everything important fits on 60 columns and 15 lines; a smaller terminal is cropped.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Min(TABLE_MIN),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, view, head);
    match view.table {
        Table::Overview => overview(frame, view, body),
        Table::Routes => routes(frame, view, body),
        Table::Servers => servers(frame, view, body),
        Table::Requests => requests(frame, view, body),
    }
    frame.render_widget(Paragraph::new(footer(view)), foot);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn draw_head(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let moment = &view.snapshot;
    let total = &moment.total;
    let figures = format!(
        "{} req/s  err {}/s  p50 {}  p99 {}  {}B/s  {} in flight  {} conns",
        amount(total.rate),
        amount(total.errors),
        time(total.p50),
        time(total.p99),
        amount(total.bytes),
        amount(moment.in_flight as f64),
        amount(moment.connections as f64),
    );
    let bars = view.history.bars(History::TOTAL, usize::from(area.width));
    let first = match view.overdue {
        None => Line::styled(moment.server.clone(), dim()),
        Some(silence) => {
            let text = format!(
                "no response for {} s: the figures shown are old",
                silence.as_secs()
            );
            Line::styled(text, alarm())
        }
    };
    let lines = vec![
        first,
        Line::styled(figures, bold()),
        Line::styled(bars, Style::new().fg(Color::Cyan)),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Gives each table the lines that its rows need, in order, and keeps [`TABLE_MIN`] lines and a gap for each later
/// table.
fn overview(frame: &mut Frame<'_>, view: &View, area: Rect) {
    type Draw = fn(&mut Frame<'_>, &View, Rect);
    let tables: [(usize, Draw); 4] = [
        (
            view.snapshot.cores.len() + view.snapshot.unresponsive_cores.len(),
            cores,
        ),
        (view.routes().len(), routes),
        (view.servers().len(), servers),
        (view.requests().len(), requests),
    ];
    let mut left = area;
    for (place, (rows, draw)) in tables.iter().enumerate() {
        let later = tables[place + 1..].iter().filter(|(rows, _)| *rows > 0);
        let kept = later.count() as u16 * (TABLE_MIN + 1);
        let wanted = u16::try_from(rows + 2).unwrap_or(u16::MAX);
        let height = wanted.min(left.height.saturating_sub(kept).max(TABLE_MIN));
        if *rows == 0 || left.height < TABLE_MIN {
            continue;
        }
        let [mine, rest] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(left);
        draw(frame, view, mine);
        left = rest;
    }
}

/// Title and width of a column; a width of 0 takes the remaining space.
type Column = (&'static str, u16);

fn grid<'r>(columns: &[Column], rows: Vec<Row<'r>>) -> Grid<'r> {
    let widths = columns.iter().map(|(_, width)| match width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(*width),
    });
    let head = Row::new(columns.iter().map(|(name, width)| match width {
        0 => Line::from(*name),
        _ => Line::from(*name).right_aligned(),
    }));
    Grid::new(rows, widths).header(head.style(dim()))
}

/// Aligns the first cell left and the others right.
fn row<'r>(cells: Vec<String>) -> Row<'r> {
    Row::new(
        cells
            .into_iter()
            .enumerate()
            .map(|(place, cell)| match place {
                0 => Line::from(cell),
                _ => Line::from(cell).right_aligned(),
            }),
    )
}

fn cores(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let columns = [
        ("core", 0),
        ("busy", 6),
        ("waiting", 8),
        ("softirq", 8),
        ("conns", 8),
        ("req/s", 8),
    ];
    let name = |core: &Core| match core.cpu {
        Some(cpu) => format!("{} on CPU {cpu}", core.number),
        None => core.number.to_string(),
    };
    let known = |part: Option<f64>| part.map_or("-".to_owned(), share);
    let mut rows: Vec<Row<'_>> = view
        .snapshot
        .cores
        .iter()
        .map(|core| {
            row(vec![
                name(core),
                share(core.busy),
                known(core.waiting),
                known(core.softirq),
                amount(core.connections as f64),
                amount(core.rate),
            ])
        })
        .collect();
    for core in &view.snapshot.unresponsive_cores {
        rows.push(Row::new([format!("{core} does not respond")]).style(alarm()));
    }
    frame.render_widget(grid(&columns, rows), area);
}

fn alarm() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

/// Cells that routes and servers have in common.
fn figures(traffic: &Traffic) -> Vec<String> {
    vec![
        amount(traffic.rate),
        amount(traffic.errors),
        time(traffic.p50),
        time(traffic.p99),
    ]
}

fn style(traffic: &Traffic) -> Style {
    match traffic.errors > 0.0 {
        true => Style::new().fg(Color::Red),
        false => Style::new(),
    }
}

fn routes(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let mut columns = vec![
        ("route", 0),
        ("req/s", 7),
        ("err/s", 6),
        ("p50", 7),
        ("p99", 7),
    ];
    let is_wide = area.width >= WIDE;
    if is_wide {
        columns.extend([("B/s", 8), ("", BARS as u16)]);
    }
    let rows = view.routes().into_iter().map(|route| {
        let mut cells = vec![route.name.clone()];
        cells.extend(figures(route));
        if is_wide {
            cells.push(amount(route.bytes));
            cells.push(view.history.bars(&of_route(&route.name), BARS));
        }
        row(cells).style(style(route))
    });
    frame.render_widget(grid(&columns, rows.collect()), area);
}

fn servers(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let mut columns = vec![
        ("server", 0),
        ("state", 13),
        ("req/s", 7),
        ("err/s", 6),
        ("p50", 7),
        ("p99", 7),
    ];
    let is_wide = area.width >= WIDE;
    if is_wide {
        columns.extend([("in flight", 10), ("", BARS as u16)]);
    }
    let line = |server: &Server| {
        let mut cells = vec![
            format!("{}/{}", server.group, server.traffic.name),
            server.condition(),
        ];
        cells.extend(figures(&server.traffic));
        if is_wide {
            cells.push(amount(server.in_flight as f64));
            let name = of_server(&server.group, &server.address);
            cells.push(view.history.bars(&name, BARS));
        }
        let is_out = server.condition() != "up";
        let style = if is_out {
            alarm()
        } else {
            style(&server.traffic)
        };
        row(cells).style(style)
    };
    let rows = view.servers().into_iter().map(line).collect();
    let table =
        grid(&columns, rows).row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut chosen = TableState::new().with_selected(view.row);
    frame.render_stateful_widget(table, area, &mut chosen);
}

fn requests(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let columns = [("request", 0), ("age", 8), ("state", 11), ("server", 21)];
    let line = |request: &Request| {
        row(vec![
            request.line.clone(),
            time(Some(request.age)),
            request.state.clone(),
            request.server.clone(),
        ])
    };
    let rows = view.requests().into_iter().map(line).collect();
    frame.render_widget(grid(&columns, rows), area);
}

fn footer(view: &View) -> Line<'static> {
    match &view.mode {
        Mode::Confirming(wish) => Line::styled(
            format!(
                "set {}/{} to {}? (y/n)",
                wish.group, wish.address, wish.state
            ),
            alarm(),
        ),
        Mode::Filtering => Line::from(format!("/{}_  Enter keeps it, Esc clears it", view.filter)),
        Mode::Normal if !view.notice.is_empty() => Line::from(view.notice.clone()),
        Mode::Normal => {
            let mut text = format!("by {}", view.order.name());
            if !view.filter.is_empty() {
                text += &format!(", with {:?}", view.filter);
            }
            if view.pace == UpdateMode::Paused {
                text += ", paused";
            }
            Line::styled(format!("{text}  {HELP}"), dim())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Snapshot;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn screen(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("it draws");
        terminal.backend().to_string()
    }

    fn view() -> View {
        let route = |name: &str, requests: u64| {
            json!({ "name": name, "requests": requests, "responses": { "5xx": 1 }, "bytes_sent": 5000,
                "duration": { "p50": 0.0001, "p99": 0.002 } })
        };
        let mut view = View::default();
        view.push(Snapshot::of(&json!({
            "interval": 1.0,
            "status": { "version": "0.1.0", "process": 7, "phase": "ready", "generation": 1, "driver": "epoll", "uptime": 5,
                "connections": 1200, "in_flight": 3, "cores": [{ "core": 0, "connections": 1200 }] },
            "cores": [{ "core": 0, "cpu": 1, "busy": 0.42, "softirq": 0.07, "requests": 1500 }],
            "listeners": [route("127.0.0.1:80", 1500)],
            "routes": [route("/slow*", 500), route("/fast*", 1000)],
            "groups": [{ "name": "app", "requests": 4, "servers": [
                { "name": "10.0.0.1:80", "address": "10.0.0.1:80", "state": "ejected", "wanted": "up", "responses": {} } ] }],
            "requests": [{ "age": 12.5, "state": "waiting", "method": "GET", "target": "/slow/x", "server": "10.0.0.1:80" }],
            "silent_cores": [3],
        })));
        view
    }

    #[test]
    fn screen_fits_60_columns_and_15_rows() {
        let shown = screen(&view(), 60, 15);
        for words in [
            "1.50 k req/s",
            "0 on CPU 1",
            "42 %",
            "7 %",
            "/fast*",
            "/slow*",
            "app/10.0.0.1:80",
            "ejected",
            "GET /slow/x",
            "12.50 s",
        ] {
            assert!(shown.contains(words), "no {words:?} in\n{shown}");
        }
        let place = |words: &str| shown.find(words).expect("it is there");
        assert!(place("/fast*") < place("/slow*"), "by rate\n{shown}");
    }

    #[test]
    fn wide_and_tiny_terminals_are_supported() {
        let wide = screen(&view(), 120, 40);
        for words in ["B/s", "in flight", "3 does not respond", "5.00 kB/s"] {
            assert!(wide.contains(words), "no {words:?} in\n{wide}");
        }
        for (width, height) in [(1, 1), (20, 3), (60, 5)] {
            let _ = screen(&view(), width, height);
        }
        let mut view = view();
        view.set_overdue(Some(std::time::Duration::from_secs(7)));
        let old = screen(&view, 80, 24);
        assert!(old.contains("no response for 7 s"), "{old}");
        for (table, _) in Table::ALL {
            view.table = table;
            let _ = screen(&view, 80, 24);
        }
    }
}
