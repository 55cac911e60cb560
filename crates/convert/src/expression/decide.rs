//! Rules that are looked at in an order, with conditions of any form, become routes of which the first that matches
//! responds.
//!
//! Each condition that is open divides the requests: those for which it holds are brought to their end first, with routes
//! for all of them, so that behind those it does not hold. That is how "not" and "or" come about without a word for them.

use crate::expression::condition::{Atom, Both, Condition};
use crate::limits;

/// A condition of any form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Formula {
    Atom(Atom),
    Not(Box<Formula>),
    All(Vec<Formula>),
    Any(Vec<Formula>),
    /// A condition that Onrush does not have, with the reason.
    Unknown(String),
}

impl Formula {
    /// What always holds.
    pub(crate) fn always() -> Formula {
        Formula::All(Vec::new())
    }

    /// What never does.
    pub(crate) fn never() -> Formula {
        Formula::Any(Vec::new())
    }

    /// The same without the parts that cannot be evaluated.
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

    /// The same without those parts that cannot be evaluated and only narrow it: it holds for the same requests or more.
    pub(crate) fn widened(self) -> Formula {
        self.without_unknown(Change::Wider)
    }

    fn without_unknown(self, change: Change) -> Formula {
        let is_kept = |part: &Formula| !matches!(part, Formula::Unknown(_));
        let rest = |parts: Vec<Formula>, keeps: fn(&Formula) -> bool| {
            let parts = parts.into_iter().filter(keeps);
            parts.map(|part| part.without_unknown(change)).collect()
        };
        match (self, change) {
            (Formula::Not(inner), _) => {
                Formula::Not(Box::new(inner.without_unknown(change.opposite())))
            }
            (Formula::All(parts), Change::Wider) => Formula::All(rest(parts, is_kept)),
            (Formula::Any(parts), Change::Narrower) => Formula::Any(rest(parts, is_kept)),
            (Formula::All(parts), Change::Narrower) => Formula::All(rest(parts, |_| true)),
            (Formula::Any(parts), Change::Wider) => Formula::Any(rest(parts, |_| true)),
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
    /// It holds for more requests.
    Wider,
    /// It holds for fewer.
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

/// What is known of requests at one point of the rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// What holds.
    pub(crate) condition: Condition,
    /// The parts of it that were asked for.
    included: Vec<Atom>,
    /// What does not hold, since requests for which it does have been served.
    excluded: Vec<Atom>,
}

/// Whether a formula holds.
enum Truth {
    Yes,
    No,
    /// It depends on this.
    Open(Atom),
    /// It depends on a condition that Onrush cannot evaluate together with the known ones.
    Inexpressible,
}

impl Given {
    /// Those for which this holds, too.
    pub(crate) fn and(&self, atom: &Atom) -> Both<Given> {
        match self.condition.and(atom) {
            Both::Is(condition) => {
                let mut given = self.clone();
                given.condition = condition;
                given.included.push(atom.clone());
                Both::Is(given)
            }
            Both::Never => Both::Never,
            Both::Inexpressible => Both::Inexpressible,
        }
    }

    /// Whether a formula holds for none of them.
    pub(crate) fn excludes(&self, formula: &Formula) -> bool {
        matches!(self.truth(formula), Truth::No)
    }

    fn without(mut self, atom: Atom) -> Given {
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
            Both::Never => Truth::No,
            Both::Is(same) if same == self.condition => Truth::Yes,
            Both::Is(_) => Truth::Open(atom.clone()),
            Both::Inexpressible => Truth::Inexpressible,
        }
    }
}

/// Whether what fulfils `inner` fulfils `outer`.
fn covers(outer: &Atom, inner: &Atom) -> bool {
    if std::mem::discriminant(outer) != std::mem::discriminant(inner) {
        return false;
    }
    let Both::Is(inner) = Condition::default().and(inner) else {
        return false;
    };
    inner.and(outer) == Both::Is(inner.clone())
}

/// What a rule does with the requests that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The rules behind it are looked at.
    On,
    /// The rules behind it are not.
    Behind,
    /// They have got what they get.
    End,
}

/// Result for a rule whose condition cannot be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// It applies to every request.
    Applies,
    /// It applies to none.
    Skipped,
}

/// What happens at the rules.
pub(crate) trait Walk<R> {
    /// What is known of the requests besides conditions.
    type State: Clone;

    /// When a rule applies.
    fn when(&mut self, rule: &R, state: &Self::State) -> Formula;

    /// How many of the rules behind it are for those requests only that it applies to.
    fn inside(&self, rule: &R) -> usize;

    /// A rule applies.
    ///
    /// # Errors
    /// When there are too many routes.
    fn apply(&mut self, rule: &R, state: &mut Self::State, given: &Given) -> Result<Flow, TooMany>;

    /// Nothing is left behind the last rule.
    ///
    /// # Errors
    /// When there are too many routes.
    fn end(&mut self, state: Self::State, given: &Given) -> Result<(), TooMany>;

