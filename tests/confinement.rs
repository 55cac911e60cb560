//! `[process] landlock`: neither this process nor its successor in an upgrade can open files outside the configured
//! directories, and a configuration that needs such files is refused as a whole. Without Landlock in the kernel, the
//! server reports that and these tests are skipped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Serve, drivers, run_onrush, until};
use crate::upgrading::Successor;

/// A site with its log, and files beside it.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place { directory };
        for (name, text) in [
            ("conf/none", ""),
            ("site/page", "a page"),
            ("next/page", "the next page"),
            ("extra/1/page", "an extra page"),
            ("beside/page", "a page beside it"),
        ] {
            let path = place.path(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("it is ours");
            fs::write(path, text).expect("it is ours");
        }
        fs::create_dir(place.path("log")).expect("it is ours");
        place.lead_to("site");
        place
    }

    /// Points the deployment's link to this directory.
    fn lead_to(&self, name: &str) {
        symlink(self.path(name), self.path("made")).expect("it is ours");
        fs::rename(self.path("made"), self.path("current")).expect("it is ours");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a configuration that serves the files of `site` and writes `log`.
    fn configure(&self, io: &str, landlock: &str, site: &str, log: &str) -> PathBuf {
        let path = self.path("conf/onrush.toml");
        let [site, log, extra] = [site, log, "extra"].map(|name| self.path(name));
        let (site, log, extra) = (site.display(), log.display(), extra.display());
        let text = format!(
            "io = \"{io}\"\nthreads = 1\n[log]\naccess = \"{log}\"\n\
             [process]\nlandlock = {landlock}\nlandlock_read = [\"{extra}\"]\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[route]]\nfiles = {{ root = \"{site}\" }}\n"
        );
        fs::write(&path, text).expect("it is ours");
        path
    }
}

fn body_of(serve: &Serve, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    serve.connect().exchange(request.as_bytes())
}

fn status_of(serve: &Serve, path: &str) -> String {
    let response = body_of(serve, path);
    response.lines().next().unwrap_or_default().to_owned()
}

fn started(file: &Path) -> Option<Serve> {
    let serve = Serve::start(&["--config", &file.display().to_string()]);
    if serve
        .start_up_lines
        .contains("Landlock: not supported by this kernel")
    {
        eprintln!("skipped: this kernel has no Landlock");
        serve.stop();
        return None;
    }
    assert!(
        serve.start_up_lines.contains("\n  Landlock (ABI "),
        "{}",
        serve.start_up_lines
    );
    Some(serve)
}

#[test]
fn unconfigured_directories_cannot_be_opened() {
    for io in drivers() {
        let place = Place::new();
        // Without confinement, a changed link is followed.
        let file = place.configure(io, "false", "current", "log/access.log");
        let open = Serve::start(&["--config", &file.display().to_string()]);
        place.lead_to("beside");
        until("the other directory", || {
            body_of(&open, "/page").ends_with("beside it").then_some(())
        });
        open.stop();
        place.lead_to("site");
        let file = place.configure(io, "true", "current", "log/access.log");
        let Some(serve) = started(&file) else {
            return;
        };
        assert!(body_of(&serve, "/page").ends_with("\r\n\r\na page"));
        // A link to a directory in `landlock_read` is followed.
        place.lead_to("extra/1");
        until("the other directory", || {
            body_of(&serve, "/page")
                .ends_with("an extra page")
                .then_some(())
        });
        place.lead_to("beside");
        serve.program.signal(Signal::HUP);
        let said = serve.program.err.wait_for("was rejected, generation");
        assert!(said.contains("Landlock confines it"), "{said}");
        let seen = body_of(&serve, "/page");
        assert!(
            seen.ends_with("an extra page") || seen.starts_with("HTTP/1.1 403 "),
            "{seen}"
        );
        place.lead_to("site");
        // A rotated log is created again, in the directory that the confinement allows.
        fs::rename(place.path("log/access.log"), place.path("log/1")).expect("it is ours");
        serve.program.signal(Signal::USR1);
        until("lines in the file that is made anew", || {
            // Not all of them get 200: a changed link is noticed within a second.
            body_of(&serve, "/page");
            let log = fs::read_to_string(place.path("log/access.log"));
            log.is_ok_and(|log| log.contains("/page")).then_some(())
        });
        serve.stop();
    }
}

