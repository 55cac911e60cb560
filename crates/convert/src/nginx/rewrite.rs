//! Directives that nginx evaluates before the content: `set`, `if`, `return`, `rewrite`, `break`.

use super::chain::{guards_by_break, is_refused_later};
use super::compare::{condition, key};
use super::content;
use super::destination::{is_internal, refused, rewritten, rewritten_or_more};
use super::errors;
use super::field::difference;
use super::fields;
use super::log;
use super::map::source_maps;
use super::new_path::moved;
use super::redirect::{redirected, returned};
use super::step::{Step, gather};
use super::undecided::{self, CLOSED, UnknownIf, sets};
use super::variable::{canonical, expanded, value_of};
use super::work::{Context, RouteContext, State};
use crate::expression::decide::{
    Flow, Formula, KnownRequests, LimitExceeded, RuleHandler, UnevaluatedRule, walk_rules,
};
use crate::settings::route::{Response, Route};
use crate::source::directive::Directive;
use crate::source::guards::Guards;

/// Handles requests that have passed the last step.
pub(super) type End<'e, 'a> =
    dyn FnMut(&mut Context<'a>, State<'a>, &KnownRequests) -> Result<(), LimitExceeded> + 'e;

/// Leads requests through the steps of one level, and the remaining ones to `end`.
pub(super) fn run<'a>(
    work: &mut Context<'a>,
    level: &'a [Directive],
    given: KnownRequests,
    state: State<'a>,
    comments: &[String],
    end: &mut End<'_, 'a>,
) -> Result<(), LimitExceeded> {
    let mut acts = Vec::new();
    gather(level, work, &mut acts);
    let mut rewriting = Rewriting {
        work,
        comments,
        end,
        acts: &acts,
        is_undecided: false,
        unknown: None,
    };
    walk_rules(&acts, given, state, &mut rewriting)
}

struct Rewriting<'w, 'e, 'a> {
    work: &'w mut Context<'a>,
    comments: &'w [String],
    end: &'w mut End<'e, 'a>,
    /// All steps of the level.
    acts: &'w [Step<'a>],
    /// Whether the condition of the current act (an `if`, or a `rewrite` that stops the steps) cannot be evaluated.
    is_undecided: bool,
    /// Why a part of the current condition cannot be evaluated.
    unknown: Option<String>,
}

