//! Parser of journeys files (TOML; format in `docs/journeys.md`).

mod table;

use std::path::{Path, PathBuf};

use onrush_measure::amount;

use super::extract::{Extraction, Value, ValueUse};
use super::steps::{Connection, ConnectionLifetime, Journey, Journeys, PauseRange, Step};
use crate::limits::{BODY_BYTES_MAX, STEPS_MAX, THINK_MAX};
use crate::pace::target::Target;
use crate::requests::header::check_header;
use crate::requests::template::names;
use crate::requests::{Body, Expect, Request, lines, resolve_url};
use table::{FileTable, StepTable, checked_name, strings};

/// Result of parsing a journeys file.
#[derive(Debug)]
pub struct ParsedJourneys {
    /// The parsed journeys.
    pub journeys: Journeys,
    /// Requests of the steps, in the order of [`Journeys`].
    pub requests: Vec<Request>,
    /// Body files that were read.
    pub files: Vec<PathBuf>,
}

/// Parses `text`, the content of the journeys file at `path`. Paths of body files are relative to its directory. URLs
/// of steps are resolved against `target`.
///
/// # Errors
/// A message with the file, and the line or the step.
pub fn parse(text: &str, path: &Path, target: &Target) -> Result<ParsedJourneys, String> {
    let shown = path.display();
    let file: FileTable = toml::from_str(text).map_err(|error| {
        let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, str::len) + 1;
        format!("{shown}:{line}:{column}: {}", error.message())
    })?;
    let mut reader = Reader {
        path,
        target,
        values: Vec::new(),
        requests: Vec::new(),
        files: Vec::new(),
    };
    let journeys = reader
        .journeys(file)
        .map_err(|why| format!("{shown}: {why}"))?;
    Ok(ParsedJourneys {
        journeys,
        requests: reader.requests,
        files: reader.files,
    })
}

struct Reader<'f> {
    path: &'f Path,
    target: &'f Target,
    values: Vec<Value>,
    requests: Vec<Request>,
    files: Vec<PathBuf>,
}

