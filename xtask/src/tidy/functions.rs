//! Rules about shipped functions: their length, and enums instead of boolean parameters (`Follows::No`), since `true`
//! in a call explains nothing. Older exceptions are listed here and may only shrink.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Block, FnArg, Signature, Type};

use super::problem::Problem;
use crate::syntax::{Syntax, crate_of, is_for_tests};

/// Maximum number of lines of a function from `fn` to its closing brace.
const LINES_MAX: usize = 70;

/// Longer functions, by file and name.
const LONG: &[(&str, &str)] = &[
    ("crates/load/src/run/live.rs", "draw_times"),
    ("crates/load/src/report.rs", "new"),
];

/// Number of boolean parameters in a crate; a crate that is not listed has none.
const BOOLEANS: &[(&str, usize)] = &[("serve", 6), ("load", 5)];

const OWN_PATH: &str = "xtask/src/tidy/functions.rs";

pub(crate) fn problems(syntax: &Syntax) -> Vec<Problem> {
    let functions = Functions::read(syntax);
    [functions.lengths(LONG), functions.booleans(BOOLEANS)].concat()
}

/// Facts about the functions of all crates.
struct Functions<'tree> {
    all: Vec<Function<'tree>>,
}

struct Function<'tree> {
    path: &'tree str,
    name: String,
    /// Line of `fn`, from 1.
    line: usize,
    lines: usize,
    /// Line and name of every boolean parameter.
    booleans: Vec<(usize, String)>,
}

impl<'tree> Functions<'tree> {
    fn read(syntax: &Syntax<'tree>) -> Functions<'tree> {
        let mut all = Vec::new();
        for (path, file) in syntax.files() {
            let mut reader = Reader {
                path,
                found: Vec::new(),
            };
            reader.visit_file(file);
            all.append(&mut reader.found);
        }
        Functions { all }
    }

    /// Functions that are too long, and exceptions that are not needed.
    fn lengths(&self, exceptions: &[(&str, &str)]) -> Vec<Problem> {
        let long = || {
            self.all
                .iter()
                .filter(|function| function.lines > LINES_MAX)
        };
        let is = |function: &Function, (path, name): &(&str, &str)| {
            function.path == *path && function.name == *name
        };
        let new = long().filter(|function| !exceptions.iter().any(|known| is(function, known)));
        let new = new.map(|function| {
            let Function {
                path,
                name,
                line,
                lines,
                ..
            } = function;
            Problem::new(
                path,
                *line,
                format!("{name} has {lines} lines (limit {LINES_MAX})"),
            )
        });
        let stale = exceptions
            .iter()
            .filter(|known| !long().any(|function| is(function, known)));
        let stale = stale.map(|(path, name)| {
            let said = format!("{name} of {path} is no longer too long: remove the exception");
            Problem::new(OWN_PATH, 1, said)
        });
        new.chain(stale).collect()
    }

    /// Crates with more boolean parameters than stated, or fewer.
    fn booleans(&self, stated: &[(&str, usize)]) -> Vec<Problem> {
        let mut found: BTreeMap<&str, Vec<(&str, usize, String)>> = BTreeMap::new();
        for function in &self.all {
            let of_crate = found
                .entry(crate_of(function.path).unwrap_or_default())
                .or_default();
            for (line, name) in &function.booleans {
                of_crate.push((function.path, *line, format!("{}({name})", function.name)));
            }
        }
        let mut problems = Vec::new();
        for (name, parameters) in &found {
            let limit = stated
                .iter()
                .find(|(stated, _)| stated == name)
                .map_or(0, |(_, limit)| *limit);
            if parameters.len() > limit {
                problems.extend(parameters.iter().map(|(path, line, parameter)| {
                    let said = format!(
                        "{parameter} is a boolean parameter, and {name} has {} of them (limit {limit}): use an enum",
                        parameters.len()
                    );
                    Problem::new(path, *line, said)
                }));
            }
        }
        for (name, limit) in stated {
            let count = found.get(name).map_or(0, Vec::len);
            if count < *limit {
                let said = format!(
                    "{name}: the limit is {limit} boolean parameters, but it has {count}: lower the number"
                );
                problems.push(Problem::new(OWN_PATH, 1, said));
            }
        }
        problems
    }
}

/// Reads the functions of one file.
struct Reader<'tree> {
    path: &'tree str,
    found: Vec<Function<'tree>>,
}

/// Where the parameters of a function are decided.
#[derive(Clone, Copy)]
enum SignatureOrigin {
    Here,
    /// By a trait; they are counted there if the trait is ours.
    ByTrait,
}