impl<'a> RuleHandler<Step<'a>> for Rewriting<'_, '_, 'a> {
    type State = State<'a>;

    fn when(&mut self, act: &Step<'a>, state: &State<'a>) -> Formula {
        self.is_undecided = false;
        self.unknown = None;
        let (directive, formula) = match act {
            Step::EndIf => return Formula::always(),
            Step::Do(_) | Step::Lead(_) if state.undecided.is_some() => return Formula::always(),
            Step::Lead(directive) => return self.leads(directive, state),
            Step::Do(directive) if directive.name() == "rewrite" => {
                if is_internal(directive) {
                    // It has no effect in the result, so it needs no condition.
                    let why =
                        "Onrush selects a route once: a rewritten path does not select another one";
                    self.work.notes.left_out(directive, why);
                    return Formula::never();
                }
                (*directive, rewritten(directive).map(Formula::of_path))
            }
            Step::Do(_) => return Formula::always(),
            Step::If(directive, _) => {
                let words = directive.arguments();
                let formula = condition(words, &state.constants, &self.work.maps);
                (
                    *directive,
                    formula.map(|formula| self.known(directive, formula, state)),
                )
            }
            Step::Bind(map, entry) => {
                let map = &self.work.maps[*map];
                if value_of(map.target(), &state.constants).is_some() {
                    return Formula::never();
                }
                let formula = key(map, *entry, &state.constants, &self.work.maps);
                let target = map.target().to_owned();
                let directive = map.directive;
                if formula
                    .as_ref()
                    .is_ok_and(|formula| !formula.unknown().is_empty())
                {
                    self.work.uncertain.push(target);
                }
                (directive, formula.map(Formula::nearest))
            }
        };
        match formula {
            Ok(formula) => {
                if matches!(act, Step::If(..)) {
                    let words = directive.arguments().join(" ");
                    for maker in source_maps(&words, &self.work.maps) {
                        self.work.notes.carried(maker);
                    }
                }
                let target = match act {
                    Step::Bind(map, _) => format!("${}", self.work.maps[*map].target()),
                    Step::Do(_) | Step::Lead(_) | Step::EndIf => String::new(),
                    Step::If(..) => directive.arguments().join(" "),
                };
                let how = difference(&formula, &target, &self.work.maps).map(str::to_owned);
                let unknown = self.unknown.clone();
                let left_out = unknown.filter(|_| formula.unknown().is_empty());
                if let Some(how) = how.or(left_out) {
                    self.work.notes.approximated(directive, how);
                }
                formula
            }
            Err(why) => match self.undecided(act, state, &why) {
                UnevaluatedRule::Applies => Formula::always(),
                UnevaluatedRule::Skipped => Formula::never(),
            },
        }
    }

    fn inside(&self, act: &Step<'a>) -> usize {
        match act {
            Step::If(_, inside) => *inside,
            Step::Do(_) | Step::Lead(_) | Step::Bind(..) | Step::EndIf => 0,
        }
    }

    fn apply(
        &mut self,
        act: &Step<'a>,
        state: &mut State<'a>,
        given: &KnownRequests,
    ) -> Result<Flow, LimitExceeded> {
        let directive = match act {
            Step::If(directive, _) if self.is_undecided || state.undecided.is_some() => {
                let around = state.undecided.map(UnknownIf::inner);
                let own = self.own(directive, state);
                state.undecided = Some(around.unwrap_or(own));
                return Ok(Flow::Next);
            }
            Step::EndIf => {
                state.undecided = state.undecided.and_then(UnknownIf::outer);
                return Ok(Flow::Next);
            }
            Step::If(directive, _) => {
                state.scope = state.scope.with(directive.inside());
                self.work.notes.carried(directive);
                return Ok(Flow::Next);
            }
            Step::Bind(map, entry) => {
                let map = &self.work.maps[*map];
                let value = expanded(map.value(*entry), &state.constants);
                state.constants.push((map.target().to_owned(), value));
                self.work.notes.carried(map.directive);
                return Ok(Flow::Next);
            }
            Step::Do(directive) if self.is_undecided => {
                return self.serve(directive, Response::status(403), state, given);
            }
            Step::Do(directive) | Step::Lead(directive) => *directive,
        };
        if let Some(undecided) = state.undecided {
            return self.apply_unknown(directive, undecided, state, given);
        }
        if let Step::Lead(directive) = act {
            return self.serve(directive, Response::status(403), state, given);
        }
        let response = match directive.name() {
            "set" => {
                self.set(directive, state);
                return Ok(Flow::Next);
            }
            "break" => {
                self.work.notes.carried(directive);
                return Ok(Flow::SkipRest);
            }
            "return" => Some(returned(self.work, directive, state, given)),
            _ => match redirected(self.work, directive, state, given) {
                Some(response) => Some(response),
                None => return Ok(moved(self.work, directive, state)),
            },
        };
        let Some(response) = response else {
            return Ok(Flow::Next);
        };
        self.serve(directive, response, state, given)
    }

    fn end(&mut self, state: State<'a>, given: &KnownRequests) -> Result<(), LimitExceeded> {
        (self.end)(self.work, state, given)
    }

    fn inexpressible(&mut self, act: &Step<'a>, state: &State<'a>) -> UnevaluatedRule {
        let why = "Onrush cannot combine this condition with the conditions around it";
        let unknown = self.unknown.take();
        self.undecided(act, state, unknown.as_deref().unwrap_or(why))
    }

    fn step(&mut self) -> Result<(), LimitExceeded> {
        self.work.budget.step()
    }
}

impl<'a> Rewriting<'_, '_, 'a> {
    fn set(&mut self, directive: &'a Directive, state: &mut State<'a>) {
        let name = canonical(directive.argument(0));
        undecided::set(&name, directive.argument(1), &mut state.constants);
        let notes = &mut self.work.notes;
        match &*name {
            "args" => notes.left_out(
                directive,
                "requests and redirects keep the query of the client",
            ),
            "limit_rate" => {
                notes.left_out(directive, "Onrush does not limit the rate of a response")
            }
            _ => notes.carried(directive),
        }
    }

    /// Effect of an `if` whose condition cannot be evaluated.
    fn own(&self, directive: &Directive, state: &State<'a>) -> UnknownIf {
        let leads = |rule: &Directive| {
            let may_lead = || {
                refused(state, rule).is_some()
                    || is_refused_later(state, &self.work.maps, self.acts, rule)
            };
            rule.name() == "rewrite" && may_lead() || guards_by_break(state, self.acts, directive)
        };
        let (guards, maps) = (self.work.guards, &self.work.maps);
        UnknownIf::new(guards, maps, &state.constants, directive, &leads)
    }

