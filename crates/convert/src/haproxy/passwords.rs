//! `http-request auth` with the users of a `userlist`.

use super::proxy::words;
use super::state::State;
use super::userlist::Userlist;
use super::work::Context;
use crate::document::Value;
use crate::source::directive::Directive;

/// Requires a password of these lists. If the lists cannot be converted, all requests are refused.
pub(super) fn auth<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    lists: &[Userlist],
    state: &mut State,
) {
    let users = match (lists, &state.authorized) {
        ([list], None) => {
            state.authorized = Some(list.clone());
            users(work, line, list)
        }
        ([_], Some(_)) => Err("Onrush can only require passwords from one userlist".to_owned()),
        _ => Err(
            "expected one userlist in the condition, with http_auth or http_auth_group".to_owned(),
        ),
    };
    let mut users = users.unwrap_or_else(|why| {
        work.notes
            .left_out(line, format!("{why}; the route refuses every request"));
        Vec::new()
    });
    if users.is_empty() {
        // No password has this hash.
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

/// Names and password hashes of a list.
fn users<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    list: &Userlist,
) -> Result<Vec<(String, Value)>, String> {
    let mut sections = work.sections.iter();
    let section =
        sections.find(|section| section.name() == "userlist" && section.argument(0) == list.name);
    let Some(section) = section else {
        return Err(format!("section userlist {:?} does not exist", list.name));
    };
    if list
        .groups
        .iter()
        .flatten()
        .any(|name| name.starts_with('-'))
    {
        return Err("flags are not supported: expected names of groups".to_owned());
    }
    work.notes.carried(section);
    work.notes.carried(line);
    let mut users = Vec::new();
    for user in section.inside().iter().filter(|user| user.name() == "user") {
        if !list
            .groups
            .as_ref()
            .is_none_or(|groups| is_in(section, user, groups))
        {
            work.notes.carried(user);
            continue;
        }
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
                "the user cannot log in: expected a hash in bcrypt, argon2id or SHA-crypt, such as the output of openssl passwd -6",
            ),
        }
    }
    for group in section
        .inside()
        .iter()
        .filter(|line| line.name() == "group")
    {
        work.notes.carried(group);
    }
    Ok(users)
}

/// Whether a user is in one of the groups, according to the user's line or a group's line.
fn is_in(section: &Directive, user: &Directive, groups: &[String]) -> bool {
    let after = |line: &Directive, word: &str| {
        let at = line.words.iter().position(|known| known == word);
        at.and_then(|at| line.words.get(at + 1)).cloned()
    };
    let lists = |list: Option<String>, name: &str| {
        list.is_some_and(|list| list.split(',').any(|known| known == name))
    };
    groups.iter().any(|group| {
        let is_group = |line: &&Directive| line.name() == "group" && line.argument(0) == group;
        let mut lines = section.inside().iter().filter(is_group);
        lists(after(user, "groups"), group)
            || lines.any(|line| lists(after(line, "users"), user.argument(0)))
    })
}
