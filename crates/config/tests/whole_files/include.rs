//! Configurations of several files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use onrush_config::changes::changes;
use onrush_config::plan::{Action, Address, LogTarget, PageContent, Plan, ServerAddress, Threads};
use onrush_config::{IncludeReader, Parsed, Sources, parse, parse_sources};

struct Memory(BTreeMap<PathBuf, String>);

impl IncludeReader for Memory {
    /// Supports patterns with one `*`.
    fn find(&mut self, directory: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
        let path = directory.join(name);
        let shown = path.display().to_string();
        let Some((start, end)) = shown.split_once('*') else {
            return Ok(vec![path]);
        };
        if start.starts_with("locked/") {
            return Err(format!("cannot look for {shown}: permission denied"));
        }
        let names = self.0.keys().filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        });
        Ok(names.cloned().collect())
    }

    fn identity(&mut self, path: &Path) -> PathBuf {
        match path.ends_with("link.toml") {
            true => "onrush.toml".into(),
            false => path.to_owned(),
        }
    }

    fn read(&mut self, path: &Path) -> Result<String, String> {
        let text = self.0.get(path);
        text.cloned().ok_or_else(|| "there is none".to_owned())
    }
}

fn memory(files: &[(&str, &str)]) -> Memory {
    let files = files.iter();
    Memory(
        files
            .map(|(name, text)| ((*name).into(), (*text).to_owned()))
            .collect(),
    )
}

/// Reads the first file and its includes.
fn sources(files: &[(&str, &str)]) -> Sources {
    let (path, text) = files[0];
    Sources::read(text, path, &mut memory(files))
}

fn parsed(files: &[(&str, &str)]) -> Parsed {
    match parse_sources(&sources(files)) {
        Ok(parsed) => parsed,
        Err(errors) => panic!("{files:?}\nis refused:\n{errors}"),
    }
}

/// Formats each error as `path:line:column: message`.
fn errors(files: &[(&str, &str)]) -> Vec<String> {
    match parse_sources(&sources(files)) {
        Ok(parsed) => panic!("{files:?}\nis accepted as:\n{:?}", parsed.plan),
        Err(errors) => errors
            .iter()
            .map(|error| {
                let path = error.path.display();
                format!("{path}:{}:{}: {}", error.line, error.column, error.message)
            })
            .collect(),
    }
}

fn statuses(plan: &Plan) -> Vec<u16> {
    let status = |action: &Action| match action {
        Action::Respond { status, .. } => *status,
        other => panic!("{other:?}"),
    };
    plan.routes
        .iter()
        .map(|route| status(&route.action))
        .collect()
}

fn route(status: u16) -> String {
    format!("[[route]]\npath = \"/{status}\"\nrespond = {{ status = {status} }}\n")
}

#[test]
fn included_routes_precede_own_routes() {
    let first = format!(
        "include = [\"z.toml\", \"conf.d/*.toml\", \"none/*.toml\"]\n[[listen]]\naddress = \":81\"\n{}",
        route(209)
    );
    let z = format!("include = \"deeper/a.toml\"\n{}", route(202));
    let b = format!("threads = 2\n[[listen]]\naddress = \":82\"\n{}", route(205));
    let plan = parsed(&[
        ("onrush.toml", &first),
        ("conf.d/10-b.toml", &b),
        ("conf.d/10-a.toml", &(route(203) + &route(204))),
        ("conf.d/9.toml", &route(206)),
        ("conf.d/c.conf", "this is not read"),
        ("z.toml", &z),
        ("deeper/a.toml", &route(201)),
    ])
    .plan;
    assert_eq!(statuses(&plan), [201, 202, 203, 204, 205, 206, 209]);
    let ports = plan.listen.iter().map(|listen| match &listen.address {
        Address::Tcp(address) => address.port(),
        Address::Unix(path) => panic!("{path:?}"),
    });
    assert_eq!(ports.collect::<Vec<_>>(), [82, 81]);
    let threads = NonZeroUsize::new(2).map(Threads::Count);
    assert_eq!(Some(plan.threads), threads);
}

#[test]
fn upstream_groups_are_shared_by_all_files() {
    let plan = parsed(&[
        (
            "onrush.toml",
            "include = [\"a.toml\", \"b.toml\"]\nupstream.one.servers = [\"10.0.0.1:80\"]\n",
        ),
        ("a.toml", "[[route]]\npath = \"/a\"\nforward = \"two\"\n"),
        (
            "b.toml",
            "[upstream.two]\nservers = [\"10.0.0.2:80\"]\n[[route]]\nforward = \"one\"\n",
        ),
    ])
    .plan;
    let names = plan.upstreams.iter().map(|group| group.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["one", "two"]);
    let targets = plan.routes.iter().map(|route| &route.action);
    assert!(targets.eq(&[Action::forward(1), Action::forward(0)]));
}

