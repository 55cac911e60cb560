//! Users and groups of the system.

use super::Invalid;
use crate::plan::{Account, RunAs};

/// Maximum length of a name: LOGIN_NAME_MAX of Linux without the final NUL (limits.h(0p)).
const NAME_MAX: usize = 255;

/// Parses a user or group: a name such as `www-data`, or a number.
pub fn parse_account(text: &str) -> Result<Account, Invalid> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        // The largest number means "unchanged" (setresuid(2)).
        return match text.parse() {
            Ok(number) if number != u32::MAX => Ok(Account::Number(number)),
            _ => Err(Invalid::new(format!(
                "{text} is not the number of a user or group: expected 0 to {}",
                u32::MAX - 1
            ))),
        };
    }
    // Names that the databases can hold (passwd(5), group(5)); systems may allow fewer.
    let is_name = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b':' | b',' | b'/');
    match (1..=NAME_MAX).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(is_name)
    {
        true => Ok(Account::Name(text.to_owned())),
        false => Err(Invalid::new(format!(
            "{text:?} is not a user or group: expected a name such as \"www-data\", or a number"
        ))),
    }
}

/// Parses the user and group of the process: `USER` or `USER:GROUP`.
pub fn parse_run_as(text: &str) -> Result<RunAs, Invalid> {
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    Ok(RunAs {
        user: parse_user(user)?,
        group: group.map(parse_account).transpose()?,
    })
}

pub(crate) fn parse_user(text: &str) -> Result<Account, Invalid> {
    match parse_account(text)? {
        Account::Number(0) => Err(Invalid::new(
            "user 0 is root, and the server switches users to drop root's privileges: expected another user, such as \"www-data\"",
        )),
        account => Ok(account),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_is_name_or_numeric_id() {
        for (text, account) in [
            ("www-data", Account::Name("www-data".into())),
            ("_apt", Account::Name("_apt".into())),
            ("user@example.com", Account::Name("user@example.com".into())),
            ("0", Account::Number(0)),
            ("65534", Account::Number(65_534)),
            ("4294967294", Account::Number(u32::MAX - 1)),
        ] {
            assert_eq!(parse_account(text).as_ref(), Ok(&account), "{text}");
        }
        for text in ["", "-1", "a b", "a:b", "4294967295", "99999999999", "a/b"] {
            parse_account(text).expect_err(text);
        }
    }

    #[test]
    fn run_as_has_user_and_group() {
        let run_as = parse_run_as("nobody:33").expect("both");
        assert_eq!(run_as.user, Account::Name("nobody".into()));
        assert_eq!(run_as.group, Some(Account::Number(33)));
        assert_eq!(parse_run_as("nobody").expect("a user").group, None);
        for text in ["", ":33", "nobody:", "0", "0:33", "a:b:c"] {
            parse_run_as(text).expect_err(text);
        }
    }
}
