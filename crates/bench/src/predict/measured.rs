//! Costs and rates by work and variant from the result directory of a run: `raw.csv` and `environment.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::Error;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::scenario::{self, Experiment, Role, Variant, Work};
use onrush_machine::cpus::CpuSet;

/// Values with these names describe how much of the machine a work uses, not what it is.
const CAPACITY_VALUES: [&str; 6] = [
    "cores",
    "count",
    "cpus",
    "cpus_per_role",
    "threads",
    "connections",
];

/// Medians of one variant of a work at full speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name of the work with its point.
    pub work: String,
    /// Name of the variant.
    pub variant: String,
    /// Rows of the same series differ only in connections and CPUs.
    pub series: String,
    /// Concurrent connections.
    pub connections: u32,
    /// Role whose cost was measured.
    pub under_test: Role,
    /// Roles of the variant.
    pub roles: BTreeMap<Role, RoleMeasured>,
    /// Requests per second.
    pub rps: f64,
    /// Whether other programs disturbed the rounds.
    pub quiet: Disturbance,
}

/// Resource use of one role.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleMeasured {
    /// CPUs available to it.
    pub cpus: CpuSet,
    /// CPU time per request, user and system, in microseconds.
    pub us: f64,
}

/// Whether other programs disturbed the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Only undisturbed rounds are used.
    Undisturbed,
    /// All rounds were disturbed, so the rate is that of the remaining capacity.
    Disturbed,
}

#[derive(Deserialize)]
struct Line {
    work: String,
    variant: String,
    valid: bool,
    disturbed: bool,
    metric: String,
    value: f64,
    /// Point of a sweep; older runs lack the column.
    #[serde(default)]
    point: String,
}

#[derive(Deserialize)]
struct Environment {
    commands: BTreeMap<String, Vec<String>>,
    experiment: String,
}

#[derive(Default)]
struct Values {
    undisturbed: Vec<f64>,
    valid: Vec<f64>,
}

type Lines = BTreeMap<(String, String, String), Values>;

/// Reads a result directory. Leaves out works with a set rate or without a client, which do not show the maximum rate.
pub fn read(directory: &Path) -> Result<Vec<Measured>, Error> {
    let path = directory.join("environment.json");
    let text = text_of(&path)?;
    let environment: Environment = serde_json::from_str(&text).map_err(|error| {
        Error::Input(
            path.clone(),
            format!("{error}; expected what `onrush bench` writes"),
        )
    })?;
    let raw_path = directory.join("raw.csv");
    let raw = text_of(&raw_path)?;
    let run = RunTexts {
        raw: (&raw_path, &raw),
        experiment: (&path, &environment.experiment),
        commands: &environment.commands,
    };
    let measured = run.measured()?;
    if measured.is_empty() {
        let message = "no variant has a valid round at full speed: expected at least one";
        return Err(Error::Input(raw_path, message.to_owned()));
    }
    Ok(measured)
}

/// Texts of a result, with paths for error messages.
pub struct RunTexts<'a> {
    /// Path and text of `raw.csv`.
    pub raw: (&'a Path, &'a str),
    /// Path and text of the experiment.
    pub experiment: (&'a Path, &'a str),
    /// Command line of each role, by `work / variant / role`.
    pub commands: &'a BTreeMap<String, Vec<String>>,
}

impl RunTexts<'_> {
    /// Parses the texts as [`read`] does; empty if no variant has a valid round at full speed.
    ///
    /// # Errors
    /// If a text was not written by `onrush bench`.
    pub fn measured(&self) -> Result<Vec<Measured>, Error> {
        let (path, experiment) = self.experiment;
        let experiment = scenario::parse(&path.display().to_string(), experiment)?;
        let lines = lines(self.raw.0, self.raw.1)?;
        rows(&experiment, &lines, self.commands)
            .map_err(|message| Error::Input(path.into(), message))
    }
}

fn text_of(path: &Path) -> Result<String, Error> {
    onrush_file::read_text(path, OUTPUT_BYTES_MAX).map_err(|error| Error::Read(path.into(), error))
}

