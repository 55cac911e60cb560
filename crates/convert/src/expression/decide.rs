//! Turns ordered rules with arbitrary conditions into routes; the first matching route responds.
//!
//! Each condition that is still open divides the requests. Requests that fulfil it are followed to their end first, so
//! their routes come first; in the routes after them the condition is known to be false. This expresses "not" and "or"
//! without conditions for them.

use crate::expression::condition::{Atom, Condition, Conjunction, Path};
use crate::limits;

/// A Boolean combination of conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Formula {
    Atom(Atom),
    Not(Box<Formula>),
    All(Vec<Formula>),
    Any(Vec<Formula>),
    /// A condition that Onrush cannot evaluate, with the reason.
    Unknown(String),
}

impl Formula {
    pub(crate) fn always() -> Formula {
        Formula::All(Vec::new())
    }

    pub(crate) fn never() -> Formula {
        Formula::Any(Vec::new())
    }

    /// A condition on the path.
    pub(crate) fn of_path(path: Path) -> Formula {
        Formula::Atom(Atom::Path(path))
    }

    /// The formula without the parts that cannot be evaluated.
    pub(crate) fn nearest(self) -> Formula {
        let rest = |parts: Vec<Formula>| {
            let known = |part: &Formula| !matches!(part, Formula::Unknown(_));
            parts
                .into_iter()
                .filter(known)
                .map(Formula::nearest)
                .collect()
        };
        match self {
            Formula::Atom(_) | Formula::Unknown(_) => self,
            Formula::Not(inner) => Formula::Not(Box::new(inner.nearest())),
            Formula::All(parts) => Formula::All(rest(parts)),
            Formula::Any(parts) => Formula::Any(rest(parts)),
        }
    }

    /// The formula without the unknown parts that only narrow it: it holds for the same requests or more.
    pub(crate) fn widened(self) -> Formula {
        self.without_unknown(Change::Wider)
    }

    fn without_unknown(self, change: Change) -> Formula {
        let is_unknown = |part: &Formula| matches!(part, Formula::Unknown(_));
        let is_kept = |part: &Formula| !is_unknown(part);
        // "Not x, or unknown" only narrows for requests with x.
        let narrows = |part: &Formula| match part {
            Formula::Any(parts) if parts.iter().any(is_unknown) => {
                let mut known = parts.iter().filter(|part| is_kept(part));
                !known.all(|part| matches!(part, Formula::Not(_)))
            }
            part => is_kept(part),
        };
        let rest = |parts: Vec<Formula>, keeps: &dyn Fn(&Formula) -> bool| {
            let parts = parts.into_iter().filter(keeps);
            parts.map(|part| part.without_unknown(change)).collect()
        };
        match (self, change) {
            (Formula::Not(inner), _) => {
                Formula::Not(Box::new(inner.without_unknown(change.opposite())))
            }
            (Formula::All(parts), Change::Wider) => Formula::All(rest(parts, &narrows)),
            (Formula::Any(parts), Change::Narrower) => Formula::Any(rest(parts, &is_kept)),
            (Formula::All(parts), Change::Narrower) => Formula::All(rest(parts, &|_| true)),
            (Formula::Any(parts), Change::Wider) => Formula::Any(rest(parts, &|_| true)),
            (formula @ (Formula::Atom(_) | Formula::Unknown(_)), _) => formula,
        }
    }

    /// Reasons of the parts that cannot be evaluated.
    pub(crate) fn unknown(&self) -> Vec<&str> {
        match self {
            Formula::Atom(_) => Vec::new(),
            Formula::Not(inner) => inner.unknown(),
            Formula::All(parts) | Formula::Any(parts) => {
                parts.iter().flat_map(Formula::unknown).collect()
            }
            Formula::Unknown(why) => vec![why],
        }
    }
}

/// Permitted difference between a formula and its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The replacement holds for more requests.
    Wider,
    /// The replacement holds for fewer requests.
    Narrower,
}

impl Change {
    fn opposite(self) -> Change {
        match self {
            Change::Wider => Change::Narrower,
            Change::Narrower => Change::Wider,
        }
    }
}

/// Requests at one point of the rules, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRequests {
    /// The condition that holds.
    pub(crate) condition: Condition,
    /// The single conditions that `condition` was made of.
    included: Vec<Atom>,
    /// Conditions that do not hold: requests that fulfil them have earlier routes.
    excluded: Vec<Atom>,
}

