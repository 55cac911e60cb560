//! Certificates of a `bind` line: files, directories and `crt-list` files.

use std::path::Path;

use super::clients::CertificateEntry;
use super::work::Context;
use crate::document::Value;
use crate::source::directive::Directive;

/// Certificates of a listener, in order; the first is the default.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    pub(super) pairs: Vec<Value>,
    /// Options about client certificates, one entry per certificate.
    pub(super) shown: Vec<CertificateEntry>,
}

impl Certificates {
    fn push(&mut self, path: &str, shown: CertificateEntry) {
        let pair = Value::table([
            ("certificate", Value::text(path)),
            ("key", Value::text(path)),
        ]);
        // A list may contain a file several times, for different names.
        if !self.pairs.contains(&pair) {
            self.pairs.push(pair);
        }
        self.shown.push(shown);
    }

    /// Adds a file with certificate and key, or all such files of a directory.
    pub(super) fn add<'a>(&mut self, work: &mut Context<'_, 'a>, line: &'a Directive, name: &str) {
        let path = work.path(name, "crt-base");
        let mut inside = work.files.list(Path::new(&path));
        if inside.is_empty() {
            if path.ends_with('/') {
                let why = format!("cannot list the certificates in {path}");
                return work.notes.left_out(line, why);
            }
            return self.push(&path, CertificateEntry::default());
        }
        inside.sort_unstable();
        let is_pair = |name: &&String| {
            let is_part = [".issuer", ".ocsp", ".sctl", ".key"]
                .iter()
                .any(|end| name.ends_with(end));
            !is_part && !name.starts_with('.')
        };
        let path = path.trim_end_matches('/');
        for name in inside.iter().filter(is_pair) {
            self.push(&format!("{path}/{name}"), CertificateEntry::default());
        }
        let how = "certificates that are in the directory now are used; the names in each certificate decide which one a client gets";
        work.notes.approximated(line, how);
    }

    /// Adds the entries of a `crt-list`: a file, options in brackets, and the names that it is for.
    pub(super) fn add_list<'a>(
        &mut self,
        work: &mut Context<'_, 'a>,
        line: &'a Directive,
        name: &str,
    ) {
        let entries = match work.lines_of(name) {
            Ok(entries) => entries,
            Err(why) => return work.notes.left_out(line, why),
        };
        for entry in entries {
            let (file, rest) = entry
                .split_once(|letter: char| letter.is_whitespace() || letter == '[')
                .unwrap_or((&entry, ""));
            // There may be no space before the bracket.
            let rest = entry.strip_prefix(file).unwrap_or(rest);
            let (words, names) = match rest
                .split_once('[')
                .and_then(|(_, rest)| rest.split_once(']'))
            {
                Some((words, names)) => (words, names),
                None => ("", rest),
            };
            let mut shown = CertificateEntry::default();
            let mut words = words.split_whitespace().peekable();
            while let Some(word) = words.next() {
                let value = words.peek().copied().unwrap_or_default();
                if shown.asked.read(work, word, value) {
                    words.next();
                }
            }
            if shown.asked.has_both() {
                work.notes.left_out(line, ONE_FILE);
            }
            let is_host = |name: &&str| onrush_config::value::parse_host(name).is_ok();
            let (others, hosts): (Vec<_>, Vec<_>) = names
                .split_whitespace()
                .partition(|name| name.starts_with('!'));
            let owned = |name: &str| name.to_ascii_lowercase();
            if hosts.iter().all(is_host) {
                shown.hosts = hosts.into_iter().map(owned).collect();
            }
            let others = others.into_iter().map(|name| &name[1..]);
            shown.others = others.filter(is_host).map(owned).collect();
            self.push(&work.path(file, "crt-base"), shown);
        }
        let how = "the names in each certificate decide which one a client gets";
        work.notes.approximated(line, how);
    }
}

/// Note about a line with both `ca-file` and `ca-verify-file`.
pub(super) const ONE_FILE: &str =
    "client certificates are only verified with the authorities in ca-file";
