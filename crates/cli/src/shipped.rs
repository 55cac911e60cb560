//! Shell completions and manual pages, generated from the flags.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::terminal::{print_error, write_raw};

/// Print completions for a shell to standard output.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush completions bash > /etc/bash_completion.d/onrush
  onrush completions zsh > ~/.zfunc/_onrush")]
pub(crate) struct Completions {
    /// Shell to print completions for
    shell: Shell,
}

/// Manual pages, a file for each verb.
#[derive(clap::Args)]
pub(crate) struct Manual {
    /// Where they are written
    directory: PathBuf,
}

pub(crate) fn completions(args: &Completions, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "onrush", &mut text);
    write_raw(&text);
    ExitCode::SUCCESS
}

pub(crate) fn manual(args: &Manual, command: Command) -> ExitCode {
    match pages(args, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(format_args!("onrush manual: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn pages(args: &Manual, mut command: Command) -> anyhow::Result<()> {
    command.build();
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    let verbs: Vec<Command> = command.get_subcommands().filter(shown).cloned().collect();
    let verbs = verbs.into_iter().map(|verb| {
        let name = format!("onrush-{}", verb.get_name());
        (name, verb)
    });
    for (name, command) in verbs.chain([("onrush".to_owned(), command.clone())]) {
        let path = args.directory.join(format!("{name}.1"));
        let write = || -> io::Result<()> {
            let mut page = Vec::new();
            Man::new(command.display_name(name.clone()).name(name.clone())).render(&mut page)?;
            std::fs::write(&path, page)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
