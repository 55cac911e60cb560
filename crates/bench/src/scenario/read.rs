//! From the text of an experiment file to an [`Experiment`] in which every name resolves.

mod figure;
mod program;
mod variant;
mod work;

use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use self::program::programs;
use self::work::works;
use super::section::{Read, Section, Source, name};
use super::{Experiment, Quick};
use crate::limits::{ROUNDS_MAX, WINDOW_MAX};

const EXPERIMENT_KEYS: &[&str] = &[
    "name",
    "about",
    "rounds",
    "warm_up",
    "measure",
    "quick",
    "cpus_per_role",
    "profile",
    "program",
    "work",
];
const QUICK_KEYS: &[&str] = &["rounds", "warm_up", "measure"];

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
        profile: section.flag("profile")?.unwrap_or(false),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Bound, Role};

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
        assert!(!experiment.profile);
        let profiled = GOOD.replacen("rounds = 2", "rounds = 2\nprofile = true", 1);
        assert!(read(&profiled).is_ok_and(|experiment| experiment.profile));
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
        assert!(mistake("rounds = 2", "profile = 1").contains("expected true or false"));
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
