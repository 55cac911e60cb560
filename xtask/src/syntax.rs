//! Syntax trees of the crates, parsed once for all rules. Files are found as the compiler finds them, from the crate
//! root along `mod`, so test files are left out. Files that do not parse are left out, too: the compiler reports them
//! better.

use std::collections::BTreeMap;

use syn::{Attribute, Item};

use crate::tree::Tree;

pub(crate) struct Syntax<'tree> {
    files: BTreeMap<&'tree str, syn::File>,
}

impl<'tree> Syntax<'tree> {
    /// Parses the files of every crate of the workspace.
    pub(crate) fn parse(tree: &'tree Tree) -> Syntax<'tree> {
        let mut syntax = Syntax {
            files: BTreeMap::new(),
        };
        for (path, _) in tree.ending(".rs").filter(|(path, _)| is_root(path)) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            syntax.add(path, folder, tree);
        }
        syntax
    }

    /// Adds a file and the files of its modules, which are below `folder`.
    fn add(&mut self, path: &str, folder: &str, tree: &'tree Tree) {
        let Some((path, text)) = tree.file(path) else {
            return;
        };
        if let Ok(file) = syn::parse_file(text) {
            self.add_modules(&file.items, folder, tree);
            self.files.insert(path, file);
        }
    }

    fn add_modules(&mut self, items: &[Item], folder: &str, tree: &'tree Tree) {
        for item in items {
            let Item::Mod(module) = item else { continue };
            if is_for_tests(&module.attrs) {
                continue;
            }
            let below = format!("{folder}/{}", module.ident);
            match &module.content {
                Some((_, items)) => self.add_modules(items, &below, tree),
                None => {
                    for path in files_of(&below) {
                        self.add(&path, &below, tree);
                    }
                }
            }
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&'tree str, &syn::File)> {
        self.files.iter().map(|(path, file)| (*path, file))
    }

    /// Root files of the crates.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &'tree str> {
        self.files.keys().copied().filter(|path| is_root(path))
    }

    pub(crate) fn file(&self, path: &str) -> Option<(&'tree str, &syn::File)> {
        let (path, file) = self.files.get_key_value(path)?;
        Some((path, file))
    }
}

/// The two possible paths of a module whose submodules are below `folder`.
pub(crate) fn files_of(folder: &str) -> [String; 2] {
    [format!("{folder}.rs"), format!("{folder}/mod.rs")]
}

fn is_root(path: &str) -> bool {
    crate_of(path).is_some() && (path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
}

/// Name of the crate of a file below `src`.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    let (folder, _) = path.split_once("/src/")?;
    let name = folder.strip_prefix("crates/").unwrap_or(folder);
    (!name.contains('/')).then_some(name)
}

/// Whether the attributes exclude an item from release builds.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|condition| condition.is_ident("test"))
    })
}
