//! `cargo xtask messages`: prints every message of the program with its arguments filled in, so that all can be read together.
//!
//! It reads tokens, not syntax trees: a macro's arguments are tokens only, and they contain most messages. Left out are doc
//! comments (except clap's help), reasons in attributes, protocol bytes and tests.

mod example;

use std::fmt::Write;
use std::iter::once;

use anyhow::bail;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::Lit;

use self::example::Arguments;
use crate::syntax::{Syntax, crate_of};
use crate::tidy::{MESSAGE_WORDS_MIN, is_code, words};
use crate::tree::Tree;

/// Macros whose first lone string literal is a format string.
const FORMAT_MACROS: &str = "anyhow assert assert_eq assert_ne bail debug debug_assert debug_assert_eq debug_assert_ne ensure \
     eprint eprintln error format format_args info panic print println say trace unreachable warn write writeln";

/// Macros that make any string, not only messages: their format strings need two words.
const STRING_MACROS: [&str; 4] = ["format", "format_args", "write", "writeln"];

/// Functions of `anyhow` whose argument is a message, however short.
const MESSAGE_FUNCTIONS: [&str; 2] = ["context", "msg"];

/// Traits of clap that turn doc comments into help.
const HELP_TRAITS: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Attributes with messages; literals in others, such as reasons for lints, are not printed by the program.
const MESSAGE_ATTRIBUTES: [&str; 6] = ["arg", "clap", "command", "error", "group", "value"];

struct Message<'tree> {
    path: &'tree str,
    /// From 1.
    line: usize,
    text: String,
}

/// One line per message of the named crates, or of all if none is named; a blank line after each file.
pub(crate) fn listed(tree: &Tree, crates: &[&str]) -> anyhow::Result<String> {
    let syntax = Syntax::parse(tree);
    let all: Vec<&str> = syntax.files().map(|(path, _)| path).collect();
    for name in crates {
        if !all.iter().any(|path| crate_of(path) == Some(name)) {
            bail!("no crate named {name:?}: expected a directory of crates/, or xtask");
        }
    }
    let mut out = String::new();
    for path in all {
        let name = crate_of(path).unwrap_or_default();
        if !crates.is_empty() && !crates.contains(&name) {
            continue;
        }
        let found = messages(path, tree);
        for Message { path, line, text } in &found {
            let text = text.trim_end().replace('\n', "\\n");
            writeln!(out, "{path}:{line}: {text}").expect("it is a string");
        }
        if !found.is_empty() {
            out.push('\n');
        }
    }
    Ok(out)
}

fn messages<'tree>(path: &'tree str, tree: &'tree Tree) -> Vec<Message<'tree>> {
    let (path, text) = tree.file(path).expect("Syntax parsed this file");
    let mut reader = Reader {
        path,
        text,
        found: Vec::new(),
    };
    let tokens = text.parse().expect("Syntax parsed this file");
    reader.read(tokens, Docs::Ignored);
    reader.found.sort_by_key(|message| message.line);
    reader.found
}

/// Whether doc comments of a group of tokens are help text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Docs {
    Help,
    Ignored,
}

struct Reader<'tree> {
    path: &'tree str,
    text: &'tree str,
    found: Vec<Message<'tree>>,
}