/// Truth of a formula for the given requests.
enum Truth {
    Yes,
    No,
    /// It depends on this condition.
    Open(Atom),
    /// It depends on a condition that Onrush cannot combine with the known ones.
    Inexpressible,
}

impl KnownRequests {
    /// The requests that also fulfil `atom`.
    pub(crate) fn and(&self, atom: &Atom) -> Conjunction<KnownRequests> {
        match self.condition.and(atom) {
            Conjunction::Is(condition) => {
                let mut given = self.clone();
                given.condition = condition;
                given.included.push(atom.clone());
                Conjunction::Is(given)
            }
            Conjunction::Never => Conjunction::Never,
            Conjunction::Inexpressible => Conjunction::Inexpressible,
        }
    }

    /// Whether a formula holds for none of the requests.
    pub(crate) fn excludes(&self, formula: &Formula) -> bool {
        matches!(self.truth(formula), Truth::No)
    }

    fn without(mut self, atom: Atom) -> KnownRequests {
        self.excluded.push(atom);
        self
    }

    fn truth(&self, formula: &Formula) -> Truth {
        match formula {
            Formula::Atom(atom) => self.truth_of(atom),
            Formula::Unknown(_) => Truth::Inexpressible,
            Formula::Not(inner) => match self.truth(inner) {
                Truth::Yes => Truth::No,
                Truth::No => Truth::Yes,
                open => open,
            },
            Formula::All(parts) => {
                let mut all = Truth::Yes;
                for part in parts {
                    match (self.truth(part), &all) {
                        (Truth::No, _) => return Truth::No,
                        (Truth::Yes, _) => {}
                        (open, Truth::Yes | Truth::Inexpressible) => all = open,
                        (_, _) => {}
                    }
                }
                all
            }
            Formula::Any(parts) => {
                let mut any = Truth::No;
                for part in parts {
                    match (self.truth(part), &any) {
                        (Truth::Yes, _) => return Truth::Yes,
                        (Truth::No, _) => {}
                        (open, Truth::No | Truth::Inexpressible) => any = open,
                        (_, _) => {}
                    }
                }
                any
            }
        }
    }

    fn truth_of(&self, atom: &Atom) -> Truth {
        if self.excluded.iter().any(|known| covers(known, atom)) {
            return Truth::No;
        }
        if self.included.iter().any(|known| covers(atom, known)) {
            return Truth::Yes;
        }
        match self.condition.and(atom) {
            Conjunction::Never => Truth::No,
            Conjunction::Is(same) if same == self.condition => Truth::Yes,
            Conjunction::Is(_) => Truth::Open(atom.clone()),
            Conjunction::Inexpressible => Truth::Inexpressible,
        }
    }
}

/// Whether every request that fulfils `inner` fulfils `outer`.
fn covers(outer: &Atom, inner: &Atom) -> bool {
    // Most pairs differ here, which saves building their conditions.
    let is_comparable = match (outer, inner) {
        (Atom::Query(one, _), Atom::Query(other, _)) => one == other,
        (Atom::Header(one, _), Atom::Header(other, _)) => one.eq_ignore_ascii_case(other),
        _ => std::mem::discriminant(outer) == std::mem::discriminant(inner),
    };
    if !is_comparable {
        return false;
    }
    let Conjunction::Is(inner) = Condition::default().and(inner) else {
        return false;
    };
    inner.and(outer) == Conjunction::Is(inner.clone())
}

/// How evaluation continues after a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// The remaining rules are skipped.
    SkipRest,
    /// The requests have their routes.
    End,
}

/// Result for a rule whose condition cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnevaluatedRule {
    /// The rule applies to every request.
    Applies,
    /// The rule applies to no request.
    Skipped,
}

/// Callbacks of [`walk`].
pub(crate) trait RuleHandler<R> {
    /// State of the requests apart from conditions.
    type State: Clone;

    fn when(&mut self, rule: &R, state: &Self::State) -> Formula;

    /// Number of the following rules that only requests reach to which this rule applies.
    fn inside(&self, rule: &R) -> usize;

    fn apply(
        &mut self,
        rule: &R,
        state: &mut Self::State,
        given: &KnownRequests,
    ) -> Result<Flow, LimitExceeded>;