#[test]
fn relative_paths_resolve_against_containing_file() {
    let plan = parsed(&[
        (
            "etc/onrush.toml",
            "include = \"sites/*.toml\"\nerror_pages = { 404 = \"404.html\" }\n[[route]]\nfiles = { root = \"www\" }\n",
        ),
        (
            "etc/sites/a.toml",
            "include = \"../more/log.conf\"\n[[listen]]\naddress = \"unix:a.sock\"\n[[listen]]\naddress = \":443\"\ntls = { certificate = \"a.pem\", key = \"/k.pem\" }\n[[route]]\npath = \"/a/\"\nfiles = { root = \"www\" }\nerror_pages = { 5xx = \"500.html\" }\n[[route]]\npath = \"/b/\"\nforward = \"unix:app.sock\"\nbasic_auth = { file = \"htpasswd\" }\n",
        ),
        ("etc/sites/../more/log.conf", "[log]\naccess = \"a.log\"\n"),
    ])
    .plan;
    let files = plan.startup_files().map(|file| file.display().to_string());
    assert_eq!(
        files.collect::<Vec<_>>(),
        [
            "etc/sites/htpasswd",
            "etc/sites/500.html",
            "etc/404.html",
            "etc/404.html",
            "etc/404.html",
            "etc/404.html"
        ]
    );
    let roots = plan.routes.iter().filter_map(|route| match &route.action {
        Action::Files(files) => Some(files.root.display().to_string()),
        _ => None,
    });
    assert_eq!(roots.collect::<Vec<_>>(), ["etc/sites/www", "etc/www"]);
    assert_eq!(
        plan.listen[0].address,
        Address::Unix("etc/sites/a.sock".into())
    );
    let tls = plan.listen[1].tls.as_ref().expect("there is TLS");
    let certificates = format!("{:?}", tls.certificates);
    assert!(
        certificates.contains("\"etc/sites/a.pem\""),
        "{certificates}"
    );
    assert!(certificates.contains("\"/k.pem\""), "{certificates}");
    let server = &plan.upstreams[0].servers[0].address;
    assert_eq!(*server, ServerAddress::Unix("etc/sites/app.sock".into()));
    let log = plan.access_log.expect("there is a log");
    assert_eq!(log.to, LogTarget::File("etc/sites/../more/a.log".into()));
    let page = &plan.error_pages.pages[0].content;
    let Some(PageContent::File { file, .. }) = page else {
        panic!("{page:?}");
    };
    let place = file.place().expect("it stands in a file");
    assert_eq!(
        place.start,
        "include = \"sites/*.toml\"\nerror_pages = { 404 = ".len()
    );
}

#[test]
fn errors_have_positions_in_included_files() {
    let first = "include = \"conf.d/*.toml\"\nthreeds = 2\n[[route]]\nsynthetic = true\n";
    let a = "# é\n[[route]]\npath = \"/a\"\nforwrad = \"app\"\nforward = \"ap\"\n";
    let b = "[upstream.app]\nservers = [\"10.0.0.1:80\", \"10.0.0.1:80\"]\n\n[timeouts]\nconnect = \"soon\"\n";
    let all = [
        ("onrush.toml", first),
        ("conf.d/a.toml", a),
        ("conf.d/b.toml", b),
    ];
    assert_eq!(
        errors(&all),
        [
            "onrush.toml:2:1: unknown key \"threeds\" in the file; nearest: \"threads\"",
            "conf.d/a.toml:4:1: unknown key \"forwrad\" in [[route]]; nearest: \"forward\"",
            "conf.d/a.toml:5:11: unknown group \"ap\"; nearest: \"app\"",
            "conf.d/b.toml:2:27: server 10.0.0.1:80 is already in [upstream.app], in line 2 of conf.d/b.toml: give it a weight instead",
            "conf.d/b.toml:5:11: \"soon\" is not a duration: expected a number and its unit, such as 250ms, 1.5s, 2m, 1h or 7d",
        ]
    );
    let Err(errors) = parse_sources(&sources(&all)) else {
        panic!("it is accepted");
    };
    let shown = errors.to_string();
    let excerpt = "conf.d/a.toml:4:1: unknown key \"forwrad\" in [[route]]; nearest: \"forward\"\n    4 | forwrad = \"app\"\n      | ^^^^^^^\n";
    assert!(shown.contains(excerpt), "{shown}");
}

