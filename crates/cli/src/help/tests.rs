//! Tests of the help screens: their length, their order, and that the long one is complete.

use clap::{Command, CommandFactory};

use crate::Arguments;

/// Lines of `-h`: a terminal of usual height shows them at once.
const LINES_MAX: usize = 40;

/// All verbs and subverbs, built, at a fixed width of the terminal.
fn commands() -> Vec<Command> {
    let mut root = super::with_short_help(Arguments::command()).term_width(100);
    root.build();
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        let below: Vec<Command> = all[at]
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
            .cloned()
            .collect();
        all.extend(below);
        at += 1;
    }
    all
}

fn name(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    name.to_owned()
}

#[test]
fn short_help_fits_a_screen_and_names_long_help() {
    for mut command in commands() {
        let name = name(&command);
        let help = command.render_help().to_string();
        let lines = help.trim_end().lines().count();
        assert!(lines <= LINES_MAX, "{name}: {lines} lines\n{help}");
        let last = help.trim_end().lines().next_back();
        assert!(
            last.is_some_and(|line| line.contains("--help")),
            "{name}: {last:?}"
        );
    }
}

#[test]
fn long_help_lists_all_flags() {
    for mut command in commands() {
        let name = name(&command);
        let help = command.render_long_help().to_string();
        for argument in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            let shown = match (argument.get_long(), argument.get_short()) {
                (Some(long), _) => format!("--{long}"),
                (None, Some(short)) => format!("-{short}"),
                (None, None) => continue,
            };
            let is_listed = help
                .split(|letter: char| !(letter.is_ascii_alphanumeric() || "-_".contains(letter)))
                .any(|word| word == shown);
            assert!(is_listed, "{name}: {shown} is missing");
        }
    }
}

#[test]
fn load_lists_the_common_options_first() {
    let found = commands()
        .into_iter()
        .find(|command| name(command) == "onrush load");
    let mut load = found.expect("a verb");
    for help in [load.render_help(), load.render_long_help()] {
        let help = help.to_string();
        let arguments = help.find("Arguments:").expect("the URL");
        let listed: Vec<&str> = help[arguments..]
            .lines()
            .map(str::trim_start)
            .filter_map(|line| line.split([' ', ',']).next())
            .filter(|word| word.starts_with("[URL]") || word.starts_with('-'))
            .take(4)
            .collect();
        assert_eq!(listed, ["[URL]...", "-c", "-R", "-d"], "{help}");
    }
}
