//! The error log: events of the server itself, on standard error and in the admin interface.
//!
//! ```text
//!   tracing ──> events of the configured level ──> a line ──> a separate thread ──> standard error
//!           ──> events with a name (`event`)   ──> Journal ──> the admin interface
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush_admin::{Event as Happening, Journal};
use onrush_config::plan::{ErrorFormat, ErrorLog as ErrorLogPlan, LogLevel};
use onrush_engine::clock::unix_time;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::NonBlocking;
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{self, Format, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, Layer, Layered, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

/// The subscriber below the layer that writes lines: events are recorded first.
type EventRecorder = Layered<Filtered<Events, LevelFilter, Registry>, Registry>;

/// The error log of this process. Cheap to clone.
#[derive(Clone)]
pub(super) struct ErrorLog {
    level: reload::Handle<LevelFilter, EventRecorder>,
    is_json: Arc<AtomicBool>,
    journal: Journal,
}

impl ErrorLog {
    /// Starts the log; lines go to `out`.
    pub(super) fn start(out: NonBlocking) -> ErrorLog {
        let plan = ErrorLogPlan::default();
        let (level, handle) = reload::Layer::new(filter(plan.level));
        let is_json = Arc::new(AtomicBool::new(false));
        let journal = Journal::default();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(out)
            .with_ansi(std::io::stderr().is_terminal())
            // The message already contains the fields.
            .fmt_fields(format::debug_fn(|writer, field, value| {
                match field.name() {
                    "message" => write!(writer, "{value:?}"),
                    _ => Ok(()),
                }
            }))
            .event_format(Line {
                text: Format::default().with_target(false),
                is_json: Arc::clone(&is_json),
            })
            // Otherwise a failed write to standard error would itself be reported there, which panics.
            .log_internal_errors(false)
            .with_filter(level);
        let events = Events(journal.clone()).with_filter(LevelFilter::INFO);
        // Recorded before it is written: the event is available to anybody who has read the line.
        tracing_subscriber::registry()
            .with(events)
            .with(lines)
            .init();
        ErrorLog {
            level: handle,
            is_json,
            journal,
        }
    }

    /// Applies the settings of a configuration.
    pub(super) fn follow(&self, plan: ErrorLogPlan) {
        let is_json = plan.format == ErrorFormat::Json;
        self.is_json.store(is_json, Ordering::Relaxed);
        self.set_level(plan.level);
    }

    /// Sets the level until the next change or configuration.
    pub(super) fn set_level(&self, level: LogLevel) {
        // The layer exists as long as the process.
        let _ = self.level.reload(filter(level));
    }

    pub(super) fn level(&self) -> LogLevel {
        let current = self.level.clone_current();
        let mut all = LogLevel::ALL.into_iter().map(|(_, level)| level);
        let same = all.find(|&level| Some(filter(level)) == current);
        same.unwrap_or_default()
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

fn name(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => LogLevel::Error.name(),
        Level::WARN => LogLevel::Warn.name(),
        Level::INFO => LogLevel::Info.name(),
        _ => LogLevel::Debug.name(),
    }
}

#[derive(Default)]
struct EventFields {
    message: String,
    /// Name of the event, if any.
    kind: Option<String>,
    fields: BTreeMap<&'static str, Value>,
}

impl EventFields {
    fn of(event: &Event<'_>) -> EventFields {
        let mut said = EventFields::default();
        event.record(&mut said);
        said
    }

    fn put(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name(), value);
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "event" => self.kind = Some(value.to_owned()),
            _ => self.put(field, value.into()),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        self.record_str(field, &text);
    }
}

/// Format of a line.
struct Line {
    text: Format<format::Full>,
    is_json: Arc<AtomicBool>,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if !self.is_json.load(Ordering::Relaxed) {
            return self.text.format_event(context, writer, event);
        }
        let said = EventFields::of(event);
        let mut line = Map::new();
        line.insert("time".into(), now()?.into());
        line.insert("level".into(), name(event.metadata().level()).into());
        if let Some(kind) = said.kind {
            line.insert("event".into(), kind.into());
        }
        line.insert("message".into(), said.message.into());
        let fields = said.fields.into_iter();
        line.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Time as in RFC 3339.
fn now() -> Result<String, fmt::Error> {
    let mut text = String::new();
    SystemTime.format_time(&mut Writer::new(&mut text))?;
    Ok(text)
}

/// Records events that have a name.
struct Events(Journal);

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let is_named = event.fields().any(|field| field.name() == "event");
        if !is_named {
            return;
        }
        let said = EventFields::of(event);
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let fields = said.fields.into_iter();
        self.0.add(Happening {
            number: 0,
            time: unix_time(),
            level: name(event.metadata().level()),
            kind: said.kind.unwrap_or_default().into(),
            message: said.message.into(),
            fields: fields
                .map(|(name, value)| (name, text(value).into()))
                .collect(),
        });
    }
}
