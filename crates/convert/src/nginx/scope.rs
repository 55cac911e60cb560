//! Directives in force at one point of the tree: the innermost level that has a directive takes precedence.

use crate::source::directive::Directive;

/// The enclosing blocks, from the outermost.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'a> {
    levels: Vec<&'a [Directive]>,
    /// Index of the level of the innermost location or server; the levels after it are `if` blocks inside.
    own_from: usize,
}

impl<'a> Scope<'a> {
    /// Enters an `if` block.
    pub(super) fn with(&self, level: &'a [Directive]) -> Scope<'a> {
        let mut levels = self.levels.clone();
        levels.push(level);
        Scope {
            levels,
            own_from: self.own_from,
        }
    }

    /// Enters a location or server.
    pub(super) fn of_location(&self, level: &'a [Directive]) -> Scope<'a> {
        Scope {
            own_from: self.levels.len(),
            ..self.with(level)
        }
    }

    /// Directives of this name on the innermost level that has any: nginx inherits all of them or none.
    pub(super) fn all(&self, name: &str) -> Vec<&'a Directive> {
        self.all_of(&[name])
    }

    /// The same for several names that belong together, such as `allow` and `deny`.
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

    /// The last directive of this name on the innermost level.
    pub(super) fn one(&self, name: &str) -> Option<&'a Directive> {
        self.all(name).into_iter().next_back()
    }

    /// Its first argument; empty if there is none.
    pub(super) fn value(&self, name: &str) -> &'a str {
        self.one(name).map_or("", |directive| directive.argument(0))
    }

    /// All directives of the location itself and of `if` blocks in it.
    pub(super) fn own_level(&self) -> impl Iterator<Item = &'a Directive> + '_ {
        self.levels[self.own_from..]
            .iter()
            .flat_map(|level| level.iter())
    }

    /// A directive of the location itself or of an `if` block in it: for directives that are not inherited.
    pub(super) fn own(&self, name: &str) -> Option<&'a Directive> {
        self.own_of(&[name])
    }

    /// The same for several names that override each other, such as `proxy_pass` and `fastcgi_pass`.
    pub(super) fn own_of(&self, names: &[&str]) -> Option<&'a Directive> {
        let own = self.levels[self.own_from..].iter().rev();
        let mut own = own.flat_map(|level| level.iter().rev());
        own.find(|directive| names.contains(&directive.name()))
    }
}
