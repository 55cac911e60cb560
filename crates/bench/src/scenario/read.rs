//! Parses the text of an experiment file into an [`Experiment`] in which every name resolves.

mod ends;
mod figure;
mod given;
mod namespace;
mod network;
mod program;
mod remote;
mod scale;
mod set;
mod sweep;
mod variant;
mod work;

use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use self::ends::{ends, measure, rounds};
use self::given::{WorkContext, collect};
use self::network::Networks;
use self::program::programs;
use self::scale::Scale;
use self::set::check_set;
use self::work::works;
use super::section::{Read, Section, Source, name, unknown};
use super::{Experiment, Order, Quick};
use crate::limits::{ROUNDS_MAX, WINDOW_MAX};

const EXPERIMENT_KEYS: &[&str] = &[
    "name",
    "about",
    "rounds",
    "budget",
    "precision",
    "order",
    "collect",
    "warm_up",
    "measure",
    "quick",
    "cpus_per_role",
    "scale",
    "scales",
    "host",
    "link",
    "profile",
    "program",
    "work",
];
const QUICK_KEYS: &[&str] = &["rounds", "warm_up", "measure"];

/// Reads an experiment with the values of `scale` or of the default scale; `directory` contains the file.
pub(super) fn experiment(
    file: &str,
    text: &str,
    directory: &Path,
    scale: Option<&str>,
) -> Read<Experiment> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        source.mistake(
            error.span().unwrap_or(0..0),
            error.message().trim_end().to_owned(),
        )
    })?;
    let section = Section::open(source, root.get_ref(), 0..0, EXPERIMENT_KEYS)?;
    let scale = Scale::read(&section, scale)?;
    let given = WorkContext {
        programs: programs(&section)?,
        networks: Networks::read(&section)?,
        collect: collect(&section)?.unwrap_or_default(),
        scale,
    };
    let works = works(&section, &given)?;
    check_set(&section, &given)?;
    let ends = ends(|key: &str| given.scale.section_with(&section, key))?;
    // With a budget or a precision, `rounds` is only an upper limit.
    let usual = match (ends.budget, ends.precision) {
        (None, None) => 5,
        (Some(_), _) | (_, Some(_)) => ROUNDS_MAX,
    };
    let about = section.text("about")?.map(|about| about.value);
    let about = [about, given.scale.about.clone()];
    let about: Vec<String> = about
        .into_iter()
        .flatten()
        .map(|text| text.trim().to_owned())
        .collect();
    Ok(Experiment {
        name: name(&section, "expected a short name for the output directory")?.value,
        about: about.join(" "),
        rounds: ends.rounds.unwrap_or(usual),
        budget: ends.budget,
        precision: ends.precision,
        order: order(&section)?,
        warm_up: ends.warm_up,
        measure: ends.measure.unwrap_or(Duration::from_secs(5)),
        cpus_per_role: ends.cpus_per_role,
        quick: quick(&section)?,
        cpus: given.scale.cpus.map(|cpus| cpus as usize),
        profile: section.flag("profile")?.unwrap_or(false),
        works,
        programs: given.programs,
        directory: directory.into(),
        source: text.into(),
    })
}