    /// The requests that a `rewrite` may lead to a location or a later step that refuses them.
    fn leads(&mut self, directive: &Directive, state: &State<'a>) -> Formula {
        if self.work.guards == Guards::Open {
            return Formula::never();
        }
        let formula = match refused(state, directive) {
            _ if is_refused_later(state, &self.work.maps, self.acts, directive) => {
                Formula::of_path(rewritten_or_more(directive))
            }
            Some(formula) => formula,
            None => return Formula::never(),
        };
        let why = "it may lead to a location or a rule that refuses requests; the response is 403 (--open-guards lets them pass)";
        self.work.notes.left_out(directive, why);
        formula
    }

    /// Handles unknown parts in the condition of an `if`. An `if` that refuses requests may refuse more of them. An
    /// `if` that sets variables keeps the unknown parts, so that the variables become unknown. Any other `if` ignores
    /// them.
    fn known(&mut self, directive: &Directive, formula: Formula, state: &State<'a>) -> Formula {
        self.unknown = formula.unknown().first().map(|why| (*why).to_owned());
        match self.own(directive, state).closes {
            true => formula.widened(),
            false if sets(directive) => formula,
            false => formula.widened().nearest(),
        }
    }

    /// Decides about an act whose condition cannot be evaluated, for the reason `why`: an `if` that refuses requests or
    /// sets variables applies, all others are skipped.
    fn undecided(&mut self, act: &Step<'a>, state: &State<'a>, why: &str) -> UnevaluatedRule {
        let directive = match act {
            Step::Do(directive) | Step::If(directive, _) => *directive,
            Step::Bind(map, _) => {
                let map = &self.work.maps[*map];
                self.work.uncertain.push(map.target().to_owned());
                map.directive
            }
            Step::Lead(_) => return UnevaluatedRule::Applies,
            Step::EndIf => return UnevaluatedRule::Skipped,
        };
        let is_if = matches!(act, Step::If(..));
        if is_if {
            for maker in source_maps(&directive.arguments().join(" "), &self.work.maps) {
                let why = "a condition that uses it cannot be evaluated";
                self.work.notes.left_out(maker, why);
            }
        }
        let own = self.own(directive, state);
        let is_break = matches!(act, Step::Do(_))
            && self.work.guards == Guards::Closed
            && guards_by_break(state, self.acts, directive);
        let closes = is_if && own.closes || is_break;
        let why = match closes {
            true => format!("{why}; {CLOSED}"),
            false => why.to_owned(),
        };
        self.work.notes.left_out(directive, why);
        self.is_undecided = closes || is_if && sets(directive);
        match self.is_undecided {
            true => UnevaluatedRule::Applies,
            false => UnevaluatedRule::Skipped,
        }
    }

    /// Applies an act inside an `if` whose condition is unknown.
    fn apply_unknown(
        &mut self,
        directive: &'a Directive,
        undecided: UnknownIf,
        state: &mut State<'a>,
        given: &KnownRequests,
    ) -> Result<Flow, LimitExceeded> {
        match directive.name() {
            "set" => {
                let name = canonical(directive.argument(0));
                undecided.mark(&name, &mut state.constants);
                Ok(Flow::Next)
            }
            "return" | "rewrite" | "break" if undecided.closes => {
                let status = match directive.argument(0).parse::<u16>() {
                    Ok(444) | Err(_) => 403,
                    Ok(status @ 400..=499) => status,
                    Ok(_) => 403,
                };
                self.serve(directive, Response::status(status), state, given)
            }
            _ => Ok(Flow::Next),
        }
    }

    fn serve(
        &mut self,
        directive: &'a Directive,
        response: Response,
        state: &State<'a>,
        given: &KnownRequests,
    ) -> Result<Flow, LimitExceeded> {
        let spot = RouteContext {
            when: &given.condition,
            constants: &state.constants,
        };
        if let Response::Respond { status, .. } = response
            && directive.name() == "return"
        {
            errors::note_fixed(self.work, &state.scope, status);
        }
        let mut route = Route::new(given.condition.clone(), response);
        route.comments = [self.comments, &[directive.origin()]].concat();
        fields::response(self.work, &state.scope, &spot, &mut route);
        content::compression(self.work, &state.scope, &mut route);
        content::connection_timeouts(self.work, &state.scope);
        log::write(self.work, &state.scope, &mut route);
        self.work.push(route).map(|()| Flow::End)
    }
}