fn lines(path: &Path, text: &str) -> Result<Lines, Error> {
    let mut lines = Lines::new();
    for line in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let line: Line = line.map_err(|error| {
            Error::Input(
                path.into(),
                format!("{error}; expected what `onrush bench` writes"),
            )
        })?;
        if !line.valid || !line.value.is_finite() {
            continue;
        }
        let work = match line.point.is_empty() {
            true => line.work,
            false => format!("{} · {}", line.work, line.point),
        };
        let values = lines.entry((work, line.variant, line.metric)).or_default();
        values.valid.push(line.value);
        if !line.disturbed {
            values.undisturbed.push(line.value);
        }
    }
    Ok(lines)
}

fn rows(
    experiment: &Experiment,
    lines: &Lines,
    commands: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<Measured>, String> {
    let mut rows = Vec::new();
    for work in experiment.works.iter().filter(|work| work.rate.is_none()) {
        for variant in &work.variants {
            rows.extend(row(work, variant, lines, commands)?);
        }
    }
    Ok(rows)
}

fn row(
    work: &Work,
    variant: &Variant,
    lines: &Lines,
    commands: &BTreeMap<String, Vec<String>>,
) -> Result<Option<Measured>, String> {
    let values = |metric: &str| lines.get(&(work.title(), variant.name.clone(), metric.to_owned()));
    let Some((rps, quiet)) = values("rps").and_then(median) else {
        return Ok(None);
    };
    let mut roles = BTreeMap::new();
    for role in variant
        .roles
        .keys()
        .copied()
        .filter(|role| *role != Role::Control)
    {
        let metric = format!("{}.cpu_us_per_request", role.name());
        let Some((us, _)) = values(&metric).and_then(median) else {
            return Ok(None);
        };
        let name = format!("{} / {} / {}", work.title(), variant.name, role.name());
        let cpus = commands.get(&name).and_then(|words| cpus_of(words));
        let cpus = cpus.ok_or_else(|| {
            format!(
                "the command `{name}` names no CPUs: expected a command line with `taskset -c LIST`"
            )
        })?;
        roles.insert(role, RoleMeasured { cpus, us });
    }
    Ok((rps > 0.0).then(|| Measured {
        work: work.title(),
        variant: variant.name.clone(),
        series: series(variant),
        connections: work.connections,
        under_test: work.under_test(variant),
        roles,
        rps,
        quiet,
    }))
}

/// Median of the undisturbed rounds, or of all valid ones if there are none.
fn median(values: &Values) -> Option<(f64, Disturbance)> {
    let (values, quiet) = match values.undisturbed.is_empty() {
        false => (&values.undisturbed, Disturbance::Undisturbed),
        true => (&values.valid, Disturbance::Disturbed),
    };
    let rounds = onrush_measure::compare::Rounds::of(values)?;
    Some((rounds.median, quiet))
}

/// CPUs of the last `taskset -c`: a shell that starts the program may be pinned otherwise.
fn cpus_of(words: &[String]) -> Option<CpuSet> {
    let line = words.join(" ");
    let (_, behind) = line.rsplit_once("taskset -c ")?;
    let cpus = CpuSet::parse_list(behind.split_whitespace().next()?)?;
    (!cpus.is_empty()).then_some(cpus)
}

fn series(variant: &Variant) -> String {
    let programs = variant
        .roles
        .iter()
        .map(|(role, program)| format!("{}={program}", role.name()));
    let set = variant
        .set
        .iter()
        .filter(|(name, _)| !CAPACITY_VALUES.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"));
    let parts: BTreeSet<String> = programs.chain(set).collect();
    let parts: Vec<String> = parts.into_iter().collect();
    format!("{}: {}", variant.name, parts.join(" "))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const EXPERIMENT: &str = r#"
name = "x"
[program.load]
onrush = ["load", "http://{target}/", "-c", "{connections}"]
[program.serve]
onrush = ["serve", "--listen", "127.0.0.1:{port}"]
[[work]]
name = "one, \"quoted\""
connections = 30
client = "load"
server = "serve"
[[work.variant]]
name = "v"
[[work]]
name = "paced"
rate = 1000
client = "load"
server = "serve"
[[work.variant]]
name = "v"
"#;

    fn run(raw: &str, command: &str) -> Result<Vec<Measured>, Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let name = |role| format!("one, \"quoted\" / v / {role}");
        let words: Vec<&str> = command.split(' ').collect();
        let environment = serde_json::json!({
            "commands": { name("client"): words, name("server"): words },
            "experiment": EXPERIMENT,
        });
        fs::write(
            directory.path().join("environment.json"),
            environment.to_string(),
        )
        .expect("ours");
        fs::write(directory.path().join("raw.csv"), raw).expect("ours");
        read(directory.path())
    }

    fn raw(lines: &[&str]) -> String {
        let head = "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value\n";
        let line = |line: &&str| {
            let (flags, rest) = line.split_once(' ').expect("flags and a metric");
            format!("1,0.5,\"one, \"\"quoted\"\"\",v,true,{flags},false,{rest}\n")
        };
        head.to_owned() + &lines.iter().map(line).collect::<String>()
    }

    #[test]
    fn medians_use_valid_rounds_only() {
        let lines = raw(&[
            "true,false rps,100",
            "true,false rps,300",
            "true,true rps,900",
            "false,false rps,5",
            "true,false client.cpu_us_per_request,2",
            "true,false server.cpu_us_per_request,4",
        ]);
        let rows = run(&lines, "taskset -c 0 sh -c exec taskset -c 0,1 onrush").expect("a run");
        let row = &rows[0];
        assert_eq!(rows.len(), 1, "the paced work says nothing");
        assert_eq!(
            (row.rps, row.connections, row.quiet),
            (200.0, 30, Disturbance::Undisturbed)
        );
        assert_eq!(row.under_test, Role::Server);
        assert_eq!(row.roles[&Role::Server].us, 4.0);
        assert_eq!(row.roles[&Role::Client].cpus.to_string(), "0-1");
    }

    #[test]
    fn sweep_points_form_one_series() {
        let directory = tempfile::tempdir().expect("a directory");
        let experiment =
            EXPERIMENT.replace("connections = 30", "sweep = { connections = [10, 100] }");
        let mut commands = BTreeMap::new();
        let mut lines = "round,work,variant,valid,disturbed,metric,value,point\n".to_owned();
        for connections in ["10", "100"] {
            for (metric, value) in [
                ("rps", connections),
                ("client.cpu_us_per_request", "2"),
                ("server.cpu_us_per_request", "4"),
            ] {
                lines.push_str(&format!(
                    "1,\"one, \"\"quoted\"\"\",v,true,false,{metric},{value},connections={connections}\n"
                ));
            }
            for role in ["client", "server"] {
                let name = format!("one, \"quoted\" · connections={connections} / v / {role}");
                commands.insert(name, ["taskset", "-c", "0", "onrush"]);
            }
        }
        let environment = serde_json::json!({ "commands": commands, "experiment": experiment });
        fs::write(
            directory.path().join("environment.json"),
            environment.to_string(),
        )
        .expect("ours");
        fs::write(directory.path().join("raw.csv"), lines).expect("ours");
        let rows = read(directory.path()).expect("a run");
        let found: Vec<(u32, f64)> = rows.iter().map(|row| (row.connections, row.rps)).collect();
        assert_eq!(found, [(10, 10.0), (100, 100.0)]);
        assert_eq!(rows[0].series, rows[1].series);
    }

    #[test]
    fn invalid_result_error_has_path() {
        let good = raw(&[
            "true,false rps,100",
            "true,false client.cpu_us_per_request,2",
            "true,false server.cpu_us_per_request,4",
        ]);
        for (lines, command, said) in [
            (good.clone(), "onrush", "names no CPUs"),
            (
                raw(&["false,false rps,100"]),
                "taskset -c 0 x",
                "no variant has a valid round",
            ),
            (
                "round,at_s\n1,2\n".to_owned(),
                "taskset -c 0 x",
                "missing field",
            ),
            (
                good.replace("100", "many"),
                "taskset -c 0 x",
                "invalid float",
            ),
        ] {
            let error = run(&lines, command).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
        let nowhere = read(Path::new("/nowhere"))
            .expect_err("nothing is there")
            .to_string();
        assert!(nowhere.contains("environment.json"), "{nowhere}");
    }
}
