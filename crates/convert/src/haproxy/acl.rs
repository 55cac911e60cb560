//! Conditions behind `if` and `unless`: named and anonymous ACLs, "and", "or" and "not".

use super::proxy::Proxy;
use super::sample;
use super::work::Work;
use crate::condition::{Atom, Scheme};
use crate::decide::Formula;
use crate::directive::Directive;

/// What is made of a test of passwords, for which Onrush has no condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passwords {
    /// As for a client that has not said any.
    NotGiven,
    /// There is nothing for it.
    Unknown,
}

/// The condition of a line, always where it has none.
///
/// # Errors
/// With a sentence about what Onrush has nothing for.
pub(super) fn condition(
    work: &mut Work<'_, '_>,
    proxy: &Proxy<'_>,
    line: &Directive,
    passwords: Passwords,
) -> Result<Formula, String> {
    let at = line
        .words
        .iter()
        .position(|word| word == "if" || word == "unless");
    let Some(at) = at else {
        return Ok(Formula::always());
    };
    let mut reader = Reader {
        work,
        proxy,
        line,
        passwords,
    };
    let formula = reader.any(&line.words[at + 1..])?;
    Ok(match line.words[at].as_str() {
        "if" => formula,
        _ => Formula::Not(Box::new(formula)),
    })
}

struct Reader<'r, 'f, 'a> {
    work: &'r mut Work<'f, 'a>,
    proxy: &'r Proxy<'r>,
    line: &'r Directive,
    passwords: Passwords,
}

impl Reader<'_, '_, '_> {
    /// Parts between `||`, each of them conditions that all have to hold.
    fn any(&mut self, words: &[String]) -> Result<Formula, String> {
        let mut any = Vec::new();
        let mut all = Vec::new();
        let mut words = words.iter();
        let mut is_negated = false;
        while let Some(word) = words.next() {
            let (bare, negated) = match word.strip_prefix('!') {
                Some(bare) => (bare, true),
                None => (word.as_str(), false),
            };
            is_negated ^= negated;
            let formula = match bare {
                "" => continue,
                "||" | "or" | "OR" => {
                    any.push(Formula::All(std::mem::take(&mut all)));
                    continue;
                }
                "{" => {
                    let inside: Vec<String> = words
                        .by_ref()
                        .take_while(|word| *word != "}")
                        .cloned()
                        .collect();
                    self.sample(self.line, &inside)?
                }
                name => self.named(name)?,
            };
            all.push(match is_negated {
                true => Formula::Not(Box::new(formula)),
                false => formula,
            });
            is_negated = false;
        }
        if all.is_empty() {
            return Err("expected the name of an ACL, or one in braces".to_owned());
        }
        any.push(Formula::All(all));
        Ok(Formula::Any(any))
    }

    /// What all lines of this name say.
    fn named(&mut self, name: &str) -> Result<Formula, String> {
        let lines: Vec<&Directive> = self.proxy.all(&["acl", name]).collect();
        if lines.is_empty() {
            return predefined(name).ok_or_else(|| format!("there is no ACL {name:?}"));
        }
        let mut any = Vec::new();
        for line in lines {
            let formula = self.sample(line, &line.words[2..])?;
            self.work.notes.carried(line);
            any.push(formula);
        }
        Ok(Formula::Any(any))
    }

    fn sample(&mut self, line: &Directive, words: &[String]) -> Result<Formula, String> {
        let name = words.first().map_or("", String::as_str);
        if name.starts_with("http_auth") && self.passwords == Passwords::NotGiven {
            return Ok(Formula::never());
        }
        let formula = sample::formula(self.work, words)?;
        if let Some(how) = sample::difference(words) {
            self.work.notes.approximated(line, how);
        }
        Ok(formula)
    }
}

/// The ACLs that HAProxy knows by itself.
fn predefined(name: &str) -> Option<Formula> {
    let methods = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Some(Formula::Atom(Atom::Method(names)))
    };
    match name {
        "TRUE" | "HTTP" | "HTTP_1.1" | "REQ_CONTENT" | "WAIT_END" => Some(Formula::always()),
        "FALSE" | "HTTP_2.0" => Some(Formula::never()),
        "LOCALHOST" => Some(Formula::Atom(Atom::From(
            ["127.0.0.0/8", "::1"].map(str::to_owned).into(),
        ))),
        "METH_GET" => methods(&["GET", "HEAD"]),
        "METH_CONNECT" => Some(Formula::never()),
        "SSL" | "RDP_COOKIE" => None,
        "HTTPS" => Some(Formula::Atom(Atom::Scheme(Scheme::Https))),
        name => match name.strip_prefix("METH_") {
            Some(method) => methods(&[method]),
            None => None,
        },
    }
}

/// The userlist that a condition asks for, by itself or by the name of an ACL.
pub(super) fn userlist(proxy: &Proxy<'_>, line: &Directive) -> Option<String> {
    let named = |text: &str| {
        let list = text.strip_prefix("http_auth(")?.strip_suffix(')')?;
        Some(list.to_owned())
    };
    line.words.iter().find_map(|word| {
        let bare = word.trim_start_matches('!');
        let of_acl = |acl: &Directive| named(acl.argument(1));
        named(bare).or_else(|| proxy.all(&["acl", bare]).find_map(of_acl))
    })
}
