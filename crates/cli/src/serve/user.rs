//! Users and groups: maps names in `/etc/passwd` (passwd(5)) and `/etc/group` (group(5)) to the kernel's numbers. Other
//! sources are not consulted, because the program is linked statically; users of a directory service are given by
//! number.

use std::fmt;
use std::path::Path;

use anyhow::{Context, ensure};
use onrush_config::plan::{Account, RunAs};
use onrush_engine::Identity;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Maximum bytes read from `/etc/passwd` or `/etc/group`: about a hundred thousand users.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// A user of this system, with names for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) identity: Identity,
    name: Option<String>,
    group_name: Option<String>,
}

/// `user nobody (65534)`.
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "user {name} ({})", self.identity.user),
            None => write!(f, "user {}", self.identity.user),
        }
    }
}

impl User {
    /// Looks up the user of `[process]` or `--user`.
    ///
    /// # Errors
    /// When the user or group does not exist, or is root.
    pub(crate) fn of(run_as: &RunAs) -> anyhow::Result<User> {
        let read = |path: &'static str| match onrush_file::read_text(Path::new(path), FILE_MAX) {
            Ok(text) => Ok(text),
            // Container images may have no users: numbers work.
            Err(_) if !Path::new(path).exists() => Ok(String::new()),
            Err(error) => Err(anyhow::Error::new(error)).context(path),
        };
        User::found(run_as, &read(PASSWD)?, &read(GROUP)?)
    }

    fn found(run_as: &RunAs, passwd: &str, groups: &str) -> anyhow::Result<User> {
        let entry = users(passwd).find(|entry| is_meant(&run_as.user, entry.name, entry.number));
        let number = match (&entry, &run_as.user) {
            (Some(entry), _) => entry.number,
            (None, Account::Number(number)) => *number,
            (None, Account::Name(name)) => anyhow::bail!(
                "user {name} is not in {PASSWD}; create it (useradd --system), or pass the number of a user from another directory service"
            ),
        };
        ensure!(
            number != 0,
            "user {} is root, and the server switches users to drop root's privileges",
            run_as.user
        );
        let group = match (&run_as.group, &entry) {
            (None, Some(entry)) => entry.group,
            (None, None) => anyhow::bail!(
                "user {number} has no entry in {PASSWD} for its group; set one (group, or --user {number}:GROUP)"
            ),
            (Some(Account::Number(group)), _) => *group,
            (Some(Account::Name(name)), _) => lines(groups)
                .find(|fields| fields.first() == Some(&&**name))
                .and_then(|fields| fields.get(2)?.parse().ok())
                .with_context(|| format!("group {name} is not in {GROUP}"))?,
        };
        let name = entry.map(|entry| entry.name.to_owned());
        let mut all = vec![group];
        for fields in lines(groups) {
            let [_, _, number, members] = fields[..] else {
                continue;
            };
            let is_member = members
                .split(',')
                .any(|member| Some(member) == name.as_deref());
            if let (true, Ok(number)) = (is_member, number.parse())
                && !all.contains(&number)
            {
                all.push(number);
            }
        }
        let group_name = lines(groups)
            .find(|fields| fields.get(2).and_then(|number| number.parse().ok()) == Some(group))
            .and_then(|fields| fields.first().map(|&name| name.to_owned()));
        Ok(User {
            identity: Identity {
                user: number,
                group,
                groups: all,
            },
            name,
            group_name,
        })
    }

    /// `group nogroup (65534)`.
    pub(crate) fn group(&self) -> String {
        match &self.group_name {
            Some(name) => format!("group {name} ({})", self.identity.group),
            None => format!("group {}", self.identity.group),
        }
    }
}

struct Entry<'text> {
    name: &'text str,
    number: u32,
    group: u32,
}

/// `name:password:UID:GID:…`
fn users(passwd: &str) -> impl Iterator<Item = Entry<'_>> {
    lines(passwd).filter_map(|fields| {
        Some(Entry {
            name: fields.first()?,
            number: fields.get(2)?.parse().ok()?,
            group: fields.get(3)?.parse().ok()?,
        })
    })
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(':').collect())
}

fn is_meant(account: &Account, name: &str, number: u32) -> bool {
    match account {
        Account::Name(wanted) => wanted == name,
        Account::Number(wanted) => *wanted == number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::value::parse_run_as;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n# a comment:x:1:1::/:\ntoor:x:0:0::/:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nweb:x:1001:33::/:/bin/false\nbroken\n";
    const GROUPS: &str = "root:x:0:\nwww-data:x:33:\nssl-cert:x:110:postgres,web\nadm:x:4:syslog,webmaster\nlogs:x:111:web\nbroken:x\n";

    fn found(text: &str) -> Result<(u32, u32, Vec<u32>), String> {
        let run_as = parse_run_as(text).expect("it can be read");
        let user = User::found(&run_as, PASSWD, GROUPS);
        let user = user.map_err(|error| error.to_string())?;
        let Identity {
            user,
            group,
            groups,
        } = user.identity;
        Ok((user, group, groups))
    }

    #[test]
    fn user_has_supplementary_groups() {
        assert_eq!(found("www-data"), Ok((33, 33, vec![33])));
        assert_eq!(found("33"), Ok((33, 33, vec![33])));
        assert_eq!(found("web"), Ok((1001, 33, vec![33, 110, 111])));
        assert_eq!(found("1001:logs"), Ok((1001, 111, vec![111, 110])));
        assert_eq!(found("web:7"), Ok((1001, 7, vec![7, 110, 111])));
        assert_eq!(found("4711:7"), Ok((4711, 7, vec![7])));
    }

    #[test]
    fn unknown_users_are_reported() {
        for (text, part) in [
            ("nobody", "user nobody is not in /etc/passwd"),
            ("toor", "is root"),
            ("4711", "set one (group, or --user 4711:GROUP)"),
            ("web:nogroup", "group nogroup is not in /etc/group"),
            ("broken", "user broken is not in"),
        ] {
            let said = found(text).expect_err("it cannot be meant");
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn known_user_and_group_names_are_shown() {
        let shown = |text: &str| {
            let run_as = parse_run_as(text).expect("it can be read");
            let user = User::found(&run_as, PASSWD, GROUPS).expect("it is there");
            format!("{user}, {}", user.group())
        };
        assert_eq!(shown("web"), "user web (1001), group www-data (33)");
        assert_eq!(shown("4711:7"), "user 4711, group 7");
    }
}