#[test]
fn unconfinable_directories_are_reported() {
    let place = Place::new();
    place.configure("auto", "true", "site", "log/access.log");
    let file = place.path("conf/onrush.toml");
    let text = fs::read_to_string(&file).expect("it is ours");
    let absent = place.path("absent").display().to_string();
    let named = text.replace(
        "landlock_read = [",
        &format!("landlock_read = [\"/\", \"{absent}\", "),
    );
    fs::write(&file, named).expect("it is ours");
    let Some(serve) = started(&file) else {
        return;
    };
    serve
        .program
        .err
        .wait_for("/ is the root directory, so Landlock restricts nothing below it");
    let said = serve
        .program
        .err
        .wait_for("it will be inaccessible even if it is created later");
    assert!(said.contains(&absent), "{said}");
    serve.stop();
    fs::write(&file, &text).expect("it is ours");
    let Some(serve) = started(&file) else {
        return;
    };
    // Not even root opens a device that was not configured.
    let log = place.path("log/access.log").display().to_string();
    fs::write(&file, text.replace(&log, "/dev/full")).expect("it is ours");
    serve.program.signal(Signal::HUP);
    let said = serve.program.err.wait_for("was rejected, generation");
    assert!(
        said.contains("/dev/full") && said.contains("ermission denied"),
        "{said}"
    );
    serve.stop();
}

#[test]
fn reload_cannot_extend_confinement() {
    let place = Place::new();
    let file = place.configure("auto", "true", "site", "log/access.log");
    let Some(serve) = started(&file) else {
        return;
    };
    let refused = |site: &str, log: &str, what: &str| {
        place.configure("auto", "true", site, log);
        let process = serve.program.pid().to_string();
        let reloaded = run_onrush(&["ctl", "--pid", &process, "reload"]);
        assert_eq!(reloaded.code, Some(1), "{reloaded:?}");
        let said = &reloaded.err;
        assert!(
            said.contains(what) && said.contains("Landlock confines it"),
            "{reloaded:?}"
        );
        assert_eq!(status_of(&serve, "/page"), "HTTP/1.1 200 OK");
    };
    let next = place.path("next").display().to_string();
    refused("next", "log/access.log", &format!("may not read {next}"));
    let beside = place.path("beside").display().to_string();
    refused(
        "site",
        "beside/access.log",
        &format!("may not make files in {beside}"),
    );
    // Directories in `landlock_read` can be used after a reload.
    place.configure("auto", "true", "extra/1", "log/access.log");
    serve.program.signal(Signal::HUP);
    serve.program.err.wait_for("as generation 2");
    assert!(body_of(&serve, "/page").ends_with("an extra page"));
    serve.stop();
}

#[test]
fn upgrade_keeps_confinement() {
    let place = Place::new();
    let file = place.configure("auto", "true", "site", "log/access.log");
    let Some(serve) = started(&file) else {
        return;
    };
    // The new process could not serve this, and fails before it takes anything over.
    place.configure("auto", "true", "next", "log/access.log");
    serve.program.signal(Signal::USR2);
    let said = serve.program.err.wait_for("failed to start serving");
    assert!(said.contains("Landlock confines it"), "{said}");
    assert_eq!(status_of(&serve, "/page"), "HTTP/1.1 200 OK");
    place.configure("auto", "true", "site", "log/access.log");
    serve.program.signal(Signal::USR2);
    let next = Successor::of(&serve, 1);
    serve.program.out.wait_for("served ");
    assert_eq!(status_of(&serve, "/page"), "HTTP/1.1 200 OK");
    let process = next.0.as_raw_nonzero().to_string();
    let status = run_onrush(&["ctl", "--pid", &process, "status"]);
    assert!(status.out.contains("\nLandlock, ABI "), "{status:?}");
    drop(next);
    serve.program.finish();
}
