//! The steps of a proxy, in the order in which HAProxy evaluates them.

use super::fetch::split_outside;
use super::proxy::{Kind, Proxy};
use super::work::Work;
use crate::source::directive::Directive;

#[derive(Clone, Debug)]
pub(super) enum Act<'a> {
    /// `tcp-request`
    Tcp(&'a Directive),
    /// `http-response`, `http-after-response`
    Response(&'a Directive),
    Monitor(&'a Directive),
    /// `http-request`
    Request(&'a Directive),
    Redirect(&'a Directive),
    Use(&'a Directive),
    /// An entry of a map: the words of its condition, and the backend.
    Mapped(&'a Directive, Vec<String>, String),
}

impl<'a> Act<'a> {
    pub(super) fn line(&self) -> &'a Directive {
        match self {
            Act::Tcp(line)
            | Act::Response(line)
            | Act::Monitor(line)
            | Act::Request(line)
            | Act::Redirect(line)
            | Act::Use(line)
            | Act::Mapped(line, _, _) => line,
        }
    }
}

pub(super) fn gather<'a>(work: &mut Work<'_, 'a>, proxy: &Proxy<'a>) -> Vec<Act<'a>> {
    let mut acts = Vec::new();
    for layer in ["connection", "session", "content"] {
        let is_here = layer == "content" || proxy.kind != Kind::Backend;
        let words = ["tcp-request", layer];
        let lines = proxy.all(&words).filter(|_| is_here);
        acts.extend(lines.map(Act::Tcp));
    }
    let of_responses = ["http-response", "http-after-response"];
    let lines = proxy.lines.iter();
    let lines = lines.filter(|line| of_responses.contains(&line.name()));
    acts.extend(lines.map(|line| Act::Response(line)));
    acts.extend(proxy.last(&["monitor-uri"]).map(Act::Monitor));
    acts.extend(proxy.all(&["http-request"]).map(Act::Request));
    acts.extend(proxy.all(&["redirect"]).map(Act::Redirect));
    if proxy.kind == Kind::Backend {
        return acts;
    }
    for line in proxy.all(&["use_backend"]) {
        match line.argument(0).strip_prefix("%[") {
            None => acts.push(Act::Use(line)),
            Some(sample) => match mapped(work, sample.trim_end_matches(']')) {
                Ok(lines) => acts.extend(
                    lines
                        .into_iter()
                        .map(|(words, name)| Act::Mapped(line, words, name)),
                ),
                Err(why) => work.notes.left_out(line, why),
            },
        }
    }
    acts
}

/// The entries of a map as conditions with their values; the default has an empty condition.
fn mapped(work: &Work<'_, '_>, text: &str) -> Result<Vec<(Vec<String>, String)>, String> {
    let dynamic = || "backend names cannot be computed from samples, except with a map".to_owned();
    let parts = split_outside(text, ',');
    let (map, sample) = parts.split_last().ok_or_else(dynamic)?;
    let (kind, arguments) = map.split_once('(').ok_or_else(dynamic)?;
    let arguments = arguments.trim_end_matches(')');
    let (file, default) = match arguments.split_once(',') {
        Some((file, default)) => (file, Some(default)),
        None => (arguments, None),
    };
    let method = match kind {
        "map" | "map_str" => "str",
        "map_beg" => "beg",
        "map_end" => "end",
        "map_sub" => "sub",
        "map_dom" => "dom",
        "map_reg" => "reg",
        "map_dir" => "dir",
        "map_ip" => "ip",
        _ => return Err(dynamic()),
    };
    let mut mapped = Vec::new();
    for line in work.lines_of(file)? {
        let Some((key, value)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let words = [&sample.join(","), "-m", method, key].map(str::to_owned);
        mapped.push((words.into(), value.trim().to_owned()));
    }
    mapped.extend(default.map(|default| (Vec::new(), default.to_owned())));
    Ok(mapped)
}
