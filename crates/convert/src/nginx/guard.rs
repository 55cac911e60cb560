//! Locations that refuse requests or have access rules.

use crate::expression::condition::Path;
use crate::expression::dialect;
use crate::expression::pattern::PrefixPattern;
use crate::source::directive::Directive;

pub(super) fn refuses(directive: &Directive) -> bool {
    let inside = directive.inside();
    let mut rules = inside
        .iter()
        .filter(|said| matches!(said.name(), "allow" | "deny"));
    let is_denied = rules
        .next()
        .is_some_and(|rule| rule.name() == "deny" && rule.argument(0) == "all");
    let is_status = |status: &str| status.starts_with('4') && status.len() == 3;
    let mut said = inside.iter();
    is_denied || said.any(|said| said.name() == "return" && is_status(said.argument(0)))
}

/// Whether a location has access rules of its own.
pub(super) fn guards_own(directive: &Directive) -> bool {
    let mut rules = directive.inside().iter();
    rules.any(|rule| match rule.name() {
        "deny" | "internal" => true,
        "limit_except" => guards_own(rule),
        "auth_basic" => rule.argument(0) != "off",
        name => is_access_module(name) && rule.argument(0) != "off",
    })
}

/// Whether a rule of a location's own refuses requests, also under a condition.
pub(super) fn has_refusal(directive: &Directive) -> bool {
    let is_status = |rule: &Directive| {
        let status = rule.argument(0);
        rule.name() == "return" && status.starts_with('4') && status.len() == 3
    };
    let mut inside = directive.inside().iter();
    inside.any(|rule| match rule.name() {
        "if" => rule.inside().iter().any(is_status),
        "limit_except" => guards_own(rule),
        _ => is_status(rule),
    })
}

/// Whether requests for a location must be refused if its expression cannot be matched: the location or a location
/// inside it refuses requests or has access rules.
pub(super) fn is_guarded(directive: &Directive) -> bool {
    let mut inside = directive.inside().iter();
    refuses(directive)
        || guards_own(directive)
        || inside.any(|inner| inner.name() == "location" && is_guarded(inner))
}

/// The modifier of a location, which may be empty, and its path or expression. nginx needs no space between them.
pub(super) fn modifier(directive: &Directive) -> Option<(&str, &str)> {
    match directive.arguments() {
        [modifier, text] => Some((modifier, text)),
        [text] => {
            let mut modifiers = ["=", "^~", "~*", "~"].into_iter();
            let modifier = modifiers.find(|modifier| text.starts_with(modifier));
            Some(text.split_at(modifier.map_or(0, str::len)))
        }
        _ => None,
    }
}

/// Paths to refuse instead of an expression that cannot be matched, with a description for the note.
pub(super) fn wider(directive: &Directive) -> (PrefixPattern, &'static str) {
    let plain = |path: Path| PrefixPattern {
        path,
        captured: None,
    };
    let (modifier, text) = modifier(directive).unwrap_or_default();
    // Onrush matches paths without empty segments.
    let text = &*single_slashes(text);
    let pattern = match modifier {
        "~" => dialect::wider(text),
        "~*" => dialect::wider(&format!("(?i){text}")),
        // An exact path or a prefix.
        _ => dialect::wider(&format!("^{}", regex::escape(text))),
    };
    let path = match pattern {
        Some(pattern) if !text.is_empty() => Path::pattern(&pattern),
        _ => Err(String::new()),
    };
    match path {
        Ok(path) => (plain(path), "all paths that may match"),
        Err(_) => (plain(Path::Pattern("^/".to_owned())), "all paths"),
    }
}

/// Whether only paths with two slashes in a row may match a location.
pub(super) fn has_slashes(directive: &Directive) -> bool {
    let (modifier, text) = modifier(directive).unwrap_or_default();
    let text = text.replace('\\', "");
    let parts: &[&str] = match modifier {
        "~" | "~*" => &["//", "/+/", "/{", "[/]"],
        _ => &["//"],
    };
    parts.iter().any(|part| text.contains(part))
}

/// Replaces each run of slashes in a path or expression by one slash. Returns an empty string if an expression requires
/// several slashes in another notation, such as `/{2}`.
fn single_slashes(text: &str) -> String {
    let mut single = text.to_owned();
    while single.contains("//") {
        single = single.replace("//", "/");
    }
    let others = ["/{", "/+/", "[/]", "\\/\\/"];
    match others.iter().any(|part| single.contains(part)) {
        true => String::new(),
        false => single,
    }
}

/// Whether a directive of this name lets a module decide about access.
pub(super) fn is_access_module(name: &str) -> bool {
    const OTHERS: [&str; 7] = [
        "SecRulesEnabled",
        "accesskey",
        "app_protect_enable",
        "js_access",
        "modsecurity",
        "ssl_ocsp",
        "testcookie",
    ];
    let module = name.strip_prefix("auth_");
    let is_switch = |module: &str| !module.contains('_') && !matches!(module, "basic" | "delay");
    module.is_some_and(is_switch)
        || OTHERS.contains(&name)
        || name.starts_with("access_by_lua")
        || name.starts_with("rewrite_by_lua")
}
