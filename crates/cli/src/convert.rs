//! `onrush convert`: translates a configuration of nginx or HAProxy into one of Onrush.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onrush_convert::{Conversion, Disk, Guards, haproxy, nginx};

use crate::terminal::{print_error, write_raw};

/// Something was left out, and responses differ.
const INCOMPLETE: u8 = 2;
/// The result is not a valid configuration of Onrush, which is a defect of the converter.
const DEFECT: u8 = 3;

/// Write the configuration to standard output, and a note about each directive to standard error.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush convert nginx /etc/nginx/nginx.conf > onrush.toml
  onrush convert haproxy /etc/haproxy/haproxy.cfg > onrush.toml
  onrush check onrush.toml

Exit codes: 0 every directive is converted, approximated or without effect on responses, 1 the file cannot be read or is not
a configuration of that program, 2 a directive is left out and responses differ, 3 the result is invalid (a bug of the
converter).")]
pub(crate) struct Args {
    #[command(subcommand)]
    language: Language,
    /// Leave out access rules that cannot be converted, so that every client passes [default: refuse every client with 403 or 501]
    #[arg(long, global = true)]
    open_guards: bool,
}

#[derive(clap::Subcommand)]
enum Language {
    /// Convert nginx.conf and the files that it includes
    Nginx {
        /// nginx.conf, or a file of servers such as those in sites-enabled
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Directory that relative names start from, as printed by nginx -V (--prefix) [default: parent of conf/, or the directory of FILE]
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
    },
    /// Convert a configuration of HAProxy
    Haproxy {
        /// haproxy.cfg
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Working directory of HAProxy, from which relative names start [default: the directory of FILE]
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Reads, converts and prints; returns the exit code.
pub(crate) fn run(args: &Args) -> ExitCode {
    let guards = match args.open_guards {
        true => Guards::Open,
        false => Guards::Closed,
    };
    let (file, converted) = match &args.language {
        Language::Nginx { file, prefix } => {
            let prefix = prefix
                .clone()
                .unwrap_or_else(|| nginx::default_prefix(file));
            (file, nginx::convert(&Disk, file, &absolute(prefix), guards))
        }
        Language::Haproxy { file, directory } => {
            let beside = || file.parent().unwrap_or(Path::new("")).to_owned();
            let directory = directory.clone().unwrap_or_else(beside);
            (
                file,
                haproxy::convert(&Disk, file, &absolute(directory), guards),
            )
        }
    };
    match converted {
        Ok(conversion) => print(file, &conversion),
        Err(unusable) => {
            print_error(format_args!("onrush convert: {unusable}"));
            ExitCode::from(1)
        }
    }
}

/// Makes the prefix absolute, because the result may be stored in any directory.
fn absolute(directory: PathBuf) -> PathBuf {
    let directory = match directory.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => directory,
    };
    std::path::absolute(&directory).unwrap_or(directory)
}

fn print(file: &Path, conversion: &Conversion) -> ExitCode {
    write_raw(conversion.text.as_bytes());
    for note in &conversion.notes {
        print_error(format_args!("{note}"));
    }
    let [carried, without_effect, approximated, left_out] = conversion.counts();
    print_error(format_args!(
        "{}: {carried} carried, {approximated} approximated, {without_effect} without effect, {left_out} left out",
        file.display()
    ));
    if let Err(defect) = conversion.verify() {
        print_error(format_args!(
            "onrush convert: bug: the converted configuration is invalid; please report it with these lines\n{defect}"
        ));
        return ExitCode::from(DEFECT);
    }
    match conversion.is_complete() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INCOMPLETE),
    }
}