#[test]
fn warnings_refer_to_lines_in_other_files() {
    let parsed = parsed(&[
        (
            "onrush.toml",
            "include = \"a.toml\"\n[[listen]]\naddress = \":80\"\n[[route]]\npath = \"/a/b\"\nsynthetic = true\n",
        ),
        (
            "a.toml",
            "# First.\n[[route]]\npath = \"/a\"\nsynthetic = true\n",
        ),
    ]);
    let said: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    let expected = "onrush.toml:4:1: warning: this [[route]] is never reached: the one in line 2 of a.toml matches all of its requests\n";
    assert!(said[0].starts_with(expected), "{said:?}");
}

#[test]
fn duplicates_in_two_files_are_reported() {
    let first = "include = [\"a.toml\", \"b.toml\"]\nthreads = 2\nupstream.app.servers = [\"10.0.0.1:80\"]\nroute = [{ forward = \"app\" }]\nlisten = [{ address = \":80\" }]\n";
    let a = "threads = 2\nlisten = 80\n[upstream.app]\nservers = [\"10.0.0.2:80\"]\n[timeouts]\nconnect = \"1s\"\n";
    let b = "upstream = 1\n[timeouts]\nrequest = \"1s\"\n[[listen]]\naddress = \":80\"\n";
    assert_eq!(
        errors(&[("onrush.toml", first), ("a.toml", a), ("b.toml", b)]),
        [
            "a.toml:1:1: threads is defined in two files, here and in onrush.toml:2:1: expected it in one of them",
            "a.toml:2:10: listen is written [[listen]], once for each",
            "a.toml:3:11: upstream.app is defined in two files, here and in onrush.toml:3:10: expected it in one of them",
            "b.toml:1:12: upstream is written [upstream.NAME], once for each",
            "b.toml:2:2: timeouts is defined in two files, here and in a.toml:5:2: expected it in one of them",
        ]
    );
    assert_eq!(
        errors(&[
            (
                "onrush.toml",
                "include = \"a.toml\"\nlisten = [{ address = \":80\" }]\nroute = [{ synthetic = true }]\n"
            ),
            ("a.toml", "[[listen]]\naddress = \":80\"\n"),
        ]),
        [
            "onrush.toml:2:23: 0.0.0.0:80 is already an address of the [[listen]] in line 2 of a.toml"
        ]
    );
}

#[test]
fn invalid_includes_are_reported() {
    let route = route(200);
    for (include, expected) in [
        (
            "5",
            "1:11: include is a number: expected a file, a pattern such as \"conf.d/*.toml\", or a list of them",
        ),
        (
            "[\"a.toml\", true]",
            "1:22: include is true or false: expected a file, a pattern such as \"conf.d/*.toml\", or a list of them",
        ),
        (
            "\"\"",
            "1:11: \"\" is not a path: expected a file, a pattern such as \"conf.d/*.toml\", or a list of them",
        ),
        (
            "\"none.toml\"",
            "1:11: cannot include none.toml: there is none",
        ),
        (
            "\"locked/*\"",
            "1:11: cannot look for locked/*: permission denied",
        ),
        (
            "[\"a.toml\", \"*.toml\"]",
            "1:22: a.toml is included twice, here and in onrush.toml:1:12: expected it once",
        ),
        (
            "\"onrush.toml\"",
            "1:11: onrush.toml is the main configuration file, which cannot be included: expected other files",
        ),
        (
            "\"link.toml\"",
            "1:11: link.toml is the main configuration file, which cannot be included: expected other files",
        ),
    ] {
        let first = format!("include = {include}\nthreeds = 1\n");
        let said = errors(&[("onrush.toml", &first), ("a.toml", &route), ("b.toml", "")]);
        let of_first: Vec<_> = said
            .iter()
            .filter(|said| !said.contains("onrush.toml is the main"))
            .collect();
        match include.contains('*') && include.contains("a.toml") {
            // The pattern also matches the first file.
            true => assert_eq!(*of_first, [&format!("onrush.toml:{expected}")]),
            false => assert_eq!(said, [format!("onrush.toml:{expected}")]),
        }
    }
}

