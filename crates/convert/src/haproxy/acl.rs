//! Conditions after `if` and `unless`: named and anonymous ACLs with "and", "or" and "not".

use super::proxy::Proxy;
use super::raw_path::Effect;
use super::sample;
use super::state::State;
use super::userlist::Userlist;
use super::work::Context;
use crate::expression::condition::{Atom, Scheme};
use crate::expression::decide::Formula;
use crate::source::directive::Directive;

/// Assumed result of a test of passwords, because Onrush has no condition for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passwords {
    /// The client has sent no password.
    NotGiven,
    /// The client has sent a valid password.
    Given,
    /// A password counts as sent if an earlier rule has required it.
    IfRequired,
}

/// The message that a rule handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Request,
    /// Samples of fields and the path of the request do not exist here.
    Response,
}

/// Context in which the condition of a line is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'s> {
    pub(super) state: &'s State,
    pub(super) passwords: Passwords,
    pub(super) phase: Phase,
    /// Effect of the rule on the request.
    pub(super) effect: Effect,
}

/// The condition of a line; always true if it has none.
pub(super) fn condition(
    work: &mut Context<'_, '_>,
    proxy: &Proxy<'_>,
    line: &Directive,
    view: View<'_>,
) -> Formula {
    let at = line
        .words
        .iter()
        .position(|word| word == "if" || word == "unless");
    let Some(at) = at else {
        return Formula::always();
    };
    let is_if = line.words[at] == "if";
    let effect = match is_if {
        true => view.effect,
        false => view.effect.opposite(),
    };
    let view = View { effect, ..view };
    let mut reader = Reader {
        work,
        proxy,
        line,
        view,
    };
    let formula = reader.any(&line.words[at + 1..]);
    match is_if {
        true => formula,
        false => Formula::Not(Box::new(formula)),
    }
}

struct Reader<'r, 'f, 'a> {
    work: &'r mut Context<'f, 'a>,
    proxy: &'r Proxy<'r>,
    line: &'r Directive,
    view: View<'r>,
}

impl Reader<'_, '_, '_> {
    /// Reads alternatives between `||`, each of them a conjunction.
    fn any(&mut self, words: &[String]) -> Formula {
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
            let effect = match is_negated {
                true => self.view.effect.opposite(),
                false => self.view.effect,
            };
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
                    self.sample(self.line, &inside, effect)
                }
                name => self.named(name, effect),
            };
            all.push(match is_negated {
                true => Formula::Not(Box::new(formula)),
                false => formula,
            });
            is_negated = false;
        }
        if all.is_empty() {
            let why = "expected the name of an ACL, or an anonymous ACL in braces";
            return Formula::Unknown(why.to_owned());
        }
        any.push(Formula::All(all));
        Formula::Any(any)
    }

    /// The alternatives of all `acl` lines of this name.
    fn named(&mut self, name: &str, effect: Effect) -> Formula {
        let lines: Vec<&Directive> = self.proxy.all(&["acl", name]).collect();
        if lines.is_empty() {
            let unknown = || Formula::Unknown(format!("Onrush has no equivalent for ACL {name:?}"));
            return predefined(name).unwrap_or_else(unknown);
        }
        let mut any = Vec::new();
        for line in lines {
            let formula = self.sample(line, &line.words[2..], effect);
            match &formula {
                Formula::Unknown(why) => self.work.notes.left_out(line, why),
                _ => self.work.notes.carried(line),
            }
            any.push(formula);
        }
        Formula::Any(any)
    }

    fn sample(&mut self, line: &Directive, words: &[String], effect: Effect) -> Formula {
        let name = words.first().map_or("", String::as_str);
        if let Some(list) = Userlist::of(words) {
            return self.password(&list);
        }
        if self.view.phase == Phase::Response && is_of_requests(name) {
            let why = "never true: HAProxy has no samples of the request in rules for responses";
            self.work.notes.without_effect(line, why);
            return Formula::never();
        }
        if refuses(self.line) && sample::is_server_name(words) {
            let why = "a client may send another name in Host than in the TLS handshake (SNI)";
            return Formula::Unknown(why.to_owned());
        }
        match sample::formula(self.work, words, &self.view.state.changed, effect) {
            Ok(formula) => {
                if let Some(how) = sample::difference(words) {
                    self.work.notes.approximated(line, how);
                }
                formula
            }
            Err(why) => Formula::Unknown(why),
        }
    }

    fn password(&self, list: &Userlist) -> Formula {
        let authorized = &self.view.state.authorized;
        match self.view.passwords {
            Passwords::NotGiven => Formula::never(),
            Passwords::Given => Formula::always(),
            Passwords::IfRequired if authorized.as_ref().is_some_and(|one| one.is_within(list)) => {
                Formula::always()
            }
            Passwords::IfRequired => {
                let why = "Onrush has no condition on passwords";
                Formula::Unknown(why.to_owned())
            }
        }
    }
}

/// Whether a rule refuses the requests for which its condition holds.
fn refuses(rule: &Directive) -> bool {
    const REFUSING: [&str; 4] = ["deny", "reject", "tarpit", "silent-drop"];
    rule.words
        .iter()
        .take(3)
        .any(|word| REFUSING.contains(&word.as_str()))
}

/// Whether a sample only exists in rules for requests. (`hdr` and `cook` read the response in rules for responses.)
fn is_of_requests(sample: &str) -> bool {
    let end = sample.find(['(', ',']).unwrap_or(sample.len());
    let name = &sample[..end];
    let begins = ["path", "url", "urlp", "query", "base", "http_auth"];
    let is_part = |rest: &str| rest.is_empty() || rest.starts_with('_');
    name.starts_with("req.")
        || begins
            .iter()
            .any(|begin| name.strip_prefix(begin).is_some_and(is_part))
        || name == "pathq"
}

/// ACLs that HAProxy predefines.
fn predefined(name: &str) -> Option<Formula> {
    let methods = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Some(Formula::Atom(Atom::Method(names)))
    };
    match name {
        "TRUE" | "HTTP" | "REQ_CONTENT" | "WAIT_END" => Some(Formula::always()),
        "FALSE" => Some(Formula::never()),
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

/// The userlists that a condition names, directly or through ACLs.
pub(super) fn userlists(proxy: &Proxy<'_>, line: &Directive) -> Vec<Userlist> {
    let mut lists: Vec<Userlist> = Vec::new();
    for (at, word) in line.words.iter().enumerate() {
        let bare = word.trim_start_matches('!');
        let inside = line.words[at..]
            .iter()
            .map(|word| word.trim_start_matches('!'));
        let inside: Vec<String> = inside
            .take_while(|word| *word != "}")
            .map(str::to_owned)
            .collect();
        let named = ["acl", bare];
        let of_acls = proxy.all(&named);
        let of_acls = of_acls.filter_map(|acl| Userlist::of(&acl.words[2..]));
        let found = Userlist::of(&inside).into_iter().chain(of_acls);
        for list in found {
            if !lists.contains(&list) {
                lists.push(list);
            }
        }
    }
    lists
}