    /// Decides about a rule whose condition cannot be matched together with the known conditions.
    fn inexpressible(&mut self, rule: &R, state: &Self::State) -> Unasked;

    /// A step is made.
    ///
    /// # Errors
    /// When there have been too many.
    fn step(&mut self) -> Result<(), TooMany>;
}

/// The rules multiply to more than can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// How much is left of [`limits::STEPS_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(limits::STEPS_MAX)
    }
}

impl Budget {
    /// Takes one of them.
    ///
    /// # Errors
    /// When none is left.
    pub(crate) fn step(&mut self) -> Result<(), TooMany> {
        self.0 = self.0.checked_sub(1).ok_or(TooMany)?;
        Ok(())
    }
}

/// Brings all requests that are `given` through the rules.
///
/// # Errors
/// When that takes too many steps.
pub(crate) fn walk<R, W: Walk<R>>(
    rules: &[R],
    given: Given,
    state: W::State,
    walk: &mut W,
) -> Result<(), TooMany> {
    let mut waiting = vec![(0, given, state)];
    while let Some((mut at, given, mut state)) = waiting.pop() {
        match advance(rules, &mut at, &given, &mut state, walk)? {
            Stop::Served => {}
            Stop::Behind => walk.end(state, &given)?,
            Stop::Divided(atom, with) => {
                waiting.push((at, given.without(atom), state.clone()));
                // Looked at first: its routes come before those of the others.
                waiting.push((at, *with, state));
            }
        }
    }
    Ok(())
}

/// Where the way through the rules stops.
enum Stop {
    /// At a rule that ends it.
    Served,
    /// Behind the last one.
    Behind,
    /// At a rule that depends on a condition: what is given where that holds.
    Divided(Atom, Box<Given>),
}

fn advance<R, W: Walk<R>>(
    rules: &[R],
    at: &mut usize,
    given: &Given,
    state: &mut W::State,
    walk: &mut W,
) -> Result<Stop, TooMany> {
    while let Some(rule) = rules.get(*at) {
        walk.step()?;
        let when = walk.when(rule, state);
        let truth = match given.truth(&when) {
            Truth::Inexpressible => match walk.inexpressible(rule, state) {
                Unasked::Applies => Truth::Yes,
                Unasked::Skipped => Truth::No,
            },
            truth => truth,
        };
        match truth {
            Truth::No | Truth::Inexpressible => *at += walk.inside(rule),
            Truth::Yes => match walk.apply(rule, state, given)? {
                Flow::On => {}
                Flow::Behind => return Ok(Stop::Behind),
                Flow::End => return Ok(Stop::Served),
            },
            Truth::Open(atom) => {
                if let Both::Is(with) = given.and(&atom) {
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
    use crate::expression::condition::Path;

    /// Rules that are letters: capitals end.
    #[derive(Default)]
    struct Letters {
        routes: Vec<String>,
        lost: String,
        budget: Budget,
    }

    impl Walk<(Formula, char)> for Letters {
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
            given: &Given,
        ) -> Result<Flow, TooMany> {
            if rule.is_ascii_lowercase() {
                state.push(*rule);
                return Ok(Flow::On);
            }
            self.end(format!("{state}{rule}"), given)?;
            Ok(Flow::End)
        }

        fn end(&mut self, state: String, given: &Given) -> Result<(), TooMany> {
            let path = given.condition.path().written();
            let route = format!("{} {state}", path.unwrap_or_default());
            self.routes.push(route);
            Ok(())
        }

        fn inexpressible(&mut self, rule: &(Formula, char), _state: &String) -> Unasked {
            self.lost.push(rule.1);
            Unasked::Skipped
        }

        fn step(&mut self) -> Result<(), TooMany> {
            self.budget.step()
        }
    }

    fn prefix(path: &str) -> Formula {
        Formula::Atom(Atom::Path(Path::Prefix(path.to_owned())))
    }

    fn routes(rules: &[(Formula, char)]) -> Letters {
        let mut letters = Letters::default();
        walk(rules, Given::default(), String::new(), &mut letters).expect("few steps");
        letters
    }

    #[test]
    fn what_holds_comes_first_and_what_does_not_behind_it() {
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
    fn what_was_asked_for_once_is_known() {
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
    fn parts_that_cannot_be_evaluated_are_left_out_on_one_side() {
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
    fn what_cannot_be_asked_is_told() {
        let pattern = |pattern: &str| Formula::Atom(Atom::Path(Path::Pattern(pattern.to_owned())));
        let letters = routes(&[(pattern("x"), 'e'), (pattern("y"), 'F')]);
        assert_eq!(letters.lost, "F");
        assert_eq!(letters.routes, ["~x e", "~y F", " "]);
    }

    #[test]
    fn rules_that_multiply_have_a_bound() {
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
        let outcome = walk(&rules, Given::default(), String::new(), &mut letters);
        assert_eq!(outcome, Err(TooMany));
    }
}