fn order(section: &Section<'_>) -> Read<Order> {
    let Some(text) = section.text("order")? else {
        return Ok(Order::Shuffled);
    };
    match text.value.as_str() {
        "shuffled" => Ok(Order::Shuffled),
        "file" => Ok(Order::File),
        other => Err(section
            .source
            .mistake(text.span, unknown("order", other, &["shuffled", "file"]))),
    }
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
    use crate::scenario::Collect;
    use crate::scenario::WarmUp;
    use crate::scenario::{Access, Bound, Rate, Role, Sharing, Ssh, Work};

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
        experiment("test.toml", text, Path::new("/lab"), None)
    }

    /// Replaces a part of the good file and returns the resulting error message.
    fn mistake(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        match read(&GOOD.replacen(from, to, 1)) {
            Ok(_) => panic!("{to} was accepted"),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn valid_file_is_parsed() {
        let experiment = read(GOOD).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!((experiment.works.len(), experiment.rounds), (1, 2));
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
    fn collect_setting_is_inherited() {
        let off = |from: &str, to: &str| -> Vec<Collect> {
            let experiment = read(&GOOD.replacen(from, to, 1)).expect("a good file");
            let variants = experiment.works[0].variants.iter();
            variants.map(|variant| variant.collect).collect()
        };
        let (first, all) = ([Collect::Off, Collect::On], [Collect::Off; 2]);
        assert_eq!(off("rounds = 2", "rounds = 2\ncollect = \"off\""), all);
        assert_eq!(off("[[work]]", "[[work]]\ncollect = \"off\""), all);
        let variant = "[[work.variant]]\n";
        assert_eq!(
            off(variant, &format!("{variant}collect = \"off\"\n")),
            first
        );
        let message = mistake("rounds = 2", "rounds = 2\ncollect = \"of\"");
        assert!(message.contains("did you mean `off`"), "{message}");
    }

    #[test]
    fn subject_and_responses_are_parsed() {
        let text = GOOD
            .replace(
                "server = \"nginx\"\n",
                "server = \"nginx\"\nsubject = true\n",
            )
            .replace("at_most = 0.85", "at_most = 0.85\nresponses = \"differ\"");
        let experiment = read(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        let work = &experiment.works[0];
        let subjects: Vec<_> = work
            .variants
            .iter()
            .map(|variant| variant.subject)
            .collect();
        assert_eq!(subjects, [None, Some(true)]);
        assert_eq!(
            work.figures[0].responses,
            crate::scenario::ResponseRule::Differ
        );
        let message = mistake("at_most = 0.85", "responses = \"differs\"");
        assert!(message.contains("did you mean `differ`"), "{message}");
    }

    #[test]
    fn sweep_expands_to_all_combinations() {
        let paced = GOOD.replace("\"{connections}\"", "\"{connections}\", \"-R\", \"{rate}\"");
        let text = paced.replace("set = { io = \"epoll\" }\n", "").replace(
            "connections = 100",
            "sweep = { io = [\"epoll\", \"io_uring\"], connections = [10, \"1k\"], rate = [500, 1e3] }",
        );
        let experiment = read(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        let titles: Vec<String> = experiment.works.iter().map(Work::title).collect();
        assert_eq!(titles.len(), 8);
        assert_eq!(titles[0], "fixed · io=epoll connections=10 rate=500");
        assert_eq!(titles[7], "fixed · io=io_uring connections=1k rate=1e3");
        let last = &experiment.works[7];
        assert_eq!(last.connections, 1_000);
        assert_eq!(last.rate, Some(Rate::Fixed(1_000.0)));
        assert_eq!(last.variants[0].set["io"], "io_uring");
    }

    #[test]
    fn points_override_roles_and_cpus() {
        let text = GOOD
            .replace("server = \"ours\"\n", "")
            .replace("server = \"nginx\"\n", "")
            .replace(
                "connections = 100",
                "[[work.point]]\nserver = \"ours\"\ncpus_per_role = 1\n[[work.point]]\nserver = \"nginx\"\ncpus_per_role = 2",
            )
            .replace("name = \"nginx\"\n\n", "name = \"nginx\"\nset = { io = \"auto\" }\n\n");
        let experiment = read(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!(experiment.works.len(), 2);
        let second = &experiment.works[1];
        assert_eq!(second.variants[0].roles[&Role::Server], "nginx");
        assert_eq!(second.cpus_per_role, Some(2));
    }

    #[test]
    fn placement_can_share_cpus() {
        let placed = |line: &str| {
            let text = GOOD.replace("connections = 100", &format!("connections = 100\n{line}"));
            read(&text).map(|experiment| experiment.works[0].sharing)
        };
        assert_eq!(placed("").ok(), Some(Sharing::Apart));
        assert_eq!(
            placed("placement = \"together\"").ok(),
            Some(Sharing::Together)
        );
        let mistake = placed("placement = \"togehter\"").expect_err("a misspelling");
        assert!(mistake.to_string().contains("together"), "{mistake}");
    }

    #[test]
    fn invalid_sweeps_are_rejected() {
        let swept = |values: &str| mistake("connections = 100", &format!("sweep = {values}"));
        for (values, expected) in [
            ("{}", "a list of values for each parameter"),
            ("{ connections = 5 }", "expected a list of values"),
            ("{ connections = [] }", "`connections` has no values"),
            ("{ connections = [1, 1] }", "`1` is listed twice"),
            ("{ connections = [0] }", "a whole number from 1 to 100000"),
            (
                "{ rate = [\"x\"] }",
                "expected a whole number of requests per second",
            ),
            (
                "{ rate = [1000, 1.5] }",
                "expected a whole number of requests per second as `rate`, found `1.5`",
            ),
            ("{ io = [\"epoll\"] }", "is swept and also in `set`"),
            ("{ depth = [1] }", "no program of this work uses {depth}"),
            ("{ port = [1] }", "filled in by the run"),
            ("{ Depth = [1] }", "lower-case letters"),
            ("{ io = [\"a b\"] }", "no blanks"),
            ("{ server = [\"nginx\"] }", "a variant cannot have its own"),
            ("{ client = [\"curl\"] }", "unknown program `curl`"),
        ] {
            let message = swept(values);
            assert!(message.contains(expected), "{values}: {message}");
        }
        let twice = mistake(
            "connections = 100",
            "connections = 100\nsweep = { connections = [1] }",
        );
        assert!(
            twice.contains("is swept and also set by the work"),
            "{twice}"
        );
        let numbers: Vec<String> = (1..=501).map(|number| number.to_string()).collect();
        let many = swept(&format!("{{ connections = [{}] }}", numbers.join(", ")));
        assert!(many.contains("500 points at most"), "{many}");
        let unequal = "[[work.point]]\nconnections = 1\n[[work.point]]\nrate = 1";
        let unequal = mistake("connections = 100", unequal);
        assert!(unequal.contains("unknown key `rate`"), "{unequal}");
    }

    #[test]
    fn figures_require_roles_of_their_variants() {
        let message = mistake(
            "\"server.cpu_us_per_request\"",
            "\"proxy.cpu_us_per_request\"",
        );
        assert!(
            message.contains("variant `epoll` has no proxy"),
            "{message}"
        );
        let message = mistake("ours = [\"epoll\"]", "ours = [\"epoll\", \"nginx\"]");
        assert!(
            message.contains("cannot be compared with itself"),
            "{message}"
        );
        let message = mistake("set = { io = \"epoll\" }", "set = { io = \"a\", port = 1 }");
        assert!(
            message.contains("`{port}` in `set` is filled in by the run"),
            "{message}"
        );
    }

    #[test]
    fn set_expands_run_variables() {
        let good = GOOD.replace("set = { io = \"epoll\" }", "set = { io = \"{dir}/epoll\" }");
        assert!(read(&good).is_ok());
        let message = mistake("set = { io = \"epoll\" }", "set = { io = \"{dri}/epoll\" }");
        assert!(message.contains("unknown value `{dri}`"), "{message}");
        let message = mistake("set = { io = \"epoll\" }", "set = { io = \"{target}\" }");
        assert!(
            message.contains("as server of variant `epoll`"),
            "{message}"
        );
    }

    #[test]
    fn stop_rules_and_order_are_parsed() {
        let text = GOOD.replace(
            "rounds = 2",
            "budget = \"10m\"\nprecision = 0.02\norder = \"file\"\nwarm_up = { until_steady = \"20s\" }",
        );
        let experiment = read(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!(experiment.rounds, ROUNDS_MAX);
        assert_eq!(experiment.budget, Some(Duration::from_secs(600)));
        assert_eq!(experiment.order, Order::File);
        let longest = Duration::from_secs(20);
        assert_eq!(experiment.warm_up, WarmUp::UntilSteady(longest));
        assert!(mistake("rounds = 2", "precision = 2").contains("2 % in both directions"));
        assert!(mistake("rounds = 2", "budget = \"0s\"").contains("no time for a round"));
        assert!(mistake("rounds = 2", "order = \"files\"").contains("did you mean `file`?"));
    }

    #[test]
    fn scale_overrides_experiment_settings() {
        let scales = "scale = \"small\"\n[scales.small]\nabout = \"Two CPUs.\"\nrounds = 3\nmeasure = \"1s\"\n\
            sweep = { connections = [1, 2] }\nset = { io = \"auto\" }\n[scales.large]\ncpus = 32\nwarm_up = \"9s\"\ncpus_per_role = 8\nconnections = 7\n";
        let text = GOOD.replace(
            "connections = 100",
            "sweep = { connections = [10, 20, 30] }",
        );
        let text = text.replace("rounds = 2", &format!("rounds = 2\n{scales}"));
        let at = |scale| {
            experiment("test.toml", &text, Path::new("/lab"), scale)
                .unwrap_or_else(|mistake| panic!("{mistake}"))
        };
        let usual = at(None);
        assert_eq!((usual.rounds, usual.works.len()), (3, 2));
        assert_eq!(usual.measure, Duration::from_secs(1));
        assert_eq!(usual.works[1].connections, 2);
        assert_eq!(usual.works[0].variants[0].set["io"], "auto");
        assert_eq!(usual.about, "Two CPUs.");
        let large = at(Some("large"));
        assert_eq!((large.rounds, large.works.len()), (2, 3));
        assert_eq!(large.warm_up, WarmUp::Fixed(Duration::from_secs(9)));
        assert_eq!(large.cpus_per_role, Some(8));
        assert_eq!(large.too_few_cpus(32), None);
        let warning = large.too_few_cpus(2).expect("too few");
        assert!(
            warning.contains("for 32 CPUs, and 2 are usable here"),
            "{warning}"
        );
        assert_eq!(usual.too_few_cpus(1), None);
        let none = experiment("test.toml", &text, Path::new("/lab"), Some("larg"));
        let message = none.expect_err("no such scale").to_string();
        assert!(
            message.contains("unknown scale `larg`; did you mean `large`?"),
            "{message}"
        );
        let misspelt = text.replace(
            "sweep = { connections = [1, 2] }",
            "sweep = { conections = [1, 2] }",
        );
        let none = experiment("test.toml", &misspelt, Path::new("/lab"), Some("large"));
        let message = none.expect_err("no work sweeps it").to_string();
        assert!(
            message
                .contains("unknown parameter of a sweep `conections`; did you mean `connections`?"),
            "{message}"
        );
        let unswept = GOOD.replace("rounds = 2", &format!("rounds = 2\n{scales}"));
        let none = experiment("test.toml", &unswept, Path::new("/lab"), None);
        let message = none.expect_err("no work sweeps anything").to_string();
        assert!(message.contains("no work has a `sweep`"), "{message}");
        let none = experiment("test.toml", GOOD, Path::new("/lab"), Some("x"));
        let message = none.expect_err("no scales").to_string();
        assert!(message.contains("this experiment has none"), "{message}");
    }

    /// The good file with its roles on two hosts in network namespaces.
    fn on_hosts(link: &str) -> String {
        let work = GOOD.replace(
            "connections = 100",
            "connections = 100\nhosts = { client = \"left\", server = \"right\" }",
        );
        format!(
            "{work}\n[host.left]\nnamespace = {{}}\n[host.right]\nnamespace = {{ sysctl = {{ \"net.ipv4.tcp_fin_timeout\" = 5 }} }}\n[[link]]\nbetween = [\"right\", \"left\"]\n{link}\n"
        )
    }

    #[test]
    fn hosts_and_links_define_variant_networks() {
        let text = on_hosts(
            "queues = 4\ninterfaces = 2\nrate = \"1g\"\nmtu = 1500\nsteering = { right = \"{mask}\" }",
        );
        let text = text.replace(
            "connections = 100\n",
            "connections = 100\nsweep = { mask = [\"1\", \"2\"] }\n",
        );
        let experiment = read(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        let network = |work: usize| experiment.works[work].variants[0].network.clone();
        let network = network(1).expect("it has hosts");
        let names: Vec<&str> = network
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect();
        assert_eq!(names, ["left", "right"]);
        assert_eq!(network.hosts[1].sysctl["net.ipv4.tcp_fin_timeout"], "5");
        let link = &network.links[0];
        assert_eq!((link.ends, link.interfaces, link.queues), ([1, 0], 2, 4));
        assert_eq!((link.rate, link.mtu), (Some(1_000_000_000), Some(1_500)));
        assert_eq!(link.steering, [Some("2".to_owned()), None]);
        assert_eq!(network.path_count(Role::Client, Role::Server), 2);
        assert_eq!(network.between(0, 1), Some((0, 0)));
    }

    /// The experiment with its client on host `a` and its server on host `b`.
    fn on_machines(a: &str, b: &str) -> String {
        let text = on_hosts("");
        let start = text.find("[host.left]").expect("it has hosts");
        let text = text[..start]
            .replace("\"left\"", "\"a\"")
            .replace("\"right\"", "\"b\"");
        format!("{text}\n[host.a]\n{a}\n[host.b]\n{b}\n")
    }

    #[test]
    fn remote_hosts_are_parsed_per_variant() {
        let text = on_machines(
            "ssh = \"user@a\"",
            "ssh = { to = \"b\", options = [\"-p\", \"2222\"], address = \"10.0.0.2\" }\nsysctl = { \"net.core.somaxconn\" = 128 }\nsteering = { eth0 = \"{mask}\" }\ntune = \"none\"",
        );
        let text = text.replace(
            "connections = 100\n",
            "connections = 100\nsweep = { mask = [\"1\", \"2\"] }\n",
        );
        let experiment = read(&text).unwrap_or_else(|mistake| panic!("{mistake}"));
        let variant = &experiment.works[1].variants[0];
        assert!(variant.network.is_none());
        let remote = variant.remote.as_ref().expect("it has hosts");
        let client = remote.host(Role::Client).expect("a host");
        let ssh = |to: &str, options: &[&str], address: Option<&str>| {
            Access::Ssh(Ssh {
                to: to.into(),
                options: options.iter().map(|word| (*word).to_owned()).collect(),
                address: address.map(|text| text.parse().expect("an address")),
            })
        };
        assert_eq!(client.access, ssh("user@a", &[], None));
        let server = remote.host(Role::Server).expect("a host");
        assert_eq!(server.access, ssh("b", &["-p", "2222"], Some("10.0.0.2")));
        assert_eq!(server.settings.sysctl["net.core.somaxconn"], "128");
        assert_eq!(server.settings.steering["eth0"], "2");
        assert_eq!(server.settings.tune, None);
    }

    #[test]
    fn invalid_machines_are_rejected() {
        let b = "ssh = \"b\"";
        for (a, expected) in [
            ("ssh = \"-oProxyCommand=x\"", "expected \"user@host\""),
            ("ssh = { options = [] }", "`to` is missing here"),
            (
                "ssh = { to = \"a\", address = \"a\" }",
                "expected an address such as",
            ),
            ("ssh = \"a\"\nnamespace = {}", "a host has exactly one of"),
            ("namespace = {}", "expected one kind of host"),
            ("namespace = {}\ntune = \"none\"", "unknown key `tune`"),
            ("local = {}", "`address` is missing here"),
            ("slurm = { nodes = 0 }", "a whole number from 1 to 64"),
            ("slurm = { nodes = 2 }", "the client runs on 2 nodes of `a`"),
            (
                "ssh = \"a\"\nsysctl = { \"../x\" = 1 }",
                "`../x` cannot be set",
            ),
            (
                "ssh = \"a\"\nsteering = { eth0 = \"x\" }",
                "expected a mask of CPUs",
            ),
        ] {
            let message = match read(&on_machines(a, b)) {
                Ok(_) => panic!("{a} was accepted"),
                Err(mistake) => mistake.to_string(),
            };
            assert!(message.contains(expected), "{a}: {message}");
        }
        for (a, b, expected) in [
            (
                "ssh = \"a\"",
                "slurm = { nodes = 2 }",
                "only the client can run on several",
            ),
            (
                "slurm = { partition = \"x\" }",
                "slurm = { partition = \"y\" }",
                "Slurm hosts share one allocation",
            ),
        ] {
            let message = read(&on_machines(a, b)).expect_err(a).to_string();
            assert!(message.contains(expected), "{a}: {message}");
        }
    }

    #[test]
    fn invalid_networks_are_rejected() {
        let of = |link: &str| match read(&on_hosts(link)) {
            Ok(_) => panic!("{link} was accepted"),
            Err(mistake) => mistake.to_string(),
        };
        for (link, expected) in [
            ("queues = 0", "a whole number from 1 to 256"),
            ("rate = \"fast\"", "bits per second such as"),
            ("mtu = 20", "a whole number from 68 to 65535"),
            ("steering = { right = \"x\" }", "a mask of CPUs"),
            ("steering = { middle = \"1\" }", "unknown key `middle`"),
            (
                "steering = { right = \"{mask}\" }",
                "unknown value `{mask}`",
            ),
            (
                "[[link]]\nbetween = [\"left\", \"left\"]",
                "connects two different hosts",
            ),
            (
                "[[link]]\nbetween = [\"left\", \"rigt\"]",
                "did you mean `right`?",
            ),
            ("[[link]]\nbetween = [\"left\"]", "a link has two ends"),
            ("[host.odd]", "`namespace` is missing"),
            (
                "[host.odd]\nnamespace = { sysctl = { \"vm.swappiness\" = 1 } }",
                "is not a setting of a network namespace",
            ),
        ] {
            let message = of(link);
            assert!(message.contains(expected), "{link}: {message}");
        }
        let alone = on_hosts("").replace(
            "between = [\"right\", \"left\"]",
            "between = [\"right\", \"other\"]\n[host.other]\nnamespace = {}",
        );
        let message = read(&alone).expect_err("no way").to_string();
        assert!(message.contains("no [[link]] connects"), "{message}");
        let half = on_hosts("").replace("server = \"right\"", "proxy = \"right\"");
        let message = read(&half).expect_err("no host").to_string();
        assert!(
            message.contains("`server` is missing here: each role"),
            "{message}"
        );
    }

    #[test]
    fn rate_share_refers_to_same_sweep_point() {
        let paced = |sweep: &str| {
            let swept = GOOD.replace("connections = 100", "sweep = { connections = [10, 20] }");
            format!(
                "{swept}\n[[work]]\nname = \"paced\"\nclient = \"load\"\nserver = \"nginx\"\n{sweep}\n\
                 rate = {{ share = 0.5, work = \"fixed\", variant = \"nginx\" }}\n[[work.variant]]\nname = \"nginx\"\n"
            )
        };
        let same = read(&paced("sweep = { connections = [20] }"));
        let same = same.unwrap_or_else(|mistake| panic!("{mistake}"));
        match &same.works[2].rate {
            Some(Rate::Share { point, .. }) => assert_eq!(point.to_string(), "connections=20"),
            other => panic!("{other:?}"),
        }
        for (sweep, count) in [("", 2), ("sweep = { connections = [30] }", 0)] {
            let message = read(&paced(sweep)).expect_err("no one point").to_string();
            let expected = format!("`fixed` has {count} points for one point of this work");
            assert!(message.contains(&expected), "{message}");
        }
    }

    #[test]
    fn built_in_experiment_is_valid() {
        let chain = super::super::built_in();
        assert_eq!(chain.name, "chain");
        assert!(chain.works.iter().all(|work| {
            work.variants
                .iter()
                .all(|variant| variant.roles.contains_key(&Role::Control))
        }));
    }

    #[test]
    fn long_names_and_control_characters_are_rejected() {
        let long = format!("client = \"{}\"", "x".repeat(100_000));
        let message = mistake("client = \"load\"", &long);
        assert!(message.chars().count() < 1000, "{message}");
        let message = mistake("rounds = 2", "\"\\u001b[31m\" = 2");
        assert!(message.contains("unknown key ` [31m`"), "{message}");
    }

    #[test]
    fn unknown_key_error_has_position_and_suggestion() {
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
    fn unknown_names_are_rejected() {
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
    fn invalid_value_errors_state_expectation() {
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
                .contains("not every variant of this work has a proxy")
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
    fn unused_values_are_rejected() {
        for (from, to, expected) in [
            (
                "set = { io = \"epoll\" }",
                "set = { io = \"epoll\", oi = \"epoll\" }",
                "nothing in this file uses {oi}",
            ),
            (
                "[program.load]",
                "[program.load]\nversion = [\"onrush\", \"--version\"]",
                "the version of this binary is known",
            ),
            (
                "files = {",
                "version = []\nfiles = {",
                "expected a command line",
            ),
            (
                "[program.nginx]",
                "[program.\"\"]\nidle = 1\n[program.nginx]",
                "a program without a name",
            ),
            (
                "[program.nginx]",
                "[host.\"\"]\n[program.nginx]",
                "a host without a name",
            ),
            (
                "[program.nginx]",
                "[scales.small]\nmeasure = \"0s\"\n[program.nginx]",
                "at least \"1s\"",
            ),
            (
                "[program.nginx]",
                "[scales.small]\nprecision = 2\n[program.nginx]",
                "expected a share of the value",
            ),
            (
                "connections = 100",
                "connections = 100\nroad = true",
                "a road has steps",
            ),
            (
                "name = \"nginx\"\nserver",
                "name = \"nginx\"\nhosts = { proxy = \"a\" }\nserver",
                "this variant has no proxy",
            ),
        ] {
            let said = mistake(from, to);
            assert!(said.contains(expected), "{to}: {said}");
        }
    }

    #[test]
    fn shipped_experiments_are_valid() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        for entry in std::fs::read_dir(directory).expect("the repository has experiments/") {
            let path = entry.expect("a readable directory").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                let read = super::super::read(&path, None);
                read.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}
