//! `[program.NAME]`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::limits::{IDLE_CONNECTIONS_MAX, SIZED_FILE_MAX};
use crate::scenario::section::{Mistake, Read, Section, check_named, plain, unknown};
use crate::scenario::{Launch, Program, Results};

const PROGRAM_KEYS: &[&str] = &[
    "onrush",
    "command",
    "idle",
    "package",
    "hint",
    "version",
    "files",
    "sized_files",
    "results",
];
pub(super) fn programs(section: &Section<'_>) -> Read<BTreeMap<String, Program>> {
    let mut programs = BTreeMap::new();
    let Some(table) = section.table("program")? else {
        return Ok(programs);
    };
    let outer = Section::open(
        section.source,
        table.value,
        table.span,
        &Section::names(table.value)
            .iter()
            .map(|name| name.value)
            .collect::<Vec<_>>(),
    )?;
    for name in Section::names(table.value) {
        check_named(section.source, "program", &name)?;
        let inner = outer
            .table(name.value)?
            .ok_or_else(|| outer.missing(name.value, "a table"))?;
        let section = Section::open(section.source, inner.value, name.span, PROGRAM_KEYS)?;
        programs.insert(name.value.to_owned(), program(name.value, &section)?);
    }
    Ok(programs)
}

fn program(name: &str, section: &Section<'_>) -> Read<Program> {
    let text = |key| Ok::<_, Mistake>(section.text(key)?.map(|text| text.value));
    let launch = launch(section)?;
    Ok(Program {
        name: name.into(),
        package: text("package")?,
        hint: text("hint")?,
        version: version(section, &launch)?,
        launch,
        files: file_names(section, section.texts_by_name("files")?)?,
        sized_files: file_names(
            section,
            section.sizes_by_name("sized_files", SIZED_FILE_MAX)?,
        )?,
        results: results(section)?,
    })
}

fn launch(section: &Section<'_>) -> Read<Launch> {
    let onrush = section.texts("onrush")?.map(plain);
    let command = section.texts("command")?.map(plain);
    let idle = section.count("idle", 1..u64::from(IDLE_CONNECTIONS_MAX) + 1)?;
    match (onrush, command, idle) {
        (Some(arguments), None, None) => Ok(Launch::Onrush(arguments)),
        (None, Some(command), None) if !command.is_empty() => Ok(Launch::Command(command)),
        (None, None, Some(connections)) => Ok(Launch::Idle(connections as u32)),
        _ => Err(section.source.mistake(
            section.span.clone(),
            "a program has exactly one of `onrush` (arguments of our binary), `command` (a command line) \
             and `idle` (a number of idle connections)",
        )),
    }
}

/// The command that prints a program's version; only for `command`, since the version of our binary is known.
fn version(section: &Section<'_>, launch: &Launch) -> Read<Option<Vec<String>>> {
    let Some(version) = section.texts("version")? else {
        return Ok(None);
    };
    let said = match launch {
        Launch::Command(_) if version.is_empty() => {
            "expected a command line, [\"wrk\", \"--version\"]"
        }
        Launch::Command(_) => return Ok(Some(plain(version))),
        Launch::Onrush(_) => "the version of this binary is known: remove `version`",
        Launch::Idle(_) => "idle connections are not a program: remove `version`",
    };
    let span = section.value("version").map_or(0..0, toml::Spanned::span);
    Err(section.source.mistake(span, said))
}

/// Checks that file names stay below the program's own directory.
fn file_names<T>(section: &Section<'_>, files: BTreeMap<String, T>) -> Read<BTreeMap<String, T>> {
    let escapes = |name: &str| {
        Path::new(name)
            .components()
            .any(|part| !matches!(part, std::path::Component::Normal(_)))
    };
    match files.keys().find(|name| name.is_empty() || escapes(name)) {
        None => Ok(files),
        Some(name) => Err(section.source.mistake(
            section.span.clone(),
            format!("file `{name}`: expected a path below the program's own directory"),
        )),
    }
}

fn results(section: &Section<'_>) -> Read<Results> {
    let Some(results) = section.text("results")? else {
        return Ok(Results::Onrush);
    };
    let name = results.value.as_str();
    Results::parse(name).ok_or_else(|| {
        let names = Results::ALL.map(Results::name);
        let sentence = unknown("kind of results", name, &names);
        section.source.mistake(results.span, sentence)
    })
}
