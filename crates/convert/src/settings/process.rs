//! `[process]`: user and group of the server after it has opened its listeners.

use onrush_config::plan::Account;
use onrush_config::value::parse_run_as;

use crate::document::{Section, Value};

/// Explains a result without `[process] user`.
pub(crate) const NO_USER_NOTE: &str = "without [process] user the server keeps the privileges with which it is started, even if it is root";

/// Why a user cannot be written into `[process]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UserError {
    /// The user is root, which the server keeps if `[process]` has no user.
    Root,
    /// Onrush does not accept the user; with the reason.
    Invalid(String),
}

/// The section with this user and group; `origin` is the position of the directive. Fails for root and for invalid
/// names.
pub(crate) fn section(
    user: &str,
    group: Option<&str>,
    origin: String,
) -> Result<Section, UserError> {
    if user == "root" || user.parse() == Ok(0) {
        return Err(UserError::Root);
    }
    let written = match group {
        Some(group) => format!("{user}:{group}"),
        None => user.to_owned(),
    };
    let run_as = parse_run_as(&written).map_err(|why| UserError::Invalid(why.to_string()))?;
    let mut section = Section::new("[process]");
    section.put_with_comment("user", value(run_as.user), origin);
    if let Some(group) = run_as.group {
        section.put("group", value(group));
    }
    Ok(section)
}

fn value(account: Account) -> Value {
    match account {
        Account::Number(number) => Value::Number(number.into()),
        Account::Name(name) => Value::Text(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_user_is_written() {
        let written = |user: &str, group: Option<&str>| {
            section(user, group, "f:1".to_owned()).map(|section| section.to_string())
        };
        assert_eq!(
            written("www-data", Some("adm")),
            Ok("[process]\nuser = \"www-data\"    # f:1\ngroup = \"adm\"\n".to_owned())
        );
        assert_eq!(
            written("33", None),
            Ok("[process]\nuser = 33    # f:1\n".to_owned())
        );
        for root in ["root", "0", "00"] {
            assert_eq!(written(root, None), Err(UserError::Root), "{root}");
        }
        for (user, group) in [
            ("a b", None),
            ("", None),
            ("a", Some("")),
            ("a:b", Some("c")),
        ] {
            let unfit = written(user, group);
            assert!(matches!(unfit, Err(UserError::Invalid(_))), "{unfit:?}");
        }
    }
}
