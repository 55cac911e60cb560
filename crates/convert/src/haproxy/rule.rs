//! Evaluates the rules of a proxy in HAProxy's order and creates the routes.

use super::acl::{Passwords, Phase, View, condition, userlists};
use super::action::{self, RuleResult};
use super::passwords::auth;
use super::path_rewrite::narrowed;
use super::proxy::{Kind, Proxy};
use super::raw_path::Effect;
use super::refusal::{self, Refusal};
use super::state::State;
use super::step::{Step, gather};
use super::work::Context;
use super::{backend, sample, settings, tcp};
use crate::expression::condition::{Atom, Conjunction, Path};
use crate::expression::decide::{
    Flow, Formula, KnownRequests, LimitExceeded, RuleHandler, UnevaluatedRule, walk_rules,
};
use crate::settings::route::Response;
use crate::source::directive::Directive;
use crate::source::guards::Guards;

pub(super) fn serve<'a>(
    work: &mut Context<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
    given: KnownRequests,
) -> Result<(), LimitExceeded> {
    let comments = [proxy.section.origin()];
    run(work, proxies, proxy, given, State::default(), &comments)
}

fn run<'a>(
    work: &mut Context<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
    given: KnownRequests,
    mut state: State,
    comments: &[String],
) -> Result<(), LimitExceeded> {
    settings::read(work, proxy, &mut state);
    let acts = gather(work, proxies, proxy);
    let mut rules = Rules {
        work,
        proxies,
        proxy,
        comments,
        unknown: Vec::new(),
        asked: ConditionState::Known,
    };
    walk_rules(&acts, given, state, &mut rules)
}

struct Rules<'w, 'f, 'a> {
    work: &'w mut Context<'f, 'a>,
    proxies: &'w [Proxy<'a>],
    proxy: &'w Proxy<'a>,
    comments: &'w [String],
    /// Reasons why the condition of the current rule cannot be evaluated.
    unknown: Vec<String>,
    asked: ConditionState,
}

/// Whether the condition of a rule can be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConditionState {
    Known,
    /// The rule may apply or not.
    Unknown,
}

impl<'a> RuleHandler<Step<'a>> for Rules<'_, '_, 'a> {
    type State = State;

    fn when(&mut self, act: &Step<'a>, state: &State) -> Formula {
        let formula = self.formula(act, state);
        let unknown = formula.unknown().into_iter();
        self.unknown = unknown.map(str::to_owned).collect();
        self.unknown.dedup();
        formula
    }

    fn inside(&self, _act: &Step<'a>) -> usize {
        0
    }

    fn apply(
        &mut self,
        act: &Step<'a>,
        state: &mut State,
        given: &KnownRequests,
    ) -> Result<Flow, LimitExceeded> {
        if std::mem::replace(&mut self.asked, ConditionState::Known) == ConditionState::Unknown {
            return self.apply_unknown(act, state, given);
        }
        let line = act.line();
        let response = match act {
            Step::Response(_) => {
                action::response(self.work, line, state);
                return Ok(Flow::Next);
            }
            Step::Tcp(_) => match tcp::request(self.work, line, state) {
                RuleResult::On | RuleResult::Allowed => return Ok(Flow::Next),
                RuleResult::Served(response) => response,
            },
            Step::Monitor(_) => {
                self.work.notes.carried(line);
                let how = "the body is empty; HAProxy sends a page of its own";
                self.work.notes.approximated(line, how);
                Response::status(200)
            }
            Step::Redirect(_) => action::redirect(self.work, line, 1, self.proxy.name(), state),
            Step::Request(_) => match self.request(line, state, given) {
                RuleResult::On => return Ok(Flow::Next),
                RuleResult::Allowed => {
                    state.allowed.push("http-request");
                    return Ok(Flow::Next);
                }
                RuleResult::Served(response) => response,
            },
            Step::Use(_) => {
                self.enter(line, line.argument(0), state.clone(), given)?;
                return Ok(Flow::End);
            }
            Step::Mapped(_, entry) if entry.backend == self.proxy.name() => {
                self.work.notes.carried(line);
                return Ok(Flow::SkipRest);
            }
            Step::Mapped(_, entry) => {
                self.enter(line, &entry.backend, state.clone(), given)?;
                return Ok(Flow::End);
            }
            Step::Unmapped(..) => return Ok(Flow::Next),
        };
        if line.words.iter().any(|word| word == "append-slash") {
            self.push_with_slash(line, response, state, given)?;
        } else {
            self.push(Some(line), response, state, given)?;
        }
        Ok(Flow::End)
    }

    fn end(&mut self, state: State, given: &KnownRequests) -> Result<(), LimitExceeded> {
        if self.proxy.kind == Kind::Backend {
            return self.forward(&state, given);
        }
        match self.proxy.last(&["default_backend"]) {
            Some(line) => self.enter(line, line.argument(0), state, given),
            None => self.forward(&state, given),
        }
    }

    fn inexpressible(&mut self, act: &Step<'a>, _state: &State) -> UnevaluatedRule {
        let line = act.line();
        if self.unknown.is_empty() {
            let why = "Onrush cannot combine this condition with the conditions before it";
            self.unknown.push(why.to_owned());
        }
        for why in std::mem::take(&mut self.unknown) {
            self.work.notes.left_out(line, why);
        }
        self.asked = ConditionState::Unknown;
        UnevaluatedRule::Applies
    }

    fn step(&mut self) -> Result<(), LimitExceeded> {
        self.work.budget.step()
    }
}