    /// Handles requests that have passed the last rule.
    fn end(&mut self, state: Self::State, given: &KnownRequests) -> Result<(), LimitExceeded>;

    /// Decides about a rule whose condition cannot be evaluated together with the known conditions.
    fn inexpressible(&mut self, rule: &R, state: &Self::State) -> UnevaluatedRule;

    fn step(&mut self) -> Result<(), LimitExceeded>;
}

/// The conversion needs more routes or steps than the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitExceeded;

/// Remaining steps of [`limits::STEPS_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(limits::STEPS_MAX)
    }
}

impl Budget {
    pub(crate) fn step(&mut self) -> Result<(), LimitExceeded> {
        self.0 = self.0.checked_sub(1).ok_or(LimitExceeded)?;
        Ok(())
    }
}

/// Leads all `given` requests through the rules.
pub(crate) fn walk_rules<R, W: RuleHandler<R>>(
    rules: &[R],
    given: KnownRequests,
    state: W::State,
    walk: &mut W,
) -> Result<(), LimitExceeded> {
    let mut waiting = vec![(0, given, state)];
    while let Some((mut at, given, mut state)) = waiting.pop() {
        match advance(rules, &mut at, &given, &mut state, walk)? {
            Stop::Served => {}
            Stop::Behind => walk.end(state, &given)?,
            Stop::Divided(atom, with) => {
                waiting.push((at, given.without(atom), state.clone()));
                // Pushed last, so handled first: its routes must precede the routes of other requests.
                waiting.push((at, *with, state));
            }
        }
    }
    Ok(())
}

/// Where a pass through the rules stops.
enum Stop {
    /// At a rule that has served the requests.
    Served,
    /// After the last rule.
    Behind,
    /// At a rule that depends on this condition; with the requests that fulfil it.
    Divided(Atom, Box<KnownRequests>),
}

