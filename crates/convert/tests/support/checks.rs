//! Properties of the converter that hold for any bytes, for generated tests and the fuzzer.

use std::path::Path;

use onrush_convert::{Conversion, Files, Guards, InputError, haproxy, nginx};

/// One file that has every name, so that it includes itself, in a directory with a few names.
struct One<'a>(&'a str);

impl Files for One<'_> {
    fn read(&self, path: &Path) -> Result<String, String> {
        match path.to_string_lossy().contains("none") {
            true => Err("No such file".to_owned()),
            false => Ok(self.0.to_owned()),
        }
    }

    fn list(&self, _directory: &Path) -> Vec<String> {
        vec!["a.conf".to_owned(), "none.pem".to_owned()]
    }
}

/// Checks that the result is a configuration of Onrush, or an error with an existing line.
fn holds(text: &str, outcome: Result<Conversion, InputError>) {
    match outcome {
        Ok(conversion) => {
            if let Err(defect) = conversion.verify() {
                panic!("{text}\nbecomes\n{}\n{defect}", conversion.text);
            }
        }
        Err(unusable) => {
            let lines = text.split('\n').count();
            assert!(unusable.line.is_none_or(|line| (1..=lines).contains(&line)));
            assert!(!unusable.message.is_empty());
        }
    }
}

pub(crate) fn nginx_any(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let path = Path::new("/etc/nginx/nginx.conf");
    holds(
        &text,
        nginx::convert(&One(&text), path, Path::new("/etc/nginx"), Guards::Closed),
    );
}

pub(crate) fn haproxy_any(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let path = Path::new("/etc/haproxy/haproxy.cfg");
    holds(
        &text,
        haproxy::convert(&One(&text), path, Path::new("/etc/haproxy"), Guards::Closed),
    );
}
