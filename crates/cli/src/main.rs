//! The binary `onrush`: flags -> a command -> exit code. Nothing else.
#![forbid(unsafe_code)]

mod load;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "onrush", version, about = "HTTP at hardware rate")]
enum Command {
    Load(load::Args),
}

fn main() -> ExitCode {
    match Command::try_parse() {
        Ok(Command::Load(args)) => load::run(args),
        Err(error) => {
            let _ = error.print();
            ExitCode::from(u8::from(error.use_stderr()))
        }
    }
}
