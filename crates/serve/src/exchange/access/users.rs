//! User names and password hashes from the configuration and from `htpasswd` files.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use onrush_config::limits::DIAGNOSTICS_MAX;
use onrush_config::plan::BasicAuth;
use onrush_config::value::check_password_hash;
use onrush_file::{Input, InputError};
use sha_crypt::ShaCrypt;

use crate::limits::USERS_FILE_BYTES_MAX;

#[derive(Debug)]
pub(crate) struct Users {
    hashes: HashMap<Box<[u8]>, Hash>,
    /// Compared with passwords of unknown users, so that they take as long as known ones.
    decoy: Hash,
}

/// A hash accepted by [`check_password_hash`].
#[derive(Clone)]
struct Hash(Box<str>);

/// Does not print the hash, which allows offline guessing.
impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl Users {
    /// Reads the users of the configuration and of its file, if any. Appends to `warnings`.
    ///
    /// # Errors
    /// All errors of the file, each with its line number.
    pub(crate) fn read(plan: &BasicAuth, warnings: &mut Vec<String>) -> Result<Self, Vec<String>> {
        let mut hashes = HashMap::new();
        for (name, hash) in &plan.users {
            hashes.insert(name.as_bytes().into(), Hash(hash.as_str().into()));
        }
        if let Some(path) = &plan.file {
            let text = read(path, warnings).map_err(|wrong| vec![wrong])?;
            let mut wrong = Vec::new();
            let mut more = 0;
            for (line, number) in text.lines().zip(1..) {
                match add(line, &mut hashes) {
                    Ok(()) => {}
                    Err(_) if wrong.len() == DIAGNOSTICS_MAX => more += 1,
                    Err(why) => wrong.push(format!("{}:{number}: {why}", path.display())),
                }
            }
            if more > 0 {
                wrong.push(format!("{}: and {more} more", path.display()));
            }
            if !wrong.is_empty() {
                return Err(wrong);
            }
        }
        let Some(decoy) = hashes.values().next().cloned() else {
            let file = plan.file.as_deref().unwrap_or(Path::new(""));
            return Err(vec![format!(
                "{}: contains no user: expected lines such as the output of \"htpasswd -nB NAME\"",
                file.display()
            )]);
        };
        Ok(Self { hashes, decoy })
    }

    /// Whether the password is this user's. Takes up to seconds, equally for unknown users.
    pub(super) fn verify(&self, user: &[u8], password: &[u8]) -> bool {
        let known = self.hashes.get(user);
        known.unwrap_or(&self.decoy).verify(password) && known.is_some()
    }
}

fn read(path: &Path, warnings: &mut Vec<String>) -> Result<String, String> {
    let cannot =
        |error: InputError| format!("cannot read the users of {}: {error}", path.display());
    let file = Input::open(path).map_err(cannot)?;
    let mode = file.metadata().permissions().mode();
    if mode & 0o004 != 0 {
        warnings.push(format!(
            "{}: all users of this machine can read its hashes: run chmod o-r on it",
            path.display()
        ));
    }
    file.read_text(USERS_FILE_BYTES_MAX).map_err(cannot)
}

/// Adds one line of a file. Errors contain neither the hash nor the line.
fn add(line: &str, hashes: &mut HashMap<Box<[u8]>, Hash>) -> Result<(), String> {
    let line = line.trim_end();
    if line.is_empty() || line.starts_with('#') {
        return Ok(());
    }
    if let Some(rest) = line.strip_prefix('\u{feff}') {
        let name = rest.split(':').next().unwrap_or_default();
        return Err(format!(
            "{}: a byte order mark (BOM) before it would be part of the name: save the file as UTF-8 without BOM",
            shown(name)
        ));
    }
    let (written, hash) = line
        .split_once(':')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected NAME:HASH")?;
    // RFC 7617 2: clients cannot send such a name.
    if let Some(bad) = written.chars().find(|letter| letter.is_control()) {
        return Err(format!(
            "{}: the name has a control character (U+{:04X}), which no client can send: write it without",
            shown(written),
            u32::from(bad)
        ));
    }
    let name = shown(written);
    check_password_hash(hash).map_err(|error| format!("{name}: {error}"))?;
    let before = hashes.insert(written.as_bytes().into(), Hash(hash.into()));
    match before {
        None => Ok(()),
        Some(_) => Err(format!("{name} already has a password")),
    }
}

/// The name as printed in messages: on one line, truncated.
fn shown(name: &str) -> String {
    const SHOWN_MAX: usize = 80;
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut shown: String = name.chars().take(SHOWN_MAX).map(printable).collect();
    if name.chars().count() > SHOWN_MAX {
        shown.push('…');
    }
    shown
}

