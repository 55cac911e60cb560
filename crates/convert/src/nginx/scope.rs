//! What holds at one place of the tree: the levels around it, of which the innermost that says something counts.

use crate::source::directive::Directive;

/// The blocks around a place, from the outermost.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'a> {
    levels: Vec<&'a [Directive]>,
    /// How many of them are around the location, or the server, that is meant: what is further in are conditions in it.
    own_from: usize,
}

impl<'a> Scope<'a> {
    /// One level further in: a condition.
    pub(super) fn with(&self, level: &'a [Directive]) -> Scope<'a> {
        let mut levels = self.levels.clone();
        levels.push(level);
        Scope {
            levels,
            own_from: self.own_from,
        }
    }

    /// One level further in: a location, or a server.
    pub(super) fn of_location(&self, level: &'a [Directive]) -> Scope<'a> {
        Scope {
            own_from: self.levels.len(),
            ..self.with(level)
        }
    }

    /// The directives of this name on the innermost level that has any: nginx inherits all of them or none.
    pub(super) fn all(&self, name: &str) -> Vec<&'a Directive> {
        self.all_of(&[name])
    }

    /// The same for directives that stand in for each other, such as `allow` and `deny`.
    pub(super) fn all_of(&self, names: &[&str]) -> Vec<&'a Directive> {
        let of_level = |level: &&'a [Directive]| -> Vec<&'a Directive> {
            level
                .iter()
                .filter(|directive| names.contains(&directive.name()))
                .collect()
        };
        let mut levels = self.levels.iter().rev().map(of_level);
        levels.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Directives whose names satisfy `is_it`; for each name, the innermost directive.
    pub(super) fn matching(&self, is_it: fn(&str) -> bool) -> Vec<&'a Directive> {
        let mut found: Vec<&'a Directive> = Vec::new();
        let inner_first = self.levels.iter().rev();
        for directive in inner_first.flat_map(|level| level.iter().rev()) {
            let name = directive.name();
            if is_it(name) && !found.iter().any(|known| known.name() == name) {
                found.push(directive);
            }
        }
        found
    }

    /// The one of this name.
    pub(super) fn one(&self, name: &str) -> Option<&'a Directive> {
        self.all(name).into_iter().next_back()
    }

    /// Its first argument; the empty text when there is none.
    pub(super) fn value(&self, name: &str) -> &'a str {
        self.one(name).map_or("", |directive| directive.argument(0))
    }

    /// All that the location itself says, and the conditions in it.
    pub(super) fn own_level(&self) -> impl Iterator<Item = &'a Directive> + '_ {
        self.levels[self.own_from..]
            .iter()
            .flat_map(|level| level.iter())
    }

    /// What the location itself says, or a condition in it: for directives that are not inherited.
    pub(super) fn own(&self, name: &str) -> Option<&'a Directive> {
        self.own_of(&[name])
    }

    /// The same for directives that set each other aside, such as `proxy_pass` and `fastcgi_pass`.
    pub(super) fn own_of(&self, names: &[&str]) -> Option<&'a Directive> {
        let own = self.levels[self.own_from..].iter().rev();
        let mut own = own.flat_map(|level| level.iter().rev());
        own.find(|directive| names.contains(&directive.name()))
    }
}