#[test]
fn include_cycles_and_deep_nesting_are_rejected() {
    let said = errors(&[
        ("onrush.toml", "include = \"a.toml\"\n"),
        ("a.toml", "\ninclude = \"b.toml\"\n"),
        ("b.toml", "include = [\"a.toml\", \"onrush.toml\"]\n"),
    ]);
    assert_eq!(
        said,
        [
            "b.toml:1:12: a.toml is included twice, here and in onrush.toml:1:11: expected it once",
            "b.toml:1:22: onrush.toml is the main configuration file, which cannot be included: expected other files",
        ]
    );
    let chain = |length: usize| -> Vec<(String, String)> {
        let link = |at: usize| {
            (
                format!("{at}.toml"),
                format!("include = \"{}.toml\"", at + 1),
            )
        };
        let mut files: Vec<_> = (0..length).map(link).collect();
        files.push((format!("{length}.toml"), route(200)));
        files
    };
    let long = chain(9);
    let files: Vec<(&str, &str)> = long.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(
        errors(&files),
        ["8.toml:1:11: files include each other in a chain that is too long: expected at most 8"]
    );
    let long = chain(8);
    let files: Vec<(&str, &str)> = long.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(parsed(&files).plan.routes.len(), 1);
}

#[test]
fn total_include_count_and_size_are_limited() {
    let mut many: Vec<(String, String)> = (0..10_001)
        .map(|at| (format!("d/{at}.toml"), String::new()))
        .collect();
    many.insert(0, ("onrush.toml".into(), "include = \"d/*\"\n".into()));
    let files: Vec<(&str, &str)> = many.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(
        errors(&files),
        ["onrush.toml:1:11: the configuration has too many files: expected at most 10000"]
    );
    let half = "#".repeat(9 << 20);
    let said = errors(&[
        ("onrush.toml", "include = [\"a\", \"b\"]\n"),
        ("a", &half),
        ("b", &half),
    ]);
    assert_eq!(
        said,
        [
            "onrush.toml:1:17: cannot include b: with it, a configuration of 18874389 bytes is too long: expected at most 16777216"
        ]
    );
}

#[test]
fn toml_errors_have_file_name() {
    let said = errors(&[
        (
            "onrush.toml",
            "include = [\"a.toml\", \"none.toml\"]\nthreeds = 1\n",
        ),
        ("a.toml", "\n[[route]\n"),
    ]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(
        said[0],
        "onrush.toml:1:22: cannot include none.toml: there is none"
    );
    assert!(said[1].starts_with("a.toml:2:9: not TOML: "), "{said:?}");
}

#[test]
fn include_is_allowed_only_at_top_of_file() {
    let said = errors(&[(
        "onrush.toml",
        "[[route]]\nsynthetic = true\ninclude = \"a.toml\"\n",
    )]);
    assert_eq!(
        said,
        [
            "onrush.toml:3:1: key \"include\" does not belong in [[route]]; expected at the top of the file, before the first [section]"
        ]
    );
    let alone = parse("include = \"a.toml\"\n", Path::new("x.toml"));
    let said = alone.expect_err("it is alone").to_string();
    let expected = "x.toml:1:11: include is not supported here: expected a single file\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn included_files_may_be_empty_or_complete() {
    let parsed = parsed(&[
        ("onrush.toml", "include = [\"a.toml\", \"empty.toml\"]\n"),
        ("a.toml", "[[route]]\nrespond = { status = 204 }\n"),
        ("empty.toml", ""),
    ]);
    assert_eq!(statuses(&parsed.plan), [204]);
    assert_eq!(parsed.warnings, []);
    let said = errors(&[("onrush.toml", "\"incl\\u0075de\" = \"none.toml\"\n")]);
    assert_eq!(
        said,
        ["onrush.toml:1:18: cannot include none.toml: there is none"]
    );
    let said = errors(&[("onrush.toml", "include = \"none*\"\n")]);
    assert_eq!(
        said,
        [
            "onrush.toml:1:1: there is no [[route]]: expected at least one, which defines the responses"
        ]
    );
}

#[test]
fn settings_moved_to_included_file_are_unchanged() {
    let one = "[[route]]\nrespond = { status = 200 }\n[timeouts]\nconnect = \"1s\"\n";
    let before = Sources::single(one, "onrush.toml");
    let after = sources(&[
        (
            "onrush.toml",
            "include = \"t.toml\"\n[[route]]\nrespond = { status = 200 }\n",
        ),
        ("t.toml", "timeouts.connect = \"1s\"\n"),
    ]);
    assert_eq!(changes(&before, &after), []);
}
