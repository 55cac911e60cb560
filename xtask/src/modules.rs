//! Modules of a crate, the names in them, and which file uses which: a name resolver good enough to find cycles. It
//! follows `use`, re-exports, globs and qualified paths, also inside macro tokens. It does not know in which file a
//! method or a field is defined, nor macros that are in scope by their position in the text.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{UseTree, Visibility};

use crate::syntax::{Syntax, files_of, is_for_tests};

/// For each file of a crate the files that it uses, without tests.
pub(crate) type Uses<'tree> = BTreeMap<&'tree str, BTreeSet<&'tree str>>;

/// Finds which files below a root file (`lib.rs`, `main.rs`) use which. A file uses another one if it imports or
/// mentions a name defined there; `pub use` and `mod` do not count.
pub(crate) fn uses<'tree>(root: &str, syntax: &Syntax<'tree>) -> Uses<'tree> {
    let mut modules = Modules { all: Vec::new() };
    let Some((path, file)) = syntax.file(root) else {
        return Uses::new();
    };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    modules.add(path, folder, None, &file.items, syntax);
    let mut uses = Uses::new();
    for (at, module) in modules.all.iter().enumerate() {
        let used = uses.entry(module.file).or_default();
        let imports = module
            .imports
            .iter()
            .filter(|import| import.purpose == Purpose::Use);
        let paths = imports.map(|import| &import.path).chain(&module.paths);
        for path in paths {
            let found = modules.resolve(at, path, &mut Vec::new());
            used.extend(found.into_iter().filter_map(|name| match name {
                Name::Item(of) => Some(modules.all[of].file),
                Name::Module(_) => None,
            }));
        }
        used.remove(module.file);
    }
    uses
}

/// The modules of a crate, the root first.
struct Modules<'tree> {
    all: Vec<Module<'tree>>,
}

/// A module outside tests, in its own file or inline.
struct Module<'tree> {
    file: &'tree str,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in its code, `a::b::c` split into parts.
    paths: BTreeSet<Vec<String>>,
}

/// One name of a `use`.
struct Import {
    path: Vec<String>,
    /// `None` for `*`.
    name: Option<String>,
    purpose: Purpose,
}

/// Purpose of an import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Use in this file: `use`.
    Use,
    /// A re-export: `pub use`.
    Reexport,
}

/// Meaning of a name, with the index of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Module(usize),
    /// An item defined in this module.
    Item(usize),
}

