//! Example values for the arguments of format strings.

use proc_macro2::{Group, TokenTree};

/// Values, and the words that they are for: the last word of the argument's last name.
const VALUES: [(&str, &str); 32] = [
    ("127.0.0.1:8080", "address addresses"),
    ("--threads", "argument flag option"),
    ("4096", "bytes size"),
    ("/etc/onrush/site.pem", "certificate"),
    ("/etc/onrush/site.toml", "file path"),
    ("/var/www", "directory folder"),
    ("onrush serve", "command"),
    ("404", "code"),
    ("503", "status FOREIGN_STATUS"),
    ("4", "cores cpus threads queues found"),
    ("2", "core cpu thread index"),
    ("3", "count len number dropped lost sockets times"),
    ("12", "line lines"),
    ("7", "column"),
    ("1", "min least"),
    ("100", "limit max most capacity connections"),
    ("512", "length"),
    ("1000", "rate rates requests rps"),
    ("1.5s", "delay duration elapsed timeout time held"),
    ("30", "seconds s"),
    ("250", "ms milliseconds"),
    ("12.5", "percent share"),
    ("12.5 %", "cent"),
    ("4711", "pid process"),
    ("8080", "port ports"),
    ("connection refused", "reason why trouble failure"),
    ("No such file or directory (os error 2)", "error"),
    ("app", "name names upstream group what own who subject"),
    ("http://127.0.0.1:8080/", "target url"),
    ("127.0.0.1:9000", "server"),
    ("idle_timeout", "key"),
    ("abc", "text value shown other"),
];

/// Methods that convert a value and have no meaning of their own.
const CONVERSIONS: &str = "as_ref as_str as_secs as_secs_f64 clone display escape_debug f64 get get_ref join quoted to_string to_string_lossy trim u64";

/// Maximum number of letters of an expression that is printed for lack of a value.
const EXPRESSION_LETTERS_MAX: usize = 40;

/// Arguments after a format string.
pub(super) struct Arguments<'source, 'tokens> {
    source: &'source str,
    arguments: &'tokens [&'tokens [TokenTree]],
}

impl<'source, 'tokens> Arguments<'source, 'tokens> {
    pub(super) fn new(source: &'source str, arguments: &'tokens [&'tokens [TokenTree]]) -> Self {
        Arguments { source, arguments }
    }

    /// The format string with a value in every place, and with braces for escaped braces.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut out = String::new();
        let mut next = 0;
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                out.push_str(brace);
                rest = after;
            } else if let Some((place, after)) = rest.split_once('}') {
                let (name, spec) = place.split_once(':').unwrap_or((place, ""));
                next += usize::from(spec.contains(".*"));
                out.push_str(&formatted(&self.value(name.trim(), &mut next), spec));
                rest = after;
            }
        }
        out + rest
    }

    /// Value of a named, numbered or (if the name is empty) the next argument.
    fn value(&self, name: &str, next: &mut usize) -> String {
        let index = match name {
            "" => {
                *next += 1;
                Some(*next - 1)
            }
            _ => name.parse().ok(),
        };
        let argument = match index {
            Some(index) => self.arguments.get(index).copied(),
            None => self.arguments.iter().find_map(|argument| match argument {
                [TokenTree::Ident(own), TokenTree::Punct(mark), value @ ..]
                    if mark.as_char() == '=' && own == name =>
                {
                    Some(value)
                }
                _ => None,
            }),
        };
        match argument {
            Some(argument) => self.value_of(argument),
            None => known(name).map_or_else(|| format!("‹{name}›"), str::to_owned),
        }
    }

    fn value_of(&self, argument: &[TokenTree]) -> String {
        let mut names = argument.iter().rev().filter_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()),
            TokenTree::Literal(_) | TokenTree::Punct(_) | TokenTree::Group(_) => None,
        });
        let last = names.find(|name| !CONVERSIONS.split(' ').any(|known| known == name));
        if let (Some("plural"), Some(TokenTree::Group(group))) = (last.as_deref(), argument.last())
        {
            return plural(group);
        }
        if let Some(value) = last.and_then(|name| known(&name)) {
            return value.to_owned();
        }
        let [first, .., last] = argument else {
            let only = argument.first().map(TokenTree::to_string);
            return format!("‹{}›", only.unwrap_or_default());
        };
        let range = first.span().byte_range().start..last.span().byte_range().end;
        let words: Vec<&str> = self.source[range].split_whitespace().collect();
        let text = words.join(" ");
        let mut short: String = text.chars().take(EXPRESSION_LETTERS_MAX).collect();
        if short != text {
            short.push('…');
        }
        format!("‹{short}›")
    }
}

/// Example of a count and its noun, the last argument of a call of `plural`.
fn plural(arguments: &Group) -> String {
    let noun = arguments.stream().into_iter().last();
    let noun = noun.map(|noun| noun.to_string()).unwrap_or_default();
    format!("3 {}s", noun.trim_matches('"'))
}

fn known(name: &str) -> Option<&'static str> {
    let last = name.rsplit('_').next().unwrap_or(name);
    let is_for = |words: &str| words.split(' ').any(|word| word == last);
    let value = VALUES.iter().find(|(_, words)| is_for(words));
    value.map(|(value, _)| *value)
}

/// A value in the precision of a format, with quotes for `?`.
fn formatted(value: &str, spec: &str) -> String {
    let precision = spec.split_once('.').map(|(_, digits)| digits.parse());
    match (value.parse::<f64>(), precision) {
        (Ok(number), Some(Ok(digits))) => format!("{number:.digits$}"),
        (Ok(_), _) => value.to_owned(),
        (Err(_), _) if spec.ends_with('?') && !value.starts_with('‹') => format!("{value:?}"),
        (Err(_), _) => value.to_owned(),
    }
}
