//! Evaluates the rules of a proxy in HAProxy's order and creates the routes.

use super::acl::{Passwords, Phase, View, condition, userlists};
use super::act::{Act, gather};
use super::action::{self, Done};
use super::backend;
use super::moved::narrowed;
use super::passwords::auth;
use super::proxy::{Kind, Proxy};
use super::raw::Effect;
use super::refusal::{self, Refusal};
use super::sample;
use super::settings;
use super::state::State;
use super::tcp;
use super::work::Work;
use crate::expression::condition::{Atom, Both, Path};
use crate::expression::decide::{Flow, Formula, Given, TooMany, Unasked, Walk, walk};
use crate::settings::route::Response;
use crate::source::directive::Directive;
use crate::source::guards::Guards;

pub(super) fn serve<'a>(
    work: &mut Work<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
    given: Given,
) -> Result<(), TooMany> {
    let comments = [proxy.section.origin()];
    run(work, proxies, proxy, given, State::default(), &comments)
}

fn run<'a>(
    work: &mut Work<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
    given: Given,
    mut state: State,
    comments: &[String],
) -> Result<(), TooMany> {
    settings::read(work, proxy, &mut state);
    let acts = gather(work, proxies, proxy);
    let mut rules = Rules {
        work,
        proxies,
        proxy,
        comments,
        unknown: Vec::new(),
        asked: Asked::Known,
    };
    walk(&acts, given, state, &mut rules)
}

struct Rules<'w, 'f, 'a> {
    work: &'w mut Work<'f, 'a>,
    proxies: &'w [Proxy<'a>],
    proxy: &'w Proxy<'a>,
    comments: &'w [String],
    /// Reasons why the condition of the current rule cannot be evaluated.
    unknown: Vec<String>,
    asked: Asked,
}

/// Whether the condition of a rule can be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Known,
    /// The rule may apply or not.
    Unknown,
}

impl<'a> Walk<Act<'a>> for Rules<'_, '_, 'a> {
    type State = State;

    fn when(&mut self, act: &Act<'a>, state: &State) -> Formula {
        let formula = self.formula(act, state);
        let unknown = formula.unknown().into_iter();
        self.unknown = unknown.map(str::to_owned).collect();
        self.unknown.dedup();
        formula
    }

    fn inside(&self, _act: &Act<'a>) -> usize {
        0
    }

    fn apply(&mut self, act: &Act<'a>, state: &mut State, given: &Given) -> Result<Flow, TooMany> {
        if std::mem::replace(&mut self.asked, Asked::Known) == Asked::Unknown {
            return self.apply_unknown(act, state, given);
        }
        let line = act.line();
        let response = match act {
            Act::Response(_) => {
                action::response(self.work, line, state);
                return Ok(Flow::On);
            }
            Act::Tcp(_) => match tcp::request(self.work, line, state) {
                Done::On | Done::Allowed => return Ok(Flow::On),
                Done::Served(response) => response,
            },
            Act::Monitor(_) => {
                self.work.notes.carried(line);
                let how = "the body is empty; HAProxy sends a page of its own";
                self.work.notes.approximated(line, how);
                Response::status(200)
            }
            Act::Redirect(_) => action::redirect(self.work, line, 1, self.proxy.name(), state),
            Act::Request(_) => match self.request(line, state, given) {
                Done::On => return Ok(Flow::On),
                Done::Allowed => {
                    state.allowed.push("http-request");
                    return Ok(Flow::On);
                }
                Done::Served(response) => response,
            },
            Act::Use(_) => {
                self.enter(line, line.argument(0), state.clone(), given)?;
                return Ok(Flow::End);
            }
            Act::Mapped(_, entry) if entry.backend == self.proxy.name() => {
                self.work.notes.carried(line);
                return Ok(Flow::Behind);
            }
            Act::Mapped(_, entry) => {
                self.enter(line, &entry.backend, state.clone(), given)?;
                return Ok(Flow::End);
            }
            Act::Unmapped(..) => return Ok(Flow::On),
        };
        if line.words.iter().any(|word| word == "append-slash") {
            self.push_with_slash(line, response, state, given)?;
        } else {
            self.push(Some(line), response, state, given)?;
        }
        Ok(Flow::End)
    }

    fn end(&mut self, state: State, given: &Given) -> Result<(), TooMany> {
        if self.proxy.kind == Kind::Backend {
            return self.forward(&state, given);
        }
        match self.proxy.last(&["default_backend"]) {
            Some(line) => self.enter(line, line.argument(0), state, given),
            None => self.forward(&state, given),
        }
    }

    fn inexpressible(&mut self, act: &Act<'a>, _state: &State) -> Unasked {
        let line = act.line();
        if self.unknown.is_empty() {
            let why = "Onrush cannot combine this condition with the conditions before it";
            self.unknown.push(why.to_owned());
        }
        for why in std::mem::take(&mut self.unknown) {
            self.work.notes.left_out(line, why);
        }
        self.asked = Asked::Unknown;
        Unasked::Applies
    }

    fn step(&mut self) -> Result<(), TooMany> {
        self.work.budget.step()
    }
}

