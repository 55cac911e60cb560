//! A route of the result.

use std::time::Duration;

use crate::document::{Section, Value};
use crate::expression::condition::{Condition, Path, is_token};
use crate::settings::unit::{bounded, written};

/// Edits of the header fields of requests or responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldEdits {
    set: Vec<(String, String)>,
    add: Vec<(String, String)>,
    remove: Vec<String>,
}

/// Fields that Onrush writes itself and that a configuration cannot change.
const OWN_FIELDS: [&str; 8] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a configuration of Onrush may change the field.
pub(crate) fn is_changeable(name: &str) -> bool {
    is_token(name) && !OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name))
}

impl FieldEdits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == FieldEdits::default()
    }

    /// Replaces all values of a field.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.forget(name);
        self.set.push((name.to_owned(), value.into()));
    }

    pub(crate) fn add(&mut self, name: &str, value: impl Into<String>) {
        let is_it = |known: &String| known.eq_ignore_ascii_case(name);
        if self.remove.iter().any(is_it) {
            return self.set(name, value);
        }
        self.add.push((name.to_owned(), value.into()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.forget(name);
        self.remove.push(name.to_owned());
    }

    /// Undoes the removal of a field.
    pub(crate) fn keep(&mut self, name: &str) {
        self.remove
            .retain(|known| !known.eq_ignore_ascii_case(name));
    }

    pub(crate) fn changes(&self, name: &str) -> bool {
        let written = self.set.iter().chain(&self.add).map(|(known, _)| known);
        let mut names = written.chain(&self.remove);
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    pub(crate) fn forget(&mut self, name: &str) {
        let is_other = |known: &str| !known.eq_ignore_ascii_case(name);
        self.set.retain(|(known, _)| is_other(known));
        self.add.retain(|(known, _)| is_other(known));
        self.remove.retain(|known| is_other(known));
    }

    /// These edits followed by others.
    pub(crate) fn and(&self, others: &FieldEdits) -> FieldEdits {
        let mut both = self.clone();
        for (name, value) in &others.set {
            both.set(name, value);
        }
        for (name, value) in &others.add {
            both.add(name, value);
        }
        for name in &others.remove {
            both.remove(name);
        }
        both
    }

    fn written(&self) -> Vec<(String, Value)> {
        let mut entries = Vec::new();
        if !self.set.is_empty() {
            let fields = self.set.iter();
            let fields = fields.map(|(name, value)| (name.clone(), Value::text(value)));
            entries.push(("set".to_owned(), Value::Table(fields.collect())));
        }
        if !self.add.is_empty() {
            entries.push(("add".to_owned(), Value::Table(grouped(&self.add))));
        }
        if !self.remove.is_empty() {
            entries.push(("remove".to_owned(), Value::texts(&self.remove)));
        }
        entries
    }
}

/// Values by field name, several as a list, because a TOML table has each key once.
pub(crate) fn grouped(fields: &[(String, String)]) -> Vec<(String, Value)> {
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in fields {
        let known = entries
            .iter_mut()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        match known {
            Some((_, values)) => values.push(value.clone()),
            None => entries.push((name.clone(), vec![value.clone()])),
        }
    }
    let entries = entries.into_iter();
    entries
        .map(|(name, values)| (name, Value::one_or_list(&values)))
        .collect()
}

/// The responses to which edits apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum EditScope {
    /// Responses of the route's action, including forwarded ones.
    #[default]
    Own,
    /// All responses, also errors that Onrush generates.
    Always,
    /// Responses with these statuses.
    Statuses(Vec<u16>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Respond {
        status: u16,
        body: Option<String>,
        fields: Vec<(String, String)>,
    },
    Redirect {
        to: String,
        status: u16,
    },
    /// Responds with this file.
    File(String),
    /// Serves a directory; with the keys of `files`.
    Files(Vec<(String, Value)>),
    /// Forwards to the group of this name.
    Forward(String),
}

impl Response {
    /// A response with a status and nothing else.
    pub(crate) fn status(status: u16) -> Response {
        Response::Respond {
            status,
            body: None,
            fields: Vec::new(),
        }
    }

    fn write(&self, route: &mut Section) {
        match self {
            Response::Respond {
                status,
                body,
                fields,
            } => {
                let mut entries = vec![("status".to_owned(), Value::Number((*status).into()))];
                let body = body.as_ref().map(Value::text);
                entries.extend(body.map(|body| ("body".to_owned(), body)));
                if !fields.is_empty() {
                    entries.push(("headers".to_owned(), Value::Table(grouped(fields))));
                }
                route.put("respond", Value::Table(entries));
            }
            Response::Redirect { to, status: 302 } => route.put("redirect", Value::text(to)),
            Response::Redirect { to, status } => {
                let status = Value::Number((*status).into());
                let entries = [("to", Value::text(to)), ("status", status)];
                route.put("redirect", Value::table(entries));
            }
            Response::File(file) => {
                let entries = [("status", Value::Number(200)), ("file", Value::text(file))];
                route.put("respond", Value::table(entries));
            }
            Response::Files(keys) => route.put("files", Value::Table(keys.clone())),
            Response::Forward(group) => route.put("forward", Value::text(group)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) comments: Vec<String>,
    pub(crate) when: Condition,
    pub(crate) response: Response,
    pub(crate) request_headers: FieldEdits,
    pub(crate) response_headers: FieldEdits,
    pub(crate) response_on: EditScope,
    /// Timeouts of this route, by key.
    pub(crate) timeouts: Vec<(&'static str, Duration)>,
    pub(crate) keys: Vec<(String, Value)>,
}

impl Route {
    pub(crate) fn new(when: Condition, response: Response) -> Route {
        Route {
            comments: Vec::new(),
            when,
            response,
            request_headers: FieldEdits::default(),
            response_headers: FieldEdits::default(),
            response_on: EditScope::Own,
            timeouts: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Sets a timeout. If it is set several times, the longest one counts.
    pub(crate) fn set_timeout(&mut self, key: &'static str, time: Duration) {
        match self.timeouts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = time.max(*known),
            None => self.timeouts.push((key, time)),
        }
    }

    pub(crate) fn put(&mut self, key: &str, value: Value) {
        self.keys.push((key.to_owned(), value));
    }

    /// Replaces `prefix` of the path by `replacement` in forwarded requests. Fails unless every path of the route is
    /// known to start with `prefix`.
    pub(crate) fn replace_prefix(&mut self, prefix: &str, replacement: &str) -> Result<(), ()> {
        if prefix == replacement {
            return Ok(());
        }
        let is_literal = self.when.path().is_literal();
        let path = match self.when.path() {
            Path::Prefix(path) | Path::Exact(path) if is_literal && path.starts_with(prefix) => {
                path
            }
            _ => return Err(()),
        };
        let stripped = match path == prefix {
            true => Value::Truth(true),
            false => Value::text(prefix),
        };
        self.put("strip_prefix", stripped);
        if replacement != "/" {
            self.put("replace_prefix", Value::text(replacement));
        }
        Ok(())
    }

    /// Rewrites the path to `to` if the expression matches.
    pub(crate) fn rewrite(&mut self, pattern: &str, to: &str) {
        let rule = [("match", Value::text(pattern)), ("to", Value::text(to))];
        self.put("rewrite", Value::table(rule));
    }

    pub(crate) fn written(&self) -> Section {
        let mut route = Section::new("[[route]]");
        route.comments = self.comments.clone();
        self.when.write(&mut route);
        for (key, value) in &self.keys {
            route.put(key, value.clone());
        }
        if !self.timeouts.is_empty() {
            let entries = self.timeouts.iter();
            let entries = entries
                .map(|(key, time)| ((*key).to_owned(), Value::Text(written(bounded(*time)))));
            route.put("timeouts", Value::Table(entries.collect()));
        }
        if let Response::Forward(_) = self.response
            && !self.request_headers.is_empty()
        {
            let edits = self.request_headers.written();
            route.put("request_headers", Value::Table(edits));
        }
        if !self.response_headers.is_empty() {
            let mut edits = self.response_headers.written();
            match &self.response_on {
                EditScope::Own => {}
                EditScope::Always => edits.push(("on".to_owned(), Value::text("always"))),
                EditScope::Statuses(statuses) => {
                    let statuses = statuses
                        .iter()
                        .map(|status| Value::Number((*status).into()));
                    edits.push(("on".to_owned(), Value::List(statuses.collect())));
                }
            }
            route.put("response_headers", Value::Table(edits));
        }
        self.response.write(&mut route);
        route
    }
}

/// Escapes braces, so that a template contains no variables.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// The text of a template; none if it has variables.
pub(crate) fn plain(template: &str) -> Option<String> {
    let text = template.replace("{{", "").replace("}}", "");
    let is_plain = !text.contains(['{', '}']);
    is_plain.then(|| template.replace("{{", "{").replace("}}", "}"))
}