impl<'a> Rules<'_, '_, 'a> {
    fn formula(&mut self, act: &Step<'a>, state: &State) -> Formula {
        let line = act.line();
        let (passwords, phase) = match act {
            Step::Request(_) if line.argument(0) == "auth" => (Passwords::NotGiven, Phase::Request),
            Step::Response(_) => (Passwords::IfRequired, Phase::Response),
            _ => (Passwords::IfRequired, Phase::Request),
        };
        let view = View {
            state,
            passwords,
            phase,
            effect: refusal::effect(act, self.proxies),
        };
        match act {
            Step::Request(_) | Step::Response(_) if state.allowed.contains(&line.name()) => {
                Formula::never()
            }
            Step::Request(_) if action::sets_forwarded_field(line) => Formula::always(),
            Step::Tcp(_) if state.allowed.iter().any(|layer| *layer == line.argument(0)) => {
                Formula::never()
            }
            Step::Monitor(line) => {
                let path = Path::Exact(line.argument(0).to_owned());
                Formula::Atom(Atom::Path(path))
            }
            Step::Mapped(_, entry) => {
                let condition = condition(self.work, self.proxy, line, view);
                Formula::All(vec![condition, self.key(line, &entry.key, view)])
            }
            Step::Unmapped(_, why) => {
                let condition = condition(self.work, self.proxy, line, view);
                Formula::All(vec![condition, Formula::Unknown(why.clone())])
            }
            Step::Request(_) => {
                let formula = condition(self.work, self.proxy, line, view);
                narrowed(line, formula, &state.changed)
            }
            Step::Tcp(_) | Step::Response(_) | Step::Redirect(_) | Step::Use(_) => {
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
    fn request(
        &mut self,
        line: &'a Directive,
        state: &mut State,
        given: &KnownRequests,
    ) -> RuleResult {
        if action::sets_forwarded_field(line) {
            self.work.forwards_clients = true;
            action::record_forwarded_field(line, state);
            self.work.notes.carried(line);
            return RuleResult::On;
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
                return RuleResult::On;
            }
        }
        let lists = userlists(self.proxy, line);
        action::request(self.work, line, self.proxy.name(), &lists, state)
    }

    /// Handles a rule with an unknown condition: if the rule refuses requests, it applies.
    fn apply_unknown(
        &mut self,
        act: &Step<'a>,
        state: &mut State,
        given: &KnownRequests,
    ) -> Result<Flow, LimitExceeded> {
        let line = act.line();
        match act {
            Step::Request(_) if matches!(line.argument(0), "allow") => state.is_doubtful = true,
            Step::Request(_) => action::mark_unknown(line, state),
            Step::Tcp(_) | Step::Response(_) | Step::Monitor(_) => {}
            Step::Redirect(_) | Step::Use(_) | Step::Mapped(..) | Step::Unmapped(..) => {}
        }
        if self.work.guards == Guards::Open {
            return Ok(Flow::Next);
        }
        match refusal::of(act, self.proxies) {
            Refusal::No => Ok(Flow::Next),
            Refusal::Password => {
                let lists = userlists(self.proxy, line);
                auth(self.work, line, &lists, state);
                Ok(Flow::Next)
            }
            Refusal::Response(status) => {
                self.work.notes.left_out(line, refusal::CLOSED);
                state.refused_response = Some(status);
                Ok(Flow::Next)
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
        given: &KnownRequests,
    ) -> Result<(), LimitExceeded> {
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
            Conjunction::Is(with) => self.push(Some(line), response, state, &with)?,
            Conjunction::Never => {}
            Conjunction::Inexpressible => {
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
        given: &KnownRequests,
    ) -> Result<(), LimitExceeded> {
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

    fn forward(&mut self, state: &State, given: &KnownRequests) -> Result<(), LimitExceeded> {
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
        given: &KnownRequests,
    ) -> Result<(), LimitExceeded> {
        let mut comments = self.comments.to_vec();
        comments.extend(line.map(Directive::origin));
        comments.dedup();
        let mut route = state.route(given.condition.clone(), response);
        route.comments = comments;
        self.work.push(route)
    }
}
