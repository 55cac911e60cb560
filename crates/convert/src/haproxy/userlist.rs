//! The users that a condition of HAProxy accepts.

/// Users that a condition accepts: `http_auth(LIST)`, `http_auth_group(LIST) GROUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Userlist {
    pub(super) name: String,
    /// Only users in one of these groups.
    pub(super) groups: Option<Vec<String>>,
}

impl Userlist {
    /// The list that the words of an ACL name.
    pub(super) fn of(words: &[String]) -> Option<Userlist> {
        let (first, values) = words.split_first()?;
        let argument = |name: &str| first.strip_prefix(name)?.strip_suffix(')');
        if let Some(name) = argument("http_auth(") {
            return Some(Userlist {
                name: name.to_owned(),
                groups: None,
            });
        }
        let name = argument("http_auth_group(")?;
        Some(Userlist {
            name: name.to_owned(),
            groups: Some(values.to_vec()),
        })
    }

    /// Whether all users of this list are in the other list.
    pub(super) fn is_within(&self, other: &Userlist) -> bool {
        let is_whole = other.groups.is_none() || self.groups == other.groups;
        self.name == other.name && is_whole
    }
}
