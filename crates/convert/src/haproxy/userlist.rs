//! The users that a condition accepts.

/// The users of `http_auth(LIST)` or `http_auth_group(LIST) GROUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Userlist {
    pub(super) name: String,
    /// If set, only users in one of these groups.
    pub(super) groups: Option<Vec<String>>,
}

impl Userlist {
    /// The list named by the words of an ACL.
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

    /// Whether the other list includes all users of this one.
    pub(super) fn is_within(&self, other: &Userlist) -> bool {
        let is_whole = other.groups.is_none() || self.groups == other.groups;
        self.name == other.name && is_whole
    }
}
