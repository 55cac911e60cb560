//! `include`: a configuration of several files, when checked, reloaded and watched.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Finished, Serve, run_onrush};

struct Place(TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Place {
        let place = Place(tempfile::tempdir().expect("a directory"));
        files
            .iter()
            .for_each(|(name, text)| place.write(name, text));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn shown(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Replaces the file atomically, as editors do.
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let directory = path.parent().expect("a directory");
        fs::create_dir_all(directory).expect("it is ours");
        let next = directory.join(".next");
        fs::write(&next, text).expect("it is ours");
        fs::rename(&next, &path).expect("it is ours");
    }

    fn check(&self) -> Finished {
        run_onrush(&["check", &self.shown("onrush.toml")])
    }

    fn serve(&self, more: &[&str]) -> Serve {
        let path = self.shown("onrush.toml");
        let words = [&["--config", &path], more].concat();
        Serve::start(&words)
    }
}

const FIRST: &str = "include = \"conf.d/*.toml\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n";

/// A route that responds with `body`, below a comment.
fn responding(body: &str) -> String {
    format!("# A site.\n[[route]]\npath = \"/\"\nrespond = {{ status = 200, body = \"{body}\" }}\n")
}

#[test]
fn check_errors_have_file_and_position() {
    let place = Place::new(&[
        ("onrush.toml", FIRST),
        (
            "conf.d/a.toml",
            "[[route]]\nforwrad = \"app\"\nsynthetic = true\n",
        ),
        (
            "conf.d/b.toml",
            "\n[[route]]\npath = \"/b/\"\nfiles = { root = \"none\" }\n",
        ),
        ("conf.d/.hidden.toml", "this is not read"),
        ("conf.d/c.toml.off", "nor is this"),
    ]);
    let said = place.check();
    assert_eq!(said.code, Some(1), "{said:?}");
    let expected = format!(
        "{}:2:1: unknown key \"forwrad\" in [[route]]; nearest: \"forward\"\n    2 | forwrad = \"app\"\n",
        place.shown("conf.d/a.toml")
    );
    assert!(said.err.contains(&expected), "{said:?}");
    place.write(
        "conf.d/a.toml",
        "[[route]]\npath = \"/a/\"\nsynthetic = true\n",
    );
    let said = place.check();
    let expected = format!(
        "{}:4:18: cannot serve the directory {}: it does not exist\n",
        place.shown("conf.d/b.toml"),
        place.shown("conf.d/none")
    );
    assert!(said.err.contains(&expected), "{said:?}");
    fs::create_dir(place.path("conf.d/none")).expect("it is ours");
    let said = place.check();
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let expected = format!(
        "{} with 2 included files can be used: 1 listener, 2 routes, ",
        place.shown("onrush.toml")
    );
    assert!(said.out.starts_with(&expected), "{said:?}");
}

#[test]
fn check_reports_unreadable_includes() {
    let place = Place::new(&[
        (
            "onrush.toml",
            "include = [\n  \"none.toml\",\n  \"none/*.toml\",\n  \"link.toml\",\n  \"conf.d\",\n  \"conf.d/*/x.toml\",\n]\n",
        ),
        ("conf.d/a.toml", ""),
    ]);
    std::os::unix::fs::symlink("onrush.toml", place.path("link.toml")).expect("it is ours");
    let said = place.check();
    assert_eq!(said.code, Some(1), "{said:?}");
    let path = place.shown("onrush.toml");
    let lines: Vec<&str> = said
        .err
        .lines()
        .filter(|line| line.starts_with(&path))
        .collect();
    let expected = [
        format!(
            "{path}:2:3: cannot include {}: No such file or directory (os error 2)",
            place.shown("none.toml")
        ),
        format!(
            "{path}:4:3: {} is the main configuration file, which cannot be included: expected other files",
            place.shown("link.toml")
        ),
        format!(
            "{path}:5:3: cannot include {}: it is a directory: expected a file, or a pattern such as \"conf.d/*.toml\"",
            place.shown("conf.d")
        ),
    ];
    assert_eq!(lines, expected, "{said:?}");
}

#[test]
fn check_warns_of_missing_include_directory() {
    let text = format!(
        "include = \"conf.d/*.toml\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{}",
        responding("one")
    );
    let place = Place::new(&[("onrush.toml", &text)]);
    let said = place.check();
    assert_eq!(said.code, Some(0), "{said:?}");
    let expected = format!(
        "{}:1:11: warning: include matches no file: directory {} does not exist\n",
        place.shown("onrush.toml"),
        place.shown("conf.d")
    );
    assert!(said.err.starts_with(&expected), "{said:?}");
    // An existing directory may be empty.
    fs::create_dir(place.path("conf.d")).expect("it is ours");
    let said = place.check();
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
}

#[test]
fn reload_lists_changed_files() {
    let place = Place::new(&[
        ("onrush.toml", FIRST),
        ("conf.d/b.toml", &responding("one")),
    ]);
    let serve = place.serve(&[]);
    assert_eq!(serve.body(), "one");
    let reload = |words: &str| {
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for(words)
    };
    place.write("conf.d/b.toml", &format!("\n{}", responding("two")));
    let said = reload("as generation 2: 1 change");
    let place_of = |name: &str, at: &str| format!("{}:{at}", place.shown(name));
    let expected = format!(
        "route[1].respond.body: \"one\" -> \"two\" ({})",
        place_of("conf.d/b.toml", "5:34")
    );
    serve.program.err.wait_for(&expected);
    assert!(!said.contains("listening"), "{said}");
    assert_eq!(serve.body(), "two");
    // Its name sorts before the other one.
    place.write("conf.d/a.toml", &responding("three"));
    reload("as generation 3: 1 change");
    let expected = format!("route[1]: added ({})", place_of("conf.d/a.toml", "2:1"));
    serve.program.err.wait_for(&expected);
    assert_eq!(serve.body(), "three");
    place.write("conf.d/a.toml", "[[route]]\nrespnd = 1\n");
    let said = reload(&place_of("conf.d/a.toml", "2:1: unknown key \"respnd\""));
    assert!(said.contains("generation 3 stays"), "{said}");
    assert_eq!(serve.body(), "three");
    fs::remove_file(place.path("conf.d/a.toml")).expect("it is there");
    reload("as generation 4: 1 change");
    let expected = format!(
        "route[1]: removed (it was {})",
        place_of("conf.d/a.toml", "2:1")
    );
    serve.program.err.wait_for(&expected);
    assert_eq!(serve.body(), "two");
}

#[test]
fn watch_notices_added_changed_and_removed_files() {
    let place = Place::new(&[
        ("onrush.toml", &format!("{FIRST}{}", responding("last"))),
        (
            "conf.d/z.toml",
            "[[route]]\npath = \"=/none\"\nsynthetic = true\n",
        ),
    ]);
    let serve = place.serve(&["--watch"]);
    let err = &serve.program.err;
    assert_eq!(serve.body(), "last");
    place.write("conf.d/.swap.toml", "an editor's own");
    place.write("conf.d/b.toml", &responding("came"));
    err.wait_for("as generation 2: 1 change");
    assert_eq!(serve.body(), "came");
    place.write("conf.d/b.toml", &responding("changed"));
    err.wait_for("as generation 3: 1 change");
    assert_eq!(serve.body(), "changed");
    // A newly included file with a mistake is watched from then on.
    place.write("more.toml", "threads = zero");
    let more = FIRST.replace("\"conf.d/*.toml\"", "[\"more.toml\", \"conf.d/*.toml\"]");
    place.write("onrush.toml", &more);
    err.wait_for("more.toml:1:11: not TOML");
    place.write("more.toml", &responding("mended"));
    err.wait_for("as generation 4: 2 changes");
    assert_eq!(serve.body(), "mended");
    fs::remove_file(place.path("conf.d/b.toml")).expect("it is there");
    let said = err.wait_for("as generation 5: 1 change");
    assert_eq!(
        said.matches("was rejected, generation").count(),
        1,
        "{said}"
    );
    assert!(!said.contains("no changes in the file"), "{said}");
    assert!(Path::new(&place.path("conf.d/.swap.toml")).exists());
}

#[test]
fn watch_survives_unreadable_directory() {
    let place = Place::new(&[("onrush.toml", FIRST), ("real/a.toml", &responding("one"))]);
    let lead_to = |name: &str| {
        let next = place.path("next");
        std::os::unix::fs::symlink(name, &next).expect("it is free");
        fs::rename(&next, place.path("conf.d")).expect("it is ours");
    };
    lead_to("real");
    let serve = place.serve(&["--watch"]);
    assert_eq!(serve.body(), "one");
    // A link to itself, which not even root can resolve.
    lead_to("conf.d");
    serve.program.err.wait_for("cannot list");
    place.write("real/a.toml", &responding("two"));
    lead_to("real");
    serve.program.err.wait_for("is in force as generation 2");
    assert_eq!(serve.body(), "two");
    serve.stop();
}

#[test]
fn include_does_not_wait_for_pipe() {
    let place = Place::new(&[("onrush.toml", FIRST)]);
    fs::create_dir_all(place.path("conf.d")).expect("it is ours");
    let pipe = place.path("conf.d/a.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("it is there").success());
    // With a writer that sends nothing.
    let writer = fs::OpenOptions::new().read(true).write(true).open(&pipe);
    let _writer = writer.expect("it is ours");
    let said = place.check();
    assert_eq!(said.code, Some(1), "{said:?}");
    let words = format!(
        "cannot include {}: it is a pipe: expected a file",
        pipe.display()
    );
    assert!(said.err.contains(&words), "{said:?}");
}

#[test]
fn secrets_of_included_files_are_hidden() {
    let socket = tempfile::tempdir().expect("a directory");
    let admin = socket.path().join("admin").display().to_string();
    let secret = "[[route]]\npath = \"/a\"\nsynthetic = true\nresponse_headers = { set = { X-Key = \"hush\" } }\n";
    let first = format!(
        "{FIRST}{}[admin]\naddress = \"unix:{admin}\"\n",
        responding("one")
    );
    let place = Place::new(&[("onrush.toml", &first), ("conf.d/a.toml", secret)]);
    let _serve = place.serve(&[]);
    let said = run_onrush(&["ctl", "--address", &format!("unix:{admin}"), "config"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let expected = format!(
        "\n# {}, included\n[[route]]\npath = \"/a\"\nsynthetic = true\nresponse_headers = {{ set = {{ X-Key = \"(hidden)\" }} }}\n",
        place.shown("conf.d/a.toml")
    );
    assert!(said.out.ends_with(&expected), "{said:?}");
    assert!(
        said.out
            .starts_with(&format!("# {}, ", place.shown("onrush.toml"))),
        "{said:?}"
    );
}
