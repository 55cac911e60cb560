//! The steps of a proxy, in the order in which HAProxy evaluates them.

use std::cmp::Reverse;

use super::fetch::split_outside;
use super::proxy::{Kind, Proxy};
use super::work::Context;
use crate::expression::condition::network;
use crate::source::directive::Directive;

#[derive(Clone, Debug)]
pub(super) enum Step<'a> {
    /// `tcp-request`
    Tcp(&'a Directive),
    /// `http-response`, `http-after-response`
    Response(&'a Directive),
    Monitor(&'a Directive),
    /// `http-request`
    Request(&'a Directive),
    Redirect(&'a Directive),
    Use(&'a Directive),
    /// A backend that a sample names, for one value of the sample.
    Mapped(&'a Directive, Entry),
    /// A backend that a sample names, if Onrush does not have the names: why.
    Unmapped(&'a Directive, String),
}

/// One entry of a map of backends.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The words of a condition on the key; empty for the last entry, which has all other requests.
    pub(super) key: Vec<String>,
    /// Default backend, used if the map has no backend of that name; the proxy itself if it has no default.
    pub(super) backend: String,
}

impl<'a> Step<'a> {
    pub(super) fn line(&self) -> &'a Directive {
        match self {
            Step::Tcp(line)
            | Step::Response(line)
            | Step::Monitor(line)
            | Step::Request(line)
            | Step::Redirect(line)
            | Step::Use(line)
            | Step::Mapped(line, _)
            | Step::Unmapped(line, _) => line,
        }
    }
}

/// All steps of a proxy.
pub(super) fn gather<'a>(
    work: &Context<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
) -> Vec<Step<'a>> {
    let mut acts = Vec::new();
    for layer in ["connection", "session", "content"] {
        let is_here = layer == "content" || proxy.kind != Kind::Backend;
        let words = ["tcp-request", layer];
        let lines = proxy.all(&words).filter(|_| is_here);
        acts.extend(lines.map(Step::Tcp));
    }
    let of_responses = ["http-response", "http-after-response"];
    let lines = proxy.lines.iter();
    let lines = lines.filter(|line| of_responses.contains(&line.name()));
    acts.extend(lines.map(|line| Step::Response(line)));
    acts.extend(proxy.last(&["monitor-uri"]).map(Step::Monitor));
    acts.extend(proxy.all(&["http-request"]).map(Step::Request));
    acts.extend(proxy.all(&["redirect"]).map(Step::Redirect));
    if proxy.kind == Kind::Backend {
        return acts;
    }
    let default = proxy.last(&["default_backend"]);
    let default = default.map_or(proxy.name(), |line| line.argument(0));
    let is_backend = |name: &str| {
        let mut backends = proxies.iter().filter(|proxy| proxy.kind != Kind::Frontend);
        backends.any(|proxy| proxy.name() == name)
    };
    for line in proxy.all(&["use_backend"]) {
        match line.argument(0).strip_prefix("%[") {
            None => acts.push(Step::Use(line)),
            Some(sample) => match mapped(work, sample.trim_end_matches(']')) {
                Ok(entries) => {
                    for mut entry in entries {
                        if !is_backend(&entry.backend) {
                            entry.backend = default.to_owned();
                        }
                        acts.push(Step::Mapped(line, entry));
                    }
                }
                Err(why) => acts.push(Step::Unmapped(line, why)),
            },
        }
    }
    acts
}

/// The entries of a map in the order in which HAProxy searches them. When the condition of a rule holds, HAProxy skips
/// the rules after it, so the last entry has all other requests, without a backend.
fn mapped(work: &Context<'_, '_>, text: &str) -> Result<Vec<Entry>, String> {
    let dynamic = || "backend names cannot be computed from samples, except with a map".to_owned();
    let parts = split_outside(text, ',');
    let (map, sample) = parts.split_last().ok_or_else(dynamic)?;
    let (kind, arguments) = map.split_once('(').ok_or_else(dynamic)?;
    let arguments = arguments.trim_end_matches(')');
    let (file, default) = arguments.split_once(',').unwrap_or((arguments, ""));
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
    let lines = work.lines_of(file)?;
    let lines = lines.iter();
    let lines = lines.map(|line| line.split_once(char::is_whitespace).unwrap_or((line, "")));
    let mut lines: Vec<(&str, &str)> = lines.collect();
    // HAProxy keeps these keys in trees and takes the longest one.
    match method {
        "beg" => lines.sort_by_key(|(key, _)| Reverse(key.len())),
        "ip" => lines.sort_by_key(|(key, _)| Reverse(bits(key))),
        _ => {}
    }
    let sample = sample.join(",");
    let entry = |(key, backend): (&str, &str)| Entry {
        key: [&sample, "-m", method, "--", key].map(str::to_owned).into(),
        backend: backend.trim().to_owned(),
    };
    let mut entries: Vec<Entry> = lines.into_iter().map(entry).collect();
    // The map looks up its default only for requests that have the sample.
    if !default.is_empty() {
        entries.push(Entry {
            key: found(&sample, method),
            backend: default.trim().to_owned(),
        });
    }
    entries.push(Entry {
        key: Vec::new(),
        backend: String::new(),
    });
    Ok(entries)
}

/// The words of a condition that a map can look up the sample.
fn found(sample: &str, method: &str) -> Vec<String> {
    let is_address = method == "ip" || sample.contains("_ip(");
    let words: &[&str] = match is_address && sample != "src" {
        // A field without an address counts as missing.
        true => &["-m", "ip", "--", "0.0.0.0/0", "::/0"],
        false => &["-m", "found"],
    };
    let words = [&[sample], words].concat();
    words.into_iter().map(str::to_owned).collect()
}

/// The length of a network's prefix; an address is longer than all networks.
fn bits(key: &str) -> Option<u8> {
    let network = network(key)?;
    let bits = network.split_once('/').map(|(_, bits)| bits.parse().ok());
    bits.unwrap_or(Some(u8::MAX))
}
