//! From the text of an experiment file to an [`Experiment`] in which every name resolves.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use super::section::{At, Mistake, Section, Source, unknown};
use super::template::first_unknown;
use super::{
    Bound, Experiment, Figure, Launch, Metric, Program, Quick, Rate, Results, Role, Variant, Work,
};
use crate::limits::{
    IDLE_CONNECTIONS_MAX, NAME_MAX, ROUNDS_MAX, SIZED_FILE_MAX, VARIANTS_MAX, WINDOW_MAX, WORKS_MAX,
};

type Read<T> = Result<T, Mistake>;

const EXPERIMENT_KEYS: &[&str] = &[
    "name",
    "about",
    "rounds",
    "warm_up",
    "measure",
    "quick",
    "cpus_per_role",
    "program",
    "work",
];
const QUICK_KEYS: &[&str] = &["rounds", "warm_up", "measure"];
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
const WORK_KEYS: &[&str] = &[
    "name",
    "about",
    "under_test",
    "connections",
    "rate",
    "client",
    "proxy",
    "server",
    "control",
    "set",
    "variant",
    "figure",
];
const VARIANT_KEYS: &[&str] = &["name", "client", "proxy", "server", "control", "set"];
const FIGURE_KEYS: &[&str] = &["metric", "ours", "theirs", "above", "at_most", "at_least"];
const RATE_KEYS: &[&str] = &["share", "work", "variant"];

/// Values every program may use, and those some may.
const VALUES: &[&str] = &[
    "onrush",
    "bin_dir",
    "experiment_dir",
    "dir",
    "cpus",
    "threads",
    "connections",
    "duration",
    "seconds",
];

/// Reads an experiment; `directory` is where its file lies.
pub(super) fn experiment(file: &str, text: &str, directory: &Path) -> Read<Experiment> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        source.mistake(
            error.span().unwrap_or(0..0),
            error.message().trim_end().to_owned(),
        )
    })?;
    let section = Section::open(source, root.get_ref(), 0..0, EXPERIMENT_KEYS)?;
    let programs = programs(&section)?;
    let works = works(&section, &programs)?;
    let rounds = rounds(&section)?.unwrap_or(5);
    let warm_up = section
        .duration("warm_up", WINDOW_MAX)?
        .unwrap_or(Duration::from_secs(1));
    let measure = measure(&section)?.unwrap_or(Duration::from_secs(5));
    Ok(Experiment {
        name: name(&section, "a short name for the output directory")?.value,
        about: section
            .text("about")?
            .map(|about| about.value)
            .unwrap_or_default(),
        quick: quick(&section)?,
        cpus_per_role: section
            .count("cpus_per_role", 1..4097)?
            .map(|count| count as usize),
        rounds,
        warm_up,
        measure,
        programs,
        works,
        directory: directory.into(),
        source: text.into(),
    })
}

fn rounds(section: &Section<'_>) -> Read<Option<u32>> {
    let rounds = section.count("rounds", 1..u64::from(ROUNDS_MAX) + 1)?;
    Ok(rounds.map(|rounds| rounds as u32))
}

/// wrk and others only take whole seconds, so a window is at least one.
fn measure(section: &Section<'_>) -> Read<Option<Duration>> {
    let Some(measure) = section.duration("measure", WINDOW_MAX)? else {
        return Ok(None);
    };
    if measure >= Duration::from_secs(1) {
        return Ok(Some(measure));
    }
    let span = section.value("measure").map_or(0..0, toml::Spanned::span);
    Err(section
        .source
        .mistake(span, "a measured window lasts at least \"1s\""))
}

fn quick(section: &Section<'_>) -> Read<Quick> {
    let mut quick = Quick {
        rounds: 1,
        warm_up: Duration::from_millis(500),
        measure: Duration::from_secs(1),
    };
    let Some(table) = section.table("quick")? else {
        return Ok(quick);
    };
    let section = Section::open(section.source, table.value, table.span, QUICK_KEYS)?;
    quick.rounds = rounds(&section)?.unwrap_or(quick.rounds);
    quick.warm_up = section
        .duration("warm_up", WINDOW_MAX)?
        .unwrap_or(quick.warm_up);
    quick.measure = measure(&section)?.unwrap_or(quick.measure);
    Ok(quick)
}