impl Reader<'_> {
    fn journeys(&mut self, file: FileTable) -> Result<Journeys, String> {
        let lifetime = match file.connection.as_deref() {
            None | Some("kept") => ConnectionLifetime::Kept,
            Some("per journey") => ConnectionLifetime::PerJourney,
            Some(other) => {
                return Err(format!(
                    "connection is {other:?}: expected \"kept\" or \"per journey\""
                ));
            }
        };
        if file.journey.is_empty() {
            return Err(
                "the file has no journeys: expected a table [[journey]] with a name and steps"
                    .to_owned(),
            );
        }
        let setup = self.steps(&[], file.setup, "the setup")?;
        let mut sum = 0;
        let (mut journeys, mut weights) = (Vec::<Journey>::new(), Vec::new());
        for table in file.journey {
            let name = checked_name(table.name, "a journey")?;
            if journeys.iter().any(|journey| journey.name == name) {
                return Err(format!(
                    "two journeys have the name {name:?}: give each its own name"
                ));
            }
            if table.step.is_empty() {
                return Err(format!(
                    "journey {name:?} has no steps: expected tables [[journey.step]] with a name and a url"
                ));
            }
            let steps = self.steps(&setup, table.step, &format!("journey {name:?}"))?;
            sum += table.weight.map_or(1, |weight| u64::from(weight.get()));
            weights.push(sum);
            journeys.push(Journey { name, steps });
        }
        let journeys = Journeys {
            setup,
            journeys: journeys.into(),
            lifetime,
            values: std::mem::take(&mut self.values).into(),
            weights: weights.into(),
        };
        if self.requests.len() > STEPS_MAX {
            return Err(format!(
                "{} steps are too many: expected {STEPS_MAX} at most, including the setup",
                self.requests.len()
            ));
        }
        Ok(journeys)
    }

    /// Parses the steps of one journey, or of the setup. `before` are the steps that each user runs earlier.
    fn steps(
        &mut self,
        before: &[Step],
        tables: Vec<StepTable>,
        whose: &str,
    ) -> Result<Box<[Step]>, String> {
        let mut steps: Vec<Step> = Vec::new();
        for table in tables {
            let name = checked_name(table.name.clone(), &format!("a step of {whose}"))?;
            let is_first = steps.is_empty();
            let taken = before.iter().chain(&steps);
            let taken: Vec<usize> = taken
                .flat_map(|step| step.extractions.iter().map(|take| take.value))
                .collect();
            let step = match steps.iter().any(|step| step.name == name) {
                true => Err("another step has the same name".to_owned()),
                false => self.step(name.clone(), table, &taken),
            };
            let step = step.map_err(|why| format!("{whose}, step {name:?}: {why}"))?;
            if is_first && step.think != PauseRange::default() {
                return Err(format!(
                    "{whose}, step {name:?}: the first step cannot have think, since it starts when its user starts: use think in later steps, and -T for pauses between journeys"
                ));
            }
            steps.push(step);
        }
        Ok(steps.into())
    }

    /// Parses one step. `taken` are the indices of the values extracted by earlier steps.
    fn step(&mut self, name: String, table: StepTable, taken: &[usize]) -> Result<Step, String> {
        let think = table.think.as_deref().map(think).transpose()?;
        let connection = match table.connection.as_deref() {
            None | Some("kept") => Connection::Kept,
            Some("new") => Connection::New,
            Some(other) => {
                return Err(format!(
                    "connection is {other:?}: expected \"new\" or \"kept\""
                ));
            }
        };
        let redirects = table.redirects.unwrap_or(0);
        let checks = table.check.iter().map(table::check);
        let checks = checks.collect::<Result<Box<[_]>, String>>()?;
        let mut takes = Vec::new();
        for (name, take) in &table.take {
            let source = table::source(take).map_err(|why| format!("take.{name}: {why}"))?;
            takes.push(Extraction {
                value: self.value(name)?,
                source,
                default: take.default.clone(),
            });
        }
        let request = self.request(table)?;
        self.record_uses(&request, taken)?;
        self.requests.push(request);
        Ok(Step {
            name,
            request: self.requests.len() - 1,
            think: think.unwrap_or_default(),
            connection,
            redirects,
            extractions: takes.into(),
            checks,
        })
    }

    /// Returns the index of the value called `name`, and adds the value if it is new.
    fn value(&mut self, name: &str) -> Result<usize, String> {
        if name.is_empty() || name == "counter" || name.contains([':', '{', '}']) {
            return Err(format!(
                "take.{name}: not a valid name for a value: expected no colon or braces, and not `counter`"
            ));
        }
        if let Some(number) = self.values.iter().position(|value| value.name == name) {
            return Ok(number);
        }
        self.values.push(Value {
            name: name.to_owned(),
            used: ValueUse::InBody,
        });
        Ok(self.values.len() - 1)
    }

    /// Records whether `request` sends values in its head, which limits them, and refuses values that no earlier step
    /// extracts.
    fn record_uses(&mut self, request: &Request, taken: &[usize]) -> Result<(), String> {
        let fields = request.headers.iter().map(|(_, value)| value.as_str());
        let head = fields.chain([request.path.as_str()]).flat_map(names);
        let body = match &request.body {
            Body::Text(text) => text.as_str(),
            Body::None | Body::Bytes(_) => "",
        };
        let uses = head
            .map(|name| (name, ValueUse::InHead))
            .chain(names(body).map(|name| (name, ValueUse::InBody)));
        for (name, used) in uses {
            let found = self.values.iter().position(|value| value.name == name);
            let is_general = name.is_empty() || name == "counter" || name.contains(':');
            match found {
                Some(number) if taken.contains(&number) => {
                    if used == ValueUse::InHead {
                        self.values[number].used = used;
                    }
                }
                _ if is_general => {}
                _ => {
                    return Err(format!(
                        "it sends {{{{{name}}}}}, which no earlier step takes: write take.{name} in an earlier step"
                    ));
                }
            }
        }
        Ok(())
    }

    fn request(&mut self, table: StepTable) -> Result<Request, String> {
        let (host, path) = resolve_url(self.target, &table.url)?;
        let body = match (table.body, table.body_file) {
            (Some(_), Some(_)) => {
                return Err("body and body_file both give a body: leave one of them out".to_owned());
            }
            (Some(text), None) => Body::Text(text),
            (None, Some(file)) => {
                let file = self.path.with_file_name(file);
                let bytes = onrush_file::read(&file, BODY_BYTES_MAX as u64)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                self.files.push(file);
                Body::Bytes(bytes.into())
            }
            (None, None) => Body::None,
        };
        let mut headers = Vec::new();
        for (name, value) in &table.headers {
            if name.eq_ignore_ascii_case("cookie") {
                return Err(format!(
                    "header {name:?}: users send the cookies that they received: leave it out"
                ));
            }
            for value in strings(value).map_err(|why| format!("header {name:?} {why}"))? {
                check_header(name, &value)?;
                headers.push((name.clone(), value));
            }
        }
        let method = table.method;
        Ok(Request {
            method: method.unwrap_or_else(|| lines::method_for(&body).to_owned()),
            host,
            path,
            headers,
            body,
            expect: Expect::default(),
            ..Request::of(self.target)
        })
    }
}

/// Parses a pause such as `200ms` or `1s-3s`.
fn think(text: &str) -> Result<PauseRange, String> {
    let (shortest, longest) = match text.split_once('-') {
        Some((shortest, longest)) => (amount::duration(shortest), amount::duration(longest)),
        None => (amount::duration(text), amount::duration(text)),
    };
    let think = shortest.ok().zip(longest.ok());
    let think = think.filter(|(shortest, longest)| shortest <= longest && *longest <= THINK_MAX);
    let (shortest, longest) = think.ok_or_else(|| {
        format!(
            "think is {text:?}: expected a pause such as 200ms or 1.5s, or a range such as 1s-3s, of {} minutes at most",
            THINK_MAX.as_secs() / 60
        )
    })?;
    Ok(PauseRange { shortest, longest })
}

#[cfg(test)]
mod tests;