impl<'tree> Reader<'tree> {
    fn read(&mut self, tokens: TokenStream, docs: Docs) {
        let tokens = Vec::from_iter(tokens);
        let mut rest = &tokens[..];
        let mut comment = Vec::new();
        let mut docs_of_item = docs;
        while let [first, after @ ..] = rest {
            rest = after;
            match (first, after) {
                (TokenTree::Punct(mark), [TokenTree::Group(attribute), after @ ..])
                    if mark.as_char() == '#' =>
                {
                    rest = after;
                    let text = attribute.stream().to_string().replace(' ', "");
                    if text.starts_with("doc=") {
                        comment.extend(attribute.stream().into_iter().last());
                    } else if text == "cfg(test)" {
                        rest = after_item(after);
                    } else if text.starts_with("derive(") && is_help(&text) {
                        docs_of_item = Docs::Help;
                    } else {
                        self.read_attribute(attribute);
                    }
                    continue;
                }
                (
                    TokenTree::Punct(mark),
                    [TokenTree::Punct(bang), TokenTree::Group(_), after @ ..],
                ) if mark.as_char() == '#' && bang.as_char() == '!' => {
                    rest = after;
                }
                (
                    TokenTree::Ident(name),
                    [
                        TokenTree::Punct(mark),
                        TokenTree::Group(arguments),
                        after @ ..,
                    ],
                ) if mark.as_char() == '!' => {
                    self.read_macro(&name.to_string(), arguments.stream());
                    rest = after;
                }
                (TokenTree::Ident(name), [TokenTree::Group(arguments), ..])
                    if MESSAGE_FUNCTIONS.iter().any(|known| name == known) =>
                {
                    let literal = arguments.stream().into_iter().next();
                    self.add_literal(literal.as_ref(), 1, MESSAGE_WORDS_MIN - 1);
                }
                (TokenTree::Group(group), _) => {
                    self.read(group.stream(), docs_of_item);
                    if group.delimiter() == Delimiter::Brace {
                        docs_of_item = docs;
                    }
                }
                (token, _) => self.add_literal(Some(token), MESSAGE_WORDS_MIN, usize::MAX),
            }
            if docs_of_item == Docs::Help {
                self.add_comment(&comment);
            }
            comment.clear();
        }
    }

    fn read_attribute(&mut self, attribute: &Group) {
        let name = attribute.stream().into_iter().next();
        let name = name.map(|name| name.to_string()).unwrap_or_default();
        if !MESSAGE_ATTRIBUTES.contains(&&*name) {
            return;
        }
        for token in attribute.stream() {
            match token {
                TokenTree::Group(group) if name == "error" => {
                    self.read_macro(&name, group.stream());
                }
                TokenTree::Group(group) => self.read(group.stream(), Docs::Ignored),
                _ => {}
            }
        }
    }

    /// Adds the format string of a macro, filled in, and the messages of its other arguments.
    fn read_macro(&mut self, name: &str, arguments: TokenStream) {
        let tokens = Vec::from_iter(arguments);
        if !FORMAT_MACROS.split(' ').any(|known| known == name) {
            return self.read(tokens.into_iter().collect(), Docs::Ignored);
        }
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
        let arguments: Vec<&[TokenTree]> = tokens.split(is_comma).collect();
        let is_string =
            |tokens: &&[TokenTree]| matches!(tokens, [token] if string(token).is_some());
        let format = arguments.iter().position(is_string);
        for (at, argument) in arguments.iter().enumerate() {
            if Some(at) != format {
                self.read(argument.iter().cloned().collect(), Docs::Ignored);
            }
        }
        let Some(format) = format else { return };
        let token = &arguments[format][0];
        let template = string(token).expect("it was found as a string");
        let words_min = if STRING_MACROS.contains(&name) { 2 } else { 1 };
        if words(&template) >= words_min && !is_code(&template) {
            let values = Arguments::new(self.text, &arguments[format + 1..]);
            self.add(token, values.fill(&template));
        }
    }

    /// Adds a string literal that has a number of words in these limits.
    fn add_literal(&mut self, token: Option<&TokenTree>, words_min: usize, words_max: usize) {
        let Some((token, text)) = token.and_then(|token| Some((token, string(token)?))) else {
            return;
        };
        if (words_min..=words_max).contains(&words(&text)) && !is_code(&text) {
            self.add(token, text);
        }
    }

    /// Adds the lines of a doc comment as one message.
    fn add_comment(&mut self, lines: &[TokenTree]) {
        let Some(first) = lines.first() else { return };
        let text = lines.iter().filter_map(string);
        let text: Vec<String> = text.map(|line| line.trim().to_owned()).collect();
        self.add(first, text.join(" "));
    }

    fn add(&mut self, token: &TokenTree, text: String) {
        self.found.push(Message {
            path: self.path,
            line: token.span().start().line,
            text,
        });
    }
}

fn is_help(derive: &str) -> bool {
    let mut names = derive.split(|letter: char| !letter.is_alphanumeric());
    names.any(|name| HELP_TRAITS.contains(&name))
}