impl Reader<'_> {
    fn add(&mut self, signature: &Signature, body: Option<&Block>, signed: SignatureOrigin) {
        let line = signature.fn_token.span.start().line;
        let end = body.map_or(line, |body| body.brace_token.span.close().end().line);
        let booleans = match signed {
            SignatureOrigin::Here => signature.inputs.iter().filter_map(boolean).collect(),
            SignatureOrigin::ByTrait => Vec::new(),
        };
        self.found.push(Function {
            path: self.path,
            name: signature.ident.to_string(),
            line,
            lines: end - line + 1,
            booleans,
        });
    }
}

/// Line and name of a parameter that is a boolean.
fn boolean(parameter: &FnArg) -> Option<(usize, String)> {
    let FnArg::Typed(parameter) = parameter else {
        return None;
    };
    let Type::Path(path) = &*parameter.ty else {
        return None;
    };
    let syn::Pat::Ident(name) = &*parameter.pat else {
        return None;
    };
    path.path
        .is_ident("bool")
        .then(|| (name.ident.span().start().line, name.ident.to_string()))
}

impl<'file> Visit<'file> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'file syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'file syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.sig, Some(&function.block), SignatureOrigin::Here);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, item: &'file syn::ItemImpl) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let signed = match item.trait_ {
            Some(_) => SignatureOrigin::ByTrait,
            None => SignatureOrigin::Here,
        };
        for member in &item.items {
            if let syn::ImplItem::Fn(function) = member
                && !is_for_tests(&function.attrs)
            {
                self.add(&function.sig, Some(&function.block), signed);
                visit::visit_impl_item_fn(self, function);
            }
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'file syn::TraitItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(
                &function.sig,
                function.default.as_ref(),
                SignatureOrigin::Here,
            );
            visit::visit_trait_item_fn(self, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    /// Checks the problems reported for a root file of the crate `http` with these exceptions.
    #[track_caller]
    fn check(text: &str, long: &[(&str, &str)], booleans: usize, expected: &[&str]) {
        let tree = Tree::of(&[("crates/http/src/lib.rs", text)]);
        let syntax = Syntax::parse(&tree);
        let functions = Functions::read(&syntax);
        let problems = [
            functions.lengths(long),
            functions.booleans(&[("http", booleans)]),
        ];
        let found: Vec<String> = problems.concat().iter().map(Problem::to_string).collect();
        assert_eq!(found, expected, "of\n{text}");
    }

    #[test]
    fn long_functions_and_stale_exceptions_are_problems() {
        let known = [("crates/http/src/lib.rs", "f")];
        let whole =
            |lines: usize| format!("/// Why.\nfn f(\n) {{\n{}}}\n", "x();\n".repeat(lines - 3));
        check(&whole(70), &[], 0, &[]);
        let long = ["crates/http/src/lib.rs:2: f has 71 lines (limit 70)"];
        check(&whole(71), &[], 0, &long);
        check(&whole(71), &known, 0, &[]);
        check(
            &whole(70),
            &known,
            0,
            &[
                "xtask/src/tidy/functions.rs:1: f of crates/http/src/lib.rs is no longer too long: remove the exception",
            ],
        );
        check(
            &format!("#[cfg(test)]\nmod tests {{\n{}}}", whole(80)),
            &[],
            0,
            &[],
        );
        check(
            &format!("struct S;\nimpl S {{\n{}}}", whole(70)),
            &[],
            0,
            &[],
        );
    }

    #[test]
    fn boolean_parameters_are_problems() {
        let says = |line: usize| {
            format!(
                "crates/http/src/lib.rs:{line}: f(is) is a boolean parameter, and http has 1 of them (limit 0): use an enum"
            )
        };
        for text in [
            "fn f(x: u8,\n is: bool) {}",
            "struct S; impl S {\nfn f(&mut self, is: bool) {} }",
            "trait T {\nfn f(self, is: bool); }",
            "fn g() {\nfn f(is: bool) {} }",
        ] {
            check(text, &[], 0, &[&says(2)]);
        }
        check(
            "struct S; impl T for S { fn f(&self, is: bool) {} }",
            &[],
            0,
            &[],
        );
        check(
            "fn f(is: Option<bool>) -> bool { |is: bool| is }",
            &[],
            0,
            &[],
        );
        check("#[cfg(test)] mod tests { fn f(is: bool) {} }", &[], 0, &[]);
    }

    #[test]
    fn boolean_parameter_count_matches_list() {
        check("fn f(is: bool, has: bool) {}", &[], 2, &[]);
        check(
            "fn f(is: bool) {}",
            &[],
            2,
            &[
                "xtask/src/tidy/functions.rs:1: http: the limit is 2 boolean parameters, but it has 1: lower the number",
            ],
        );
    }
}