impl Hash {
    fn verify(&self, password: &[u8]) -> bool {
        let hash = &*self.0;
        if hash.starts_with("$2") {
            // bcrypt ignores everything after 72 bytes.
            return bcrypt::verify(password, hash).unwrap_or(false);
        }
        if hash.starts_with("$argon2") {
            // The parameters come from the hash.
            let verify = |hash| Argon2::default().verify_password(password, &hash).is_ok();
            return PasswordHash::new(hash).is_ok_and(verify);
        }
        ShaCrypt::default().verify_password(password, hash).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    /// Hashes and their passwords from other programs: `htpasswd -nbB`, a test of the argon2 reference implementation,
    /// and `openssl passwd`.
    const HASHES: [(&str, &str); 4] = [
        (
            "$2y$04$OHAE55zIL4MRpPMejEHWd.CHlaz5DZ.pT2BdZvVLfzzFm5YCWH92.",
            "open sesame",
        ),
        (
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "password",
        ),
        (
            "$6$0123456789abcdef$HIBJgb6YTodyDIqA8MEivxB1lSweny3OwEelpvbz3JRZvUaTWOvmKLkwP3sw6YUxoDaTCN4gGIaTh4/9KjjVt/",
            "open sesame",
        ),
        (CHEAP, "open sesame"),
    ];

    const CHEAP: &str = "$5$0123456789abcdef$kRRqmK2ssHVZPWI94vRaV6.r0wGYmKw8tTF.iTYJ6Z/";

    fn users(written: &[(&str, &str)], file: Option<&str>) -> Result<Users, Vec<String>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("htpasswd");
        if let Some(text) = file {
            std::fs::write(&path, text).expect("a file");
        }
        let plan = BasicAuth {
            realm: "r".into(),
            users: written
                .iter()
                .map(|(name, hash)| (name.to_string(), hash.to_string()))
                .collect(),
            file: file.map(|_| path.into()),
        };
        let told = Users::read(&plan, &mut Vec::new());
        told.map_err(|wrong| {
            let place = format!("{}/", directory.path().display());
            wrong.iter().map(|line| line.replace(&place, "")).collect()
        })
    }

    #[test]
    fn password_hashes_of_other_tools_verify() {
        for (hash, password) in HASHES {
            let users = users(&[("ali", hash)], None).expect("a hash");
            assert!(users.verify(b"ali", password.as_bytes()), "{hash}");
            assert!(!users.verify(b"ali", &password.as_bytes()[1..]), "{hash}");
            assert!(!users.verify(b"baba", password.as_bytes()), "{hash}");
        }
    }

    #[test]
    fn users_file_has_one_user_per_line() {
        let text = format!("# staff\r\n\nali:{}\nb\u{e4}r:{}\r\n", CHEAP, HASHES[2].0);
        let users = users(&[("inline", CHEAP)], Some(&text)).expect("three users");
        for name in ["ali", "b\u{e4}r", "inline"] {
            assert!(users.verify(name.as_bytes(), b"open sesame"), "{name}");
        }
    }

    #[test]
    fn users_file_errors_have_line_numbers() {
        let twice = format!("ali:{0}\nali:{0}\n", CHEAP);
        for (text, said) in [
            ("ali", "htpasswd:1: expected NAME:HASH"),
            (":x", "htpasswd:1: expected NAME:HASH"),
            (
                "\nali:secret",
                "htpasswd:2: ali: this is not a password hash",
            ),
            (&*twice, "htpasswd:2: ali already has a password"),
            ("# nobody\n", "htpasswd: contains no user"),
            (
                "\u{feff}ali:x",
                "htpasswd:1: ali: a byte order mark (BOM) before it",
            ),
            (
                "a\0li:x",
                "htpasswd:1: a li: the name has a control character (U+0000)",
            ),
        ] {
            let wrong = users(&[], Some(text)).expect_err(text);
            assert!(wrong.len() == 1 && wrong[0].starts_with(said), "{wrong:?}");
        }
        let both = users(&[], Some("a\nb\n")).expect_err("two lines");
        assert_eq!(both.len(), 2);
        let many = users(&[], Some(&"a\n".repeat(100_000))).expect_err("no lines");
        assert_eq!(many.len(), DIAGNOSTICS_MAX + 1);
        let last = many.last().map(String::as_str);
        assert_eq!(last, Some("htpasswd: and 99950 more"));
    }

    #[test]
    fn world_readable_users_file_causes_warning() {
        let directory = tempfile::tempdir().expect("a directory");
        for (mode, count) in [(0o640, 0), (0o644, 1)] {
            let path = directory.path().join(format!("{mode:o}"));
            let mut options = std::fs::OpenOptions::new();
            drop(options.create_new(true).write(true).mode(mode).open(&path));
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("its owner");
            std::fs::write(&path, format!("ali:{}", CHEAP)).expect("a file");
            let plan = BasicAuth {
                realm: "r".into(),
                users: Vec::new(),
                file: Some(path.into()),
            };
            let mut warnings = Vec::new();
            Users::read(&plan, &mut warnings).expect("a user");
            assert_eq!(warnings.len(), count, "{warnings:?}");
        }
    }
}
