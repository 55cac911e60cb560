//! Report of a client on other machines. The reports of several machines are merged by the program that wrote them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::agent_protocol::Request;
use super::super::failure::{Try, failed};
use super::super::subject::Context;
use super::program::RemoteProgram;
use crate::limits::OUTPUT_BYTES_MAX;

/// Report file and output of a client.
pub(in crate::run) struct Texts {
    pub(in crate::run) written: Option<String>,
    pub(in crate::run) printed: String,
}

/// Fetches both.
pub(in crate::run) fn texts(context: &Context<'_>, client: &RemoteProgram) -> Try<Texts> {
    let role = client.role;
    let written = client.texts(&Request::Report { role })?;
    let printed = client.texts(&Request::Output { role })?;
    let printed = printed.into_iter().flatten().collect();
    let written = match <[_; 1]>::try_from(written) {
        Ok([one]) => one,
        Err(parts) => Some(merged(context, parts)?),
    };
    Ok(Texts { written, printed })
}

/// Merges several reports: histograms are added, and percentiles taken from the sum.
fn merged(context: &Context<'_>, parts: Vec<Option<String>>) -> Try<String> {
    let directory = context.root.join("parts");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory)?;
    let mut files: Vec<PathBuf> = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let number = index + 1;
        let Some(text) = part else {
            return failed(format!("part {number} of the client wrote no report"));
        };
        let file = directory.join(format!("{number}.json"));
        fs::write(&file, text)?;
        files.push(file);
    }
    let sum = directory.join("sum.json");
    let mut command = Command::new(context.onrush);
    command.args(["load", "merge"]).args(&files);
    let outcome = command
        .arg("--json")
        .arg(&sum)
        .stdin(Stdio::null())
        .output()?;
    // The merged report contains its own warnings; fail only if there is none.
    if !sum.exists() {
        let why = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let why = why
            .lines()
            .next()
            .unwrap_or("it printed no reason")
            .to_owned();
        return failed(format!("the parts of the client cannot be merged: {why}"));
    }
    onrush_file::read_text(&sum, OUTPUT_BYTES_MAX).or_else(|error| failed(error.to_string()))
}
