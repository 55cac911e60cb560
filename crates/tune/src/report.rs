//! Formats a plan as text and as a shell script.

mod changes;

use std::fmt::Write;

use crate::advise::{Action, Plan, Role, Sharing, Target};
use crate::apply::resets_queues;
use onrush_machine::cpus::CpuSet;

/// Default width of a plan.
pub const COLUMNS: usize = 110;
/// Characters of a name or sentence that are printed to a terminal as one line.
const LINE_MAX: usize = 2_000;

/// Formats a plan as text of this width (at least 40). Changes with the same reason are grouped, and an
/// interface's queues are shown as ranges.
pub fn text(plan: &Plan, columns: usize) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{}", printable(&text)).unwrap_or_default();
    let wrapped = |head: &str, text: &str| wrapped(head, text, columns);
    for interface in &plan.placement.interfaces {
        let node = match interface.numa_node {
            -1 => "node unknown".to_owned(),
            node => format!("node {node}"),
        };
        line(format!("{} ({node})", one_line(&interface.name)));
        line(wrapped("  interrupts   ", &cpus(&interface.irq_cpus)));
        line(wrapped("  steering     ", &cpus(&interface.steering_cpus)));
        for reason in &interface.reasons {
            line(wrapped("  because      ", reason));
        }
    }
    line(wrapped(
        "application    ",
        &cpus(&plan.placement.application_cpus),
    ));
    line(wrapped(
        "system         ",
        &cpus(&plan.placement.system_cpus),
    ));
    match plan.placement.sharing {
        Sharing::Nothing => {}
        Sharing::Steering => {
            line("  the application shares the CPUs that packets are steered to".to_owned())
        }
        Sharing::Everything => line("  the machine is too small to set CPUs aside".to_owned()),
    }
    if plan.request.role != Role::Client {
        line(wrapped("connections    ", &plan.accept.to_string()));
    }
    line(String::new());
    match plan.actions.len() {
        0 => line("nothing to change".to_owned()),
        1 => line("1 change".to_owned()),
        count => line(format!("{count} changes, in this order")),
    }
    for group in changes::groups(&plan.actions) {
        line(String::new());
        line(wrapped("  ", &group.reason()));
        line(wrapped("    source  ", &group.actions[0].source));
        line(wrapped("    risk    ", &group.actions[0].risk));
        line(wrapped("    watch   ", &group.actions[0].effect));
        for text in group.lines(columns) {
            line(one_line(&text));
        }
    }
    if !plan.notes.is_empty() {
        line(String::new());
        line("notes".to_owned());
    }
    for note in &plan.notes {
        line(wrapped("  ", &format!("{} {}", note.about, note.text)));
    }
    out
}

/// Replaces characters that control a terminal or the direction of text. Names of interfaces, programs and files can
/// contain almost any bytes. White space is kept.
pub fn printable(text: &str) -> String {
    let harmless = |letter: char| match letter {
        '\n' | '\t' => letter,
        // Bidirectional embeddings, overrides and isolates, and line separators (Unicode, UAX 9 and 14).
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' => {
            char::REPLACEMENT_CHARACTER
        }
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    text.chars().map(harmless).collect()
}

/// [`printable`], limited to one line of bounded length.
pub fn one_line(text: &str) -> String {
    let text: String = text.chars().take(LINE_MAX).collect();
    printable(&text).replace(['\n', '\t'], "\u{fffd}")
}

/// Adds a space after each comma, so that long lists can be wrapped.
fn cpus(cpus: &CpuSet) -> String {
    match cpus.len() {
        0 => "none".to_owned(),
        1 => format!("CPU {cpus}"),
        _ => format!("CPUs {}", cpus.to_string().replace(',', ", ")),
    }
}

/// Wraps a text at this width and indents it below `head`.
pub fn wrapped(head: &str, text: &str, columns: usize) -> String {
    let mut lines = String::from(head);
    let width = head.chars().count();
    let mut column = width;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > width && column + length > columns {
            lines = format!("{}\n{}", lines.trim_end(), " ".repeat(width));
            column = width;
        }
        lines.push_str(word);
        lines.push(' ');
        column += length + 1;
    }
    lines.trim_end().to_owned()
}

/// Formats a plan as a script for `sh`. The script continues after errors, reports them at the end, and does not undo.
/// Changing a device's number of queues changes its interrupts in an unknown way, so the settings of these queues are
/// left for a second script, as the first one prints.
pub fn script(plan: &Plan) -> String {
    let mut out = String::from(
        "#!/bin/sh\n# Made by `onrush tune plan --script`. To be run as root. `onrush tune apply` does the same with a\n\
         # journal, reads back what the kernel kept, and can undo it.\n\nrefused=0\nput() {\n    \
         printf '%s\\n' \"$1\" >\"$2\" || { echo \"refused: $2\" >&2; refused=1; }\n}\nrun() {\n    \
         \"$@\" || { echo \"refused: $*\" >&2; refused=1; }\n}\n",
    );
    let reset: Vec<&str> = plan
        .actions
        .iter()
        .filter(|action| resets_queues(&action.target))
        .filter_map(|action| action.target.interface())
        .collect();
    let is_known = |action: &&Action| match &action.target {
        Target::Driver { .. } => true,
        target => target.interface().is_none_or(|name| !reset.contains(&name)),
    };
    let mut reason = "";
    for action in plan.actions.iter().filter(is_known) {
        if action.reason != reason {
            // Reasons contain names of interfaces, which must not end the comment.
            let comment = printable(&action.reason).replace('\n', " ");
            out.push_str(&format!("\n# {comment}\n"));
            reason = &action.reason;
        }
        out.push_str(&command(action));
        out.push('\n');
    }
    if plan.actions.iter().any(|action| !is_known(&action)) {
        let words = format!(
            "the queues or interrupts of {} have changed: run `onrush tune plan --script` again, then the new script",
            reset.join(", ")
        );
        out.push_str(&format!("\necho {} >&2\n", quoted(&words)));
    }
    out.push_str("\nexit $refused\n");
    out
}

fn command(action: &Action) -> String {
    match &action.target {
        Target::Driver { interface, knob } => {
            let words = knob.command(interface, &action.proposed);
            let words: Vec<String> = words.split(' ').map(quoted).collect();
            format!("run {}", words.join(" "))
        }
        Target::Service { unit } => {
            let verb = if action.proposed == "active" {
                "start"
            } else {
                "stop"
            };
            format!("run systemctl {verb} {}", quoted(unit))
        }
        _ => format!("put {} {}", quoted(&action.proposed), quoted(&action.path)),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-,:".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_are_quoted() {
        for (word, expected) in [
            ("eth0", "eth0"),
            ("10000 65535", "'10000 65535'"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn long_sentences_wrap_with_indent() {
        let text = wrapped("  why ", &"word ".repeat(40), COLUMNS);
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.lines()
                .all(|line| line.len() <= 110 && line.starts_with("  ")),
            "{text}"
        );
    }
}
