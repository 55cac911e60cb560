//! Short and long help: `-h` shows the common options and a few examples, `--help` everything.

use clap::{Arg, Command};

/// Examples in short help; `--help` has all of them.
const EXAMPLES_MAX: usize = 3;

/// Shortens `-h` of `command` and of all subcommands. `--help` keeps the complete text.
pub(crate) fn with_short_help(command: Command) -> Command {
    let verbs = "Options of a verb: onrush VERB --help";
    shortened_subcommands(command, "onrush").after_help(verbs)
}

fn shortened_subcommands(command: Command, name: &str) -> Command {
    command.mut_subcommands(|subcommand| {
        let name = format!("{name} {}", subcommand.get_name());
        shortened(shortened_subcommands(subcommand, &name), &name)
    })
}

fn shortened(command: Command, name: &str) -> Command {
    let complete = command.get_after_help().map(ToString::to_string);
    let is_shortened = command.get_arguments().any(Arg::is_hide_short_help_set);
    match complete {
        None if is_shortened => command.after_help(format!("All options: {}", long_help_of(name))),
        None => command,
        Some(complete) => command
            .after_help(short_text(&complete, name))
            .after_long_help(complete),
    }
}

/// The first examples of `complete`, and the command that prints the rest.
fn short_text(complete: &str, name: &str) -> String {
    let paragraph = complete.split("\n\n").next();
    let examples = paragraph.filter(|text| text.starts_with("Example"));
    let lines = examples.unwrap_or_default().lines();
    let mut text: String = lines
        .take(1 + EXAMPLES_MAX)
        .flat_map(|line| [line, "\n"])
        .collect();
    if !text.is_empty() {
        text.push('\n');
    }
    let more = match complete.contains("Exit codes") {
        true => "All options and exit codes",
        false => "All options",
    };
    format!("{text}{more}: {}", long_help_of(name))
}

fn long_help_of(name: &str) -> String {
    format!("{name} --help")
}

#[cfg(test)]
mod tests;