impl<'a> Rules<'_, '_, 'a> {
    fn formula(&mut self, act: &Act<'a>, state: &State) -> Formula {
        let line = act.line();
        let (passwords, phase) = match act {
            Act::Request(_) if line.argument(0) == "auth" => (Passwords::NotGiven, Phase::Request),
            Act::Response(_) => (Passwords::AsAsked, Phase::Response),
            _ => (Passwords::AsAsked, Phase::Request),
        };
        let view = View {
            state,
            passwords,
            phase,
            effect: refusal::effect(act, self.proxies),
        };
        match act {
            Act::Request(_) | Act::Response(_) if state.allowed.contains(&line.name()) => {
                Formula::never()
            }
            Act::Request(_) if action::says_client(line) => Formula::always(),
            Act::Tcp(_) if state.allowed.iter().any(|layer| *layer == line.argument(0)) => {
                Formula::never()
            }
            Act::Monitor(line) => {
                let path = Path::Exact(line.argument(0).to_owned());
                Formula::Atom(Atom::Path(path))
            }
            Act::Mapped(_, entry) => {
                let condition = condition(self.work, self.proxy, line, view);
                Formula::All(vec![condition, self.key(line, &entry.key, view)])
            }
            Act::Unmapped(_, why) => {
                let condition = condition(self.work, self.proxy, line, view);
                Formula::All(vec![condition, Formula::Unknown(why.clone())])
            }
            Act::Request(_) => {
                let formula = condition(self.work, self.proxy, line, view);
                narrowed(line, formula, &state.changed)
            }
            Act::Tcp(_) | Act::Response(_) | Act::Redirect(_) | Act::Use(_) => {
                condition(self.work, self.proxy, line, view)
            }
        }
    }

    /// The condition of an entry of a map.
    fn key(&mut self, line: &Directive, words: &[String], view: View<'_>) -> Formula {
        if words.is_empty() {
            return Formula::always();
        }
        if let Some(how) = sample::difference(words) {
            self.work.notes.approximated(line, how);
        }
        sample::formula(self.work, words, &view.state.changed, view.effect)
            .unwrap_or_else(Formula::Unknown)
    }

    /// Applies an `http-request` rule.
    fn request(&mut self, line: &'a Directive, state: &mut State, given: &Given) -> Done {
        if action::says_client(line) {
            self.work.forwards_clients = true;
            action::say_client(line, state);
            self.work.notes.carried(line);
            return Done::On;
        }
        if line.argument(0) == "auth" && state.authorized.is_none() {
            let view = View {
                state,
                passwords: Passwords::Given,
                phase: Phase::Request,
                effect: Effect::Refused,
            };
            let formula = condition(self.work, self.proxy, line, view);
            if !given.excludes(&formula) {
                // The rule also refuses clients with a valid password.
                let why = "the rule also refuses requests with a valid password; the route refuses every request";
                self.work.notes.left_out(line, why);
                auth(self.work, line, &[], state);
                return Done::On;
            }
        }
        let lists = userlists(self.proxy, line);
        action::request(self.work, line, self.proxy.name(), &lists, state)
    }