fn advance<R, W: RuleHandler<R>>(
    rules: &[R],
    at: &mut usize,
    given: &KnownRequests,
    state: &mut W::State,
    walk: &mut W,
) -> Result<Stop, LimitExceeded> {
    while let Some(rule) = rules.get(*at) {
        walk.step()?;
        let when = walk.when(rule, state);
        let truth = match given.truth(&when) {
            Truth::Inexpressible => match walk.inexpressible(rule, state) {
                UnevaluatedRule::Applies => Truth::Yes,
                UnevaluatedRule::Skipped => Truth::No,
            },
            truth => truth,
        };
        match truth {
            Truth::No | Truth::Inexpressible => *at += walk.inside(rule),
            Truth::Yes => match walk.apply(rule, state, given)? {
                Flow::Next => {}
                Flow::SkipRest => return Ok(Stop::Behind),
                Flow::End => return Ok(Stop::Served),
            },
            Truth::Open(atom) => {
                if let Conjunction::Is(with) = given.and(&atom) {
                    return Ok(Stop::Divided(atom, Box::new(with)));
                }
            }
        }
        *at += 1;
    }
    Ok(Stop::Behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules that are letters: capital letters serve the requests.
    #[derive(Default)]
    struct Letters {
        routes: Vec<String>,
        lost: String,
        budget: Budget,
    }

    impl RuleHandler<(Formula, char)> for Letters {
        type State = String;

        fn when(&mut self, rule: &(Formula, char), _state: &String) -> Formula {
            rule.0.clone()
        }

        fn inside(&self, rule: &(Formula, char)) -> usize {
            usize::from(rule.1 == 'i')
        }

        fn apply(
            &mut self,
            (_, rule): &(Formula, char),
            state: &mut String,
            given: &KnownRequests,
        ) -> Result<Flow, LimitExceeded> {
            if rule.is_ascii_lowercase() {
                state.push(*rule);
                return Ok(Flow::Next);
            }
            self.end(format!("{state}{rule}"), given)?;
            Ok(Flow::End)
        }

        fn end(&mut self, state: String, given: &KnownRequests) -> Result<(), LimitExceeded> {
            let path = given.condition.path().written();
            let route = format!("{} {state}", path.unwrap_or_default());
            self.routes.push(route);
            Ok(())
        }

        fn inexpressible(&mut self, rule: &(Formula, char), _state: &String) -> UnevaluatedRule {
            self.lost.push(rule.1);
            UnevaluatedRule::Skipped
        }

        fn step(&mut self) -> Result<(), LimitExceeded> {
            self.budget.step()
        }
    }

    fn prefix(path: &str) -> Formula {
        Formula::Atom(Atom::Path(Path::Prefix(path.to_owned())))
    }

    fn routes(rules: &[(Formula, char)]) -> Letters {
        let mut letters = Letters::default();
        walk_rules(rules, KnownRequests::default(), String::new(), &mut letters)
            .expect("few steps");
        letters
    }

    #[test]
    fn routes_with_true_conditions_come_first() {
        let not = |formula| Formula::Not(Box::new(formula));
        for (rules, expected) in [
            (vec![(prefix("/a"), 'A')], vec!["/a A", " "]),
            (vec![(not(prefix("/a")), 'A')], vec!["/a ", " A"]),
            (
                vec![(prefix("/a"), 'e'), (prefix("/b"), 'B')],
                vec!["/a e", "/b B", " "],
            ),
            (
                vec![(prefix("/a"), 'e'), (prefix("/a/b"), 'B')],
                vec!["/a/b eB", "/a e", " "],
            ),
            (
                vec![(Formula::Any(vec![prefix("/a"), prefix("/b")]), 'A')],
                vec!["/a A", "/b A", " "],
            ),
            (
                vec![(Formula::All(vec![prefix("/a"), prefix("/b")]), 'A')],
                vec!["/a ", " "],
            ),
            (
                vec![(prefix("/a"), 'i'), (Formula::always(), 'A')],
                vec!["/a iA", " "],
            ),
            (vec![(Formula::never(), 'A')], vec![" "]),
            (vec![(Formula::always(), 'A')], vec![" A"]),
        ] {
            assert_eq!(routes(&rules).routes, expected, "{rules:?}");
        }
    }

    #[test]
    fn earlier_conditions_simplify_later_routes() {
        let suffix = || Formula::Atom(Atom::Path(Path::Suffix(".php".to_owned())));
        let not = |formula| Formula::Not(Box::new(formula));
        let twice = Formula::All(vec![prefix("/a"), not(suffix())]);
        let letters = routes(&[(twice, 'E'), (suffix(), 'F')]);
        assert_eq!(letters.lost, "");
        assert_eq!(
            letters.routes,
            ["~^/a(?s-u:.*)(?:\\.php\\z) F", "/a E", "~\\.php\\z F", " "]
        );
    }

    #[test]
    fn unknown_parts_widen_formulas() {
        let not = |formula| Formula::Not(Box::new(formula));
        let unknown = || Formula::Unknown("why".to_owned());
        let all = || Formula::All(vec![prefix("/a"), unknown()]);
        let any = || Formula::Any(vec![prefix("/a"), unknown()]);
        for (formula, wide) in [
            (all(), Formula::All(vec![prefix("/a")])),
            (any(), any()),
            (not(all()), not(all())),
            (not(any()), not(Formula::Any(vec![prefix("/a")]))),
            (not(not(all())), not(not(Formula::All(vec![prefix("/a")])))),
        ] {
            assert_eq!(formula.clone().widened(), wide, "{formula:?}");
            assert_eq!(formula.nearest().unknown(), Vec::<&str>::new());
        }
    }

    #[test]
    fn inexpressible_rules_are_reported() {
        let pattern = |pattern: &str| Formula::Atom(Atom::Path(Path::Pattern(pattern.to_owned())));
        let letters = routes(&[(pattern("x"), 'e'), (pattern("y"), 'F')]);
        assert_eq!(letters.lost, "F");
        assert_eq!(letters.routes, ["~x e", "~y F", " "]);
    }

    #[test]
    fn rule_combinations_hit_step_limit() {
        let present = |at| {
            Atom::Query(
                format!("q{at}"),
                crate::expression::condition::Test::Present,
            )
        };
        let rules: Vec<(Formula, char)> = (0..40)
            .map(|at| (Formula::Atom(present(at)), 'e'))
            .collect();
        let mut letters = Letters::default();
        let outcome = walk_rules(
            &rules,
            KnownRequests::default(),
            String::new(),
            &mut letters,
        );
        assert_eq!(outcome, Err(LimitExceeded));
    }
}
