//! Passwords of a `userlist`.

use super::proxy::words;
use super::state::State;
use super::work::Work;
use crate::directive::Directive;
use crate::document::Value;

/// Passwords out of a userlist, for those who have not said any.
pub(super) fn auth<'a>(
    work: &mut Work<'_, 'a>,
    line: &'a Directive,
    userlist: Option<String>,
    state: &mut State,
) {
    let Some(name) = userlist else {
        let why = "no userlist is asked for by http_auth in its condition";
        return work.notes.left_out(line, why);
    };
    let mut sections = work.sections.iter();
    let section =
        sections.find(|section| section.name() == "userlist" && section.argument(0) == name);
    let Some(section) = section else {
        return work
            .notes
            .left_out(line, format!("there is no userlist {name:?}"));
    };
    work.notes.carried(section);
    let mut users = Vec::new();
    for user in section.inside().iter().filter(|user| user.name() == "user") {
        let words = user.arguments();
        let hash = words.iter().position(|word| word == "password");
        let hash = hash.and_then(|at| words.get(at + 1));
        match hash.filter(|hash| onrush_config::value::check_password_hash(hash).is_ok()) {
            Some(hash) => {
                users.push((user.argument(0).to_owned(), Value::text(hash)));
                work.notes.carried(user);
            }
            None => work.notes.left_out(
                user,
                "hashes are bcrypt, argon2id or SHA-crypt, such as openssl passwd -6 makes; this user is not let in",
            ),
        }
    }
    if users.is_empty() {
        // Nobody is let in, as little as anybody who has no password.
        let nobody = "$6$rounds=5000$nobody$".to_owned() + &"/".repeat(86);
        users.push(("nobody".to_owned(), Value::Text(nobody)));
    }
    let words = words(line, 2);
    let realm = words.iter().position(|word| *word == "realm");
    let realm = realm.and_then(|at| words.get(at + 1)).copied();
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '"' | '\\');
    let realm: String = realm
        .unwrap_or_default()
        .chars()
        .filter(|letter| is_plain(*letter))
        .collect();
    let mut entries = vec![("users".to_owned(), Value::Table(users))];
    if !realm.is_empty() {
        entries.insert(0, ("realm".to_owned(), Value::Text(realm)));
    }
    state.auth = Some(Value::Table(entries));
    work.notes.carried(line);
}