/// Tokens after an item: after its body, or after its `;`.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let end = tokens.iter().position(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    });
    end.map_or(&[], |end| &tokens[end + 1..])
}

/// Value of a string literal, or of a byte string that is text.
fn string(token: &TokenTree) -> Option<String> {
    let literal = match token {
        TokenTree::Literal(_) => syn::parse2(once(token.clone()).collect()).ok()?,
        TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) => return None,
    };
    match literal {
        Lit::Str(text) => Some(text.value()),
        Lit::ByteStr(bytes) => String::from_utf8(bytes.value()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    /// Checks the messages, as `line: text`, of one file.
    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let path = "crates/a/src/lib.rs";
        let tree = Tree::of(&[(path, source)]);
        let found = messages(path, &tree);
        let found = found
            .iter()
            .map(|found| format!("{}: {}", found.line, found.text));
        assert_eq!(Vec::from_iter(found), expected, "{source}");
    }

    #[test]
    fn format_arguments_are_substituted() {
        let source = r#"fn f() {
    bail!("{}:{line}: {1:?} is not {{{rate:.1}}}", file.path.display(), text);
    warn!(error = %cause, "cannot bind {}", group.listener().kind());
    format!("{all} of {}", plural(all, "request"));
    ensure!(rate > least, "at least {}", if a { 1 } else { 2 });
}"#;
        check(
            source,
            &[
                "2: /etc/onrush/site.toml:12: \"abc\" is not {1000.0}",
                "3: cannot bind ‹group.listener().kind()›",
                "5: at least ‹if a { 1 } else { 2 }›",
            ],
        );
    }

    #[test]
    fn literals_and_help_are_listed_verbatim() {
        let source = r#"//! The file has a purpose.
/// Serves files to
/// clients.
#[derive(Debug, Parser)]
#[command(after_help = "Examples serve a directory")]
struct Serve {
    /// Address to listen on.
    #[arg(value_name = "ADDRESS")]
    address: String,
}
/// Reason of a failure.
const WHY: &str = "the server is \
    gone";
fn f() { g().context("reading")?; b"it is out of memory"; "two words"; }
#[cfg(test)]
mod tests { const NONE: &str = "not in a release"; }
#[expect(unused, reason = "for a later version")]
const CODE: &str = "a <<= b and more words";"#;
        check(
            source,
            &[
                "2: Serves files to clients.",
                "5: Examples serve a directory",
                "7: Address to listen on.",
                "12: the server is gone",
                "14: reading",
                "14: it is out of memory",
            ],
        );
    }

    #[test]
    fn crates_are_selected_by_name() {
        let source = "const WHY: &str = \"the server is gone\";";
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", source),
            ("crates/b/src/lib.rs", source),
        ]);
        let line = "crates/b/src/lib.rs:1: the server is gone\n\n";
        let found = listed(&tree, &["b"]).expect("there is such a crate");
        assert_eq!(found, line);
        listed(&tree, &["c"]).expect_err("there is no such crate");
    }

    #[test]
    #[ignore = "slow: make test-all"]
    fn repository_messages_are_listed() {
        let tree = Tree::read(&crate::tree::root()).expect("the repository can be read");
        let all = listed(&tree, &[]).expect("no crate is named");
        let known = [
            ": cannot wait for signals",
            ": lost 3 lines of the log: standard output was not read",
            ": no such resource; /openapi.json lists the paths",
            ": onrush: out of memory: the system refuses",
            ": Reload the file when it changes, as SIGHUP does",
            ": unknown field {app}; nearest: {‹near›}",
        ];
        for text in known {
            assert!(
                all.lines().any(|line| line.contains(text)),
                "not found: {text}"
            );
        }
        // A placeholder that is not inside a message about templates.
        let unfilled = Regex::new(r"[^{]\{(\w*:[#?.<>^0-9]+)?\}([^}]|$)").expect("a valid pattern");
        let about_templates = ["{} for a network namespace"];
        let unfilled = all.lines().filter(|line| {
            unfilled.is_match(line) && !about_templates.iter().any(|text| line.contains(text))
        });
        assert_eq!(Vec::from_iter(unfilled), Vec::<&str>::new());
    }
}