    /// Handles a rule with an unknown condition: if the rule refuses requests, it applies.
    fn apply_unknown(
        &mut self,
        act: &Act<'a>,
        state: &mut State,
        given: &Given,
    ) -> Result<Flow, TooMany> {
        let line = act.line();
        match act {
            Act::Request(_) if matches!(line.argument(0), "allow") => state.is_doubtful = true,
            Act::Request(_) => action::blur(line, state),
            Act::Tcp(_) | Act::Response(_) | Act::Monitor(_) | Act::Redirect(_) | Act::Use(_) => {}
            Act::Mapped(..) | Act::Unmapped(..) => {}
        }
        if self.work.guards == Guards::Open {
            return Ok(Flow::On);
        }
        match refusal::of(act, self.proxies) {
            Refusal::No => Ok(Flow::On),
            Refusal::Password => {
                let lists = userlists(self.proxy, line);
                auth(self.work, line, &lists, state);
                Ok(Flow::On)
            }
            Refusal::Response(status) => {
                self.work.notes.left_out(line, refusal::CLOSED);
                state.refused_response = Some(status);
                Ok(Flow::On)
            }
            Refusal::Request(status) => {
                self.work.notes.left_out(line, refusal::CLOSED);
                self.push(Some(line), Response::status(status), state, given)?;
                Ok(Flow::End)
            }
        }
    }

    /// Adds redirects that append a slash if the location does not end with one.
    fn push_with_slash(
        &mut self,
        line: &'a Directive,
        response: Response,
        state: &State,
        given: &Given,
    ) -> Result<(), TooMany> {
        let Response::Redirect { to, status } = &response else {
            return self.push(Some(line), response, state, given);
        };
        let slashed = Response::Redirect {
            to: format!("{to}/"),
            status: *status,
        };
        let has_path = |word: &String| matches!(word.as_str(), "prefix" | "scheme");
        if to.ends_with('/') || !line.words.iter().any(has_path) {
            return self.push(Some(line), response, state, given);
        }
        if !to.ends_with("{path}") {
            let how = "no slash is added after a query if the path ends with one";
            self.work.notes.approximated(line, how);
        }
        match given.and(&Atom::Path(Path::Suffix("/".to_owned()))) {
            Both::Is(with) => self.push(Some(line), response, state, &with)?,
            Both::Never => {}
            Both::Inexpressible => {
                let how = "a path that ends with a slash gets a second one";
                self.work.notes.approximated(line, how);
            }
        }
        self.push(Some(line), slashed, state, given)
    }

    /// Continues with the rules of a backend.
    fn enter(
        &mut self,
        line: &'a Directive,
        name: &str,
        mut state: State,
        given: &Given,
    ) -> Result<(), TooMany> {
        let is_backend = |proxy: &&Proxy<'a>| proxy.name() == name && proxy.kind != Kind::Frontend;
        let Some(backend) = self.proxies.iter().find(is_backend) else {
            let why = format!("backend {name:?} does not exist; the response is 503");
            self.work.notes.left_out(line, why);
            return self.push(Some(line), Response::status(503), &state, given);
        };
        if !backend.is_http() {
            let why = format!("backend {name:?} does not have mode http; the response is 503");
            self.work.notes.left_out(line, why);
            return self.push(Some(line), Response::status(503), &state, given);
        }
        self.work.notes.carried(line);
        self.work.notes.carried(backend.section);
        state.allowed.clear();
        state.is_doubtful = false;
        let comments = [self.comments, &[line.origin()]].concat();
        // A `listen` section used as a backend does not evaluate its `use_backend` rules.
        let backend = Proxy {
            kind: Kind::Backend,
            ..backend.clone()
        };
        run(
            self.work,
            self.proxies,
            &backend,
            given.clone(),
            state,
            &comments,
        )
    }

    fn forward(&mut self, state: &State, given: &Given) -> Result<(), TooMany> {
        if let Some(status) = state.refused_response {
            return self.push(None, Response::status(status), state, given);
        }
        match backend::group(self.work, self.proxy) {
            Some(group) => {
                let mut state = state.clone();
                backend::name_server(self.work, self.proxy, &mut state.last);
                self.push(None, Response::Forward(group), &state, given)
            }
            None => {
                // HAProxy responds with 503, too.
                self.push(None, Response::status(503), state, given)
            }
        }
    }

    fn push(
        &mut self,
        line: Option<&Directive>,
        response: Response,
        state: &State,
        given: &Given,
    ) -> Result<(), TooMany> {
        let mut comments = self.comments.to_vec();
        comments.extend(line.map(Directive::origin));
        comments.dedup();
        let mut route = state.route(given.condition.clone(), response);
        route.comments = comments;
        self.work.push(route)
    }
}
