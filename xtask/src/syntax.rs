//! The Rust files of the repository as syntax, each parsed once for all rules that ask for more than its text. What does
//! not parse is left out: the compiler says so better.

use std::collections::BTreeMap;

use syn::Attribute;

use crate::tree::Tree;

/// Syntax by the path of the file.
pub(crate) struct Syntax<'tree> {
    files: BTreeMap<&'tree str, syn::File>,
}

impl<'tree> Syntax<'tree> {
    /// Parses what is shipped: everything beneath the `src` folders of crates.
    pub(crate) fn parse(tree: &'tree Tree) -> Syntax<'tree> {
        let files = tree
            .ending(".rs")
            .filter(|(path, _)| crate_of(path).is_some())
            .filter_map(|(path, text)| Some((path, syn::parse_file(text).ok()?)))
            .collect();
        Syntax { files }
    }

    /// Path and syntax of every file.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'tree str, &syn::File)> {
        self.files.iter().map(|(path, file)| (*path, file))
    }

    /// The path as the tree has it, and the syntax.
    pub(crate) fn file(&self, path: &str) -> Option<(&'tree str, &syn::File)> {
        let (path, file) = self.files.get_key_value(path)?;
        Some((path, file))
    }
}

/// The name of the crate that a file beneath a `src` folder belongs to.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    let (folder, _) = path.split_once("/src/")?;
    let name = folder.strip_prefix("crates/").unwrap_or(folder);
    (!name.contains('/')).then_some(name)
}

/// Whether the attributes leave something out of what is shipped.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|condition| condition.is_ident("test"))
    })
}