impl<'tree> Modules<'tree> {
    /// Adds a module and its submodules; `folder` contains the files of its children.
    fn add(
        &mut self,
        file: &'tree str,
        folder: &str,
        parent: Option<usize>,
        items: &[syn::Item],
        syntax: &Syntax<'tree>,
    ) -> usize {
        let mut reader = Reader::default();
        for item in items {
            reader.visit_item(item);
        }
        let own = self.all.len();
        self.all.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: items.iter().filter_map(defined).collect(),
            imports: reader.imports,
            paths: reader.paths,
        });
        for item in items {
            let syn::Item::Mod(child) = item else {
                continue;
            };
            if is_for_tests(&child.attrs) {
                continue;
            }
            let name = child.ident.to_string();
            let below = format!("{folder}/{name}");
            let number = match &child.content {
                Some((_, items)) => self.add(file, &below, Some(own), items, syntax),
                None => {
                    let files = files_of(&below);
                    let Some((path, content)) = files.iter().find_map(|path| syntax.file(path))
                    else {
                        continue;
                    };
                    self.add(path, &below, Some(own), &content.items, syntax)
                }
            };
            self.all[own].children.insert(name, number);
        }
        own
    }

    /// Resolves a path in a module. Names of other crates, of the language and of local variables resolve to nothing.
    fn resolve(&self, from: usize, path: &[String], open: &mut Vec<(usize, String)>) -> Vec<Name> {
        let mut found = match path.first().map(String::as_str) {
            Some("crate") => vec![Name::Module(0)],
            Some("self") => vec![Name::Module(from)],
            Some("super") => vec![Name::Module(self.all[from].parent.unwrap_or(0))],
            Some(name) => self.look_up(from, name, open),
            None => Vec::new(),
        };
        for part in path.iter().skip(1) {
            // An item can only be followed by its variant or associated function. A function may have the name of a
            // module, and is then not followed by anything.
            let mut next = Vec::new();
            for name in &found {
                if let Name::Module(module) = *name {
                    next.extend(match part.as_str() {
                        "super" => vec![Name::Module(self.all[module].parent.unwrap_or(0))],
                        part => self.look_up(module, part, open),
                    });
                }
            }
            let is_item = found.iter().all(|name| matches!(name, Name::Item(_)));
            if !is_item {
                found = next;
            }
        }
        found
    }

    /// Looks up a name in a module. `open` holds the pending look-ups: globs may form a cycle.
    fn look_up(&self, module: usize, name: &str, open: &mut Vec<(usize, String)>) -> Vec<Name> {
        let question = (module, name.to_owned());
        if open.contains(&question) {
            return Vec::new();
        }
        open.push(question);
        let this = &self.all[module];
        let mut found = Vec::new();
        found.extend(this.children.get(name).map(|child| Name::Module(*child)));
        found.extend(this.items.contains(name).then_some(Name::Item(module)));
        for import in &this.imports {
            if import.name.as_deref() == Some(name) {
                found.extend(self.resolve(module, &import.path, open));
            }
        }
        if found.is_empty() {
            for import in this.imports.iter().filter(|import| import.name.is_none()) {
                for source in self.resolve(module, &import.path, open) {
                    if let Name::Module(source) = source {
                        found.extend(self.look_up(source, name, open));
                    }
                }
            }
        }
        open.pop();
        found.sort();
        found.dedup();
        found
    }
}

/// Name that an item defines in its module, if any.
fn defined(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::TraitAlias(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Collects the imports and paths of one module, without its submodules and tests.
#[derive(Default)]
struct Reader {
    imports: Vec<Import>,
    paths: BTreeSet<Vec<String>>,
}

impl Reader {
    fn import(&mut self, tree: &UseTree, path: &[String], purpose: Purpose) {
        let with = |name: &syn::Ident| [path, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(part) => return self.import(&part.tree, &with(&part.ident), purpose),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path, purpose);
                }
                return;
            }
            UseTree::Glob(_) => (path.to_vec(), None),
            // `a::{self}` is `a`.
            UseTree::Name(name) if name.ident == "self" => (path.to_vec(), path.last().cloned()),
            UseTree::Rename(name) if name.ident == "self" => {
                (path.to_vec(), Some(name.rename.to_string()))
            }
            UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(name) => (with(&name.ident), Some(name.rename.to_string())),
        };
        self.imports.push(Import {
            path,
            name,
            purpose,
        });
    }

    /// Collects every `a::b::c` among the tokens of a macro, however the macro uses it.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.paths.insert(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    self.paths.insert(std::mem::take(&mut path));
                    self.tokens(group.stream());
                    colons = 0;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.paths.insert(std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.paths.insert(path);
    }
}

impl<'file> Visit<'file> for Reader {
    fn visit_item(&mut self, item: &'file syn::Item) {
        match item {
            syn::Item::Mod(_) => {}
            syn::Item::Use(item) => {
                if !is_for_tests(&item.attrs) && item.leading_colon.is_none() {
                    let purpose = match item.vis {
                        Visibility::Inherited => Purpose::Use,
                        _ => Purpose::Reexport,
                    };
                    self.import(&item.tree, &[], purpose);
                }
            }
            item if is_for_tests(attributes(item)) => {}
            item => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'file syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'file syn::Path) {
        if path.leading_colon.is_none() {
            let parts = path.segments.iter().map(|part| part.ident.to_string());
            self.paths.insert(parts.collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'file syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'file syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'file Visibility) {}
}

/// Attributes of an item that is a definition or an implementation.
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        _ => &[],
    }
}