/// A name that can be part of a file name.
fn name(section: &Section<'_>, what: &str) -> Read<At<String>> {
    let name = section
        .text("name")?
        .ok_or_else(|| section.missing("name", what))?;
    let is_odd = |letter: char| letter == '/' || letter.is_control();
    let length = name.value.chars().count();
    if name.value.trim().is_empty() || name.value.contains(is_odd) || length > NAME_MAX {
        return Err(section.source.mistake(
            name.span,
            format!(
                "a name is not empty, has no `/`, line break or other control character, and {NAME_MAX} characters at most"
            ),
        ));
    }
    Ok(name)
}

// Programs.

fn programs(section: &Section<'_>) -> Read<BTreeMap<String, Program>> {
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
    Ok(Program {
        name: name.into(),
        launch: launch(section)?,
        package: text("package")?,
        hint: text("hint")?,
        version: section.texts("version")?.map(plain),
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

fn plain(texts: Vec<At<String>>) -> Vec<String> {
    texts.into_iter().map(|text| text.value).collect()
}

/// Files are written into a directory of their own and nowhere else.
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
    match results.value.as_str() {
        "onrush" => Ok(Results::Onrush),
        "wrk" => Ok(Results::Wrk),
        "oha" => Ok(Results::Oha),
        other => Err(section.source.mistake(
            results.span,
            unknown("kind of results", other, &["onrush", "wrk", "oha"]),
        )),
    }
}

// Works.

fn works(section: &Section<'_>, programs: &BTreeMap<String, Program>) -> Read<Vec<Work>> {
    let tables = section.tables("work")?;
    if tables.is_empty() || tables.len() > WORKS_MAX {
        return Err(section.source.mistake(
            0..0,
            format!("an experiment has 1 to {WORKS_MAX} works, written as [[work]]"),
        ));
    }
    let mut works: Vec<Work> = Vec::new();
    for table in tables {
        let section = Section::open(section.source, table.value, table.span, WORK_KEYS)?;
        let work = work(&section, programs, &works)?;
        works.push(work);
    }
    Ok(works)
}

fn work(
    section: &Section<'_>,
    programs: &BTreeMap<String, Program>,
    before: &[Work],
) -> Read<Work> {
    let name = name(section, "what is measured")?;
    if before.iter().any(|work| work.name == name.value) {
        return Err(section
            .source
            .mistake(name.span, "another work has this name"));
    }
    let rate = rate(section, before)?;
    let variants = variants(section, programs, rate.is_some())?;
    let figures = figures(section, &variants)?;
    Ok(Work {
        name: name.value,
        about: section
            .text("about")?
            .map(|about| about.value)
            .unwrap_or_default(),
        under_test: under_test(section, &variants)?,
        connections: section.count("connections", 1..100_001)?.unwrap_or(100) as u32,
        rate,
        variants,
        figures,
    })
}

fn under_test(section: &Section<'_>, variants: &[Variant]) -> Read<Option<Role>> {
    let Some(text) = section.text("under_test")? else {
        return Ok(None);
    };
    let names: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
    let role = Role::ALL
        .into_iter()
        .find(|role| role.name() == text.value)
        .ok_or_else(|| {
            section
                .source
                .mistake(text.span.clone(), unknown("role", &text.value, &names))
        })?;
    let taken = variants
        .iter()
        .all(|variant| variant.roles.contains_key(&role));
    if taken {
        return Ok(Some(role));
    }
    Err(section.source.mistake(
        text.span,
        format!("not every variant here has a {}", role.name()),
    ))
}

fn rate(section: &Section<'_>, before: &[Work]) -> Read<Option<Rate>> {
    let Some(value) = section.value("rate") else {
        return Ok(None);
    };
    if value.get_ref().as_table().is_none() {
        let number = section.number("rate")?;
        return match number {
            Some(number) if number.value >= 1.0 => Ok(Some(Rate::Fixed(number.value))),
            _ => Err(section.source.mistake(
                value.span(),
                "expected requests per second, 1 or more, or { share = 0.6, work = \"…\", variant = \"…\" }",
            )),
        };
    }
    let table = section
        .table("rate")?
        .ok_or_else(|| section.missing("rate", "a table"))?;
    let section = Section::open(section.source, table.value, table.span, RATE_KEYS)?;
    let share = section
        .number("share")?
        .ok_or_else(|| section.missing("share", "a number from 0 to 1"))?;
    if !(share.value > 0.0 && share.value <= 1.0) {
        return Err(section
            .source
            .mistake(share.span, "expected a share above 0 and at most 1"));
    }
    let work = section
        .text("work")?
        .ok_or_else(|| section.missing("work", "the work whose rate is meant"))?;
    let variant = section
        .text("variant")?
        .ok_or_else(|| section.missing("variant", "the variant whose rate is meant"))?;
    let names: Vec<_> = before.iter().map(|work| work.name.as_str()).collect();
    let Some(earlier) = before.iter().find(|earlier| earlier.name == work.value) else {
        return Err(section
            .source
            .mistake(work.span, unknown("earlier work", &work.value, &names)));
    };
    variant_exists(section.source, &variant, &earlier.variants)?;
    Ok(Some(Rate::Share {
        share: share.value,
        work: work.value,
        variant: variant.value,
    }))
}

fn variant_exists(source: Source<'_>, name: &At<String>, variants: &[Variant]) -> Read<()> {
    if variants.iter().any(|variant| variant.name == name.value) {
        return Ok(());
    }
    let names: Vec<_> = variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    Err(source.mistake(name.span.clone(), unknown("variant", &name.value, &names)))
}

// Variants.

fn variants(
    work: &Section<'_>,
    programs: &BTreeMap<String, Program>,
    paced: bool,
) -> Read<Vec<Variant>> {
    let tables = work.tables("variant")?;
    if tables.is_empty() || tables.len() > VARIANTS_MAX {
        return Err(work.source.mistake(
            work.span.clone(),
            format!("a work has 1 to {VARIANTS_MAX} variants, written as [[work.variant]]"),
        ));
    }
    let mut variants: Vec<Variant> = Vec::new();
    for table in tables {
        let section = Section::open(work.source, table.value, table.span, VARIANT_KEYS)?;
        let name = name(&section, "who does it")?;
        if variants.iter().any(|variant| variant.name == name.value) {
            return Err(section
                .source
                .mistake(name.span, "another variant of this work has this name"));
        }
        let mut set = work.texts_by_name("set")?;
        set.extend(section.texts_by_name("set")?);
        let variant = Variant {
            name: name.value,
            roles: roles(work, &section, programs)?,
            set,
        };
        check_templates(&section, &variant, programs, paced)?;
        variants.push(variant);
    }
    Ok(variants)
}

/// A role named by the variant, else by its work.
fn roles(
    work: &Section<'_>,
    variant: &Section<'_>,
    programs: &BTreeMap<String, Program>,
) -> Read<BTreeMap<Role, String>> {
    let mut roles = BTreeMap::new();
    for role in Role::ALL {
        let given = match variant.text(role.name())? {
            Some(name) => Some(name),
            None => work.text(role.name())?,
        };
        // An empty name takes back what the work says: a variant without a proxy or a control client.
        let Some(name) = given.filter(|name| !name.value.is_empty()) else {
            continue;
        };
        let Some(program) = programs.get(&name.value) else {
            let names: Vec<_> = programs.keys().map(String::as_str).collect();
            return Err(work
                .source
                .mistake(name.span, unknown("program", &name.value, &names)));
        };
        if matches!(program.launch, Launch::Idle(_)) && role != Role::Client {
            return Err(work.source.mistake(
                name.span,
                "idle connections can only take the role `client`",
            ));
        }
        roles.insert(role, name.value);
    }
    for role in [Role::Client, Role::Server] {
        if !roles.contains_key(&role) {
            return Err(variant.missing(role.name(), "every variant needs a client and a server"));
        }
    }
    Ok(roles)
}

/// Every `{name}` of every program of a variant must have a value.
fn check_templates(
    section: &Section<'_>,
    variant: &Variant,
    programs: &BTreeMap<String, Program>,
    paced: bool,
) -> Read<()> {
    for (role, name) in &variant.roles {
        let known = value_names(*role, variant, paced);
        let program = &programs[name];
        let arguments = match &program.launch {
            Launch::Onrush(arguments) | Launch::Command(arguments) => arguments.as_slice(),
            Launch::Idle(_) => &[],
        };
        for template in arguments.iter().chain(program.files.values()) {
            let Some(stranger) =
                first_unknown(template, |name| known.iter().any(|known| known == name))
            else {
                continue;
            };
            let names: Vec<_> = known.iter().map(String::as_str).collect();
            return Err(section.source.mistake(
                place_of(section.source.text, stranger).unwrap_or(section.span.clone()),
                format!(
                    "program `{name}` as {} of variant `{}`: {}",
                    role.name(),
                    variant.name,
                    unknown("value", &format!("{{{stranger}}}"), &names)
                ),
            ));
        }
    }
    Ok(())
}

fn place_of(text: &str, name: &str) -> Option<Range<usize>> {
    let start = text.find(&format!("{{{name}}}"))?;
    Some(start..start + name.len() + 2)
}

/// The names a program in this role may use. The run fills exactly these.
fn value_names(role: Role, variant: &Variant, paced: bool) -> Vec<String> {
    let mut names: Vec<String> = VALUES.iter().map(|name| (*name).to_owned()).collect();
    match role {
        Role::Server => names.push("port".into()),
        Role::Proxy => names.extend(["port", "target"].map(String::from)),
        Role::Client | Role::Control => names.extend(["json", "target"].map(String::from)),
    }
    if paced {
        names.push("rate".into());
    }
    for listener in [Role::Proxy, Role::Server] {
        if variant.roles.contains_key(&listener) {
            names.push(format!("{}.port", listener.name()));
        }
    }
    names.extend(variant.set.keys().cloned());
    names
}

// Figures.

fn figures(work: &Section<'_>, variants: &[Variant]) -> Read<Vec<Figure>> {
    work.tables("figure")?
        .into_iter()
        .map(|table| figure(work.source, table, variants))
        .collect()
}

fn figure(source: Source<'_>, table: At<&DeTable<'_>>, variants: &[Variant]) -> Read<Figure> {
    let section = Section::open(source, table.value, table.span.clone(), FIGURE_KEYS)?;
    let ours = section
        .texts("ours")?
        .filter(|ours| !ours.is_empty())
        .ok_or_else(|| section.missing("ours", "the variants that are judged"))?;
    for name in &ours {
        variant_exists(source, name, variants)?;
    }
    let theirs = section.text("theirs")?;
    if let Some(name) = &theirs {
        variant_exists(source, name, variants)?;
    }
    let above = section.texts_by_name("above")?;
    for name in above.iter().flat_map(|(name, base)| [name, base]) {
        if !variants.iter().any(|variant| variant.name == *name) {
            let names: Vec<_> = variants.iter().map(|variant| &*variant.name).collect();
            let span = section
                .table("above")?
                .map_or(table.span, |table| table.span);
            return Err(source.mistake(span, unknown("variant", name, &names)));
        }
    }
    Ok(Figure {
        metric: metric(&section)?,
        above,
        ours: plain(ours),
        theirs: theirs.map(|name| name.value),
        bound: bound(&section)?,
    })
}

fn metric(section: &Section<'_>) -> Read<Metric> {
    let text = section
        .text("metric")?
        .ok_or_else(|| section.missing("metric", "what is compared, such as \"rps\""))?;
    Metric::parse(&text.value).ok_or_else(|| {
        let names = [
            "rps",
            "client.cpu_us_per_request",
            "proxy.cpu_us_per_request",
            "server.cpu_us_per_request",
            "server.memory_per_connection",
            "proxy.memory_per_connection",
            "latency.mean",
            "latency.p50",
            "latency.p99",
        ];
        section
            .source
            .mistake(text.span, unknown("metric", &text.value, &names))
    })
}

fn bound(section: &Section<'_>) -> Read<Option<Bound>> {
    let at_most = section.number("at_most")?;
    let at_least = section.number("at_least")?;
    match (at_most, at_least) {
        (Some(limit), None) => Ok(Some(Bound::AtMost(limit.value))),
        (None, Some(limit)) => Ok(Some(Bound::AtLeast(limit.value))),
        (None, None) => Ok(None),
        (Some(_), Some(limit)) => Err(section.source.mistake(
            limit.span,
            "a figure has one target: `at_most` or `at_least`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "small"
rounds = 2
measure = "2s"

[program.ours]
onrush = ["serve", "--listen", "127.0.0.1:{port}", "--io", "{io}"]

[program.nginx]
command = ["nginx", "-c", "{dir}/nginx.conf"]
files = { "nginx.conf" = "listen {port};" }

[program.load]
onrush = ["load", "http://{target}/", "-c", "{connections}", "--json", "{json}"]

[[work]]
name = "fixed"
client = "load"
connections = 100

[[work.variant]]
name = "epoll"
server = "ours"
set = { io = "epoll" }

[[work.variant]]
name = "nginx"
server = "nginx"

[[work.figure]]
metric = "server.cpu_us_per_request"
ours = ["epoll"]
theirs = "nginx"
at_most = 0.85
"#;

    fn read(text: &str) -> Read<Experiment> {
        experiment("test.toml", text, Path::new("/lab"))
    }

    /// Replaces one piece of the good file and returns the message about it.
    fn mistake(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        match read(&GOOD.replacen(from, to, 1)) {
            Ok(_) => panic!("{to} was accepted"),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn good_file_becomes_an_experiment() {
        let experiment = read(GOOD).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!(experiment.trial_count(), 4);
        let work = &experiment.works[0];
        assert_eq!(work.under_test(&work.variants[0]), Role::Server);
        assert_eq!(work.variants[0].set["io"], "epoll");
        assert_eq!(work.variants[1].roles[&Role::Client], "load");
        assert_eq!(work.figures[0].bound, Some(Bound::AtMost(0.85)));
    }

    #[test]
    fn built_in_chain_is_a_good_file() {
        let chain = super::super::built_in();
        assert_eq!(chain.name, "chain");
        assert!(chain.works.iter().all(|work| {
            work.variants
                .iter()
                .all(|variant| variant.roles.contains_key(&Role::Control))
        }));
    }

    #[test]
    fn names_are_short_and_have_no_control_characters() {
        let long = format!("client = \"{}\"", "x".repeat(100_000));
        let message = mistake("client = \"load\"", &long);
        assert!(message.chars().count() < 1000, "{message}");
        let message = mistake("rounds = 2", "\"\\u001b[31m\" = 2");
        assert!(message.contains("unknown key ` [31m`"), "{message}");
    }

    #[test]
    fn unknown_key_is_named_with_its_place_and_the_nearest_one() {
        let message = mistake("rounds = 2", "round = 2");
        assert_eq!(
            message,
            "test.toml:3:1: unknown key `round`; did you mean `rounds`?"
        );
        assert!(
            mistake("client = \"load\"", "clinet = \"load\"")
                .contains(":18:1: unknown key `clinet`")
        );
        assert!(mistake("metric = ", "metrics = ").contains("did you mean `metric`?"));
    }

    #[test]
    fn unknown_names_are_mistakes() {
        assert!(
            mistake("server = \"nginx\"", "server = \"ngin\"").contains("did you mean `nginx`?")
        );
        assert!(
            mistake("ours = [\"epoll\"]", "ours = [\"epol\"]").contains("unknown variant `epol`")
        );
        assert!(
            mistake("theirs = \"nginx\"", "theirs = \"apache\"")
                .contains("unknown variant `apache`")
        );
        assert!(mistake("listen {port};", "listen {prot};").contains("unknown value `{prot}`"));
        assert!(mistake("set = { io = \"epoll\" }", "").contains("unknown value `{io}`"));
        assert!(
            mistake("\"server.cpu_us_per_request\"", "\"server.cpu\"").contains("unknown metric")
        );
    }

    #[test]
    fn wrong_values_say_what_was_expected() {
        assert!(mistake("\"2s\"", "2").contains("expected a duration"));
        assert!(mistake("\"2s\"", "\"100ms\"").contains("at least \"1s\""));
        assert!(mistake("rounds = 2", "rounds = 0").contains("a whole number from 1"));
        assert!(mistake("at_most = 0.85", "at_most = 0.85\nat_least = 1").contains("one target"));
        assert!(
            mistake(
                "connections = 100",
                "rate = { share = 0.5, work = \"fixed\", variant = \"nginx\" }"
            )
            .contains("unknown earlier work")
        );
        assert!(
            mistake("connections = 100", "under_test = \"proxy\"")
                .contains("not every variant here has a proxy")
        );
        assert!(
            mistake("\"nginx.conf\" = ", "\"../nginx.conf\" = ")
                .contains("below the program's own directory")
        );
        assert!(
            mistake("command = [\"nginx\"", "idle = 5\ncommand = [\"nginx\"")
                .contains("exactly one of")
        );
        assert!(mistake("name = \"small\"", "").contains("`name` is missing"));
        assert!(mistake("rounds = 2", "rounds = = 2").contains("test.toml:3:"));
    }

    #[test]
    fn every_shipped_experiment_is_a_good_file() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        for entry in std::fs::read_dir(directory).expect("the repository has experiments/") {
            let path = entry.expect("a readable directory").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                super::super::read(&path).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}
