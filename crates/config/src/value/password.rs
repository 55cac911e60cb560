//! Checks the format and cost of password hashes. Nothing is hashed here.

use super::Invalid;
use crate::limits;

/// Checks that a hash is bcrypt (`$2a$`, `$2b$`, `$2y$`), argon2id or SHA-crypt (`$5$`, `$6$`), within [`limits`].
pub fn check_password_hash(hash: &str) -> Result<(), Invalid> {
    if hash.starts_with("$2") {
        return check_bcrypt(hash).ok_or_else(|| {
            not_a_hash(format!(
                "\"$2y$\", a cost of 4 to {}, and 53 characters",
                limits::BCRYPT_COST_MAX
            ))
        });
    }
    if hash.starts_with("$argon2") {
        return check_argon2id(hash).ok_or_else(|| {
            not_a_hash(format!(
                "\"$argon2id$v=19$m=…,t=…,p=…$SALT$HASH\" of at most {} MiB, {} passes and {} lanes",
                limits::ARGON2_KIB_MAX >> 10,
                limits::ARGON2_PASSES_MAX,
                limits::ARGON2_LANES_MAX
            ))
        });
    }
    if hash.starts_with("$5$") || hash.starts_with("$6$") {
        return check_sha_crypt(hash).ok_or_else(|| {
            not_a_hash(format!(
                "\"$6$SALT$HASH\", or with \"rounds=\" of 1000 to {} before the salt",
                limits::SHA_CRYPT_ROUNDS_MAX
            ))
        });
    }
    if hash.starts_with("$apr1$") || hash.starts_with("$1$") || hash.starts_with("{SHA}") {
        return Err(Invalid::new(
            "this kind of hash is too weak against brute force: expected bcrypt, argon2id or SHA-crypt, made by \"htpasswd -nB NAME\" or \"openssl passwd -6\"",
        ));
    }
    Err(Invalid::new(
        "this is not a password hash: expected bcrypt, argon2id or SHA-crypt, made by \"htpasswd -nB NAME\" or \"openssl passwd -6\"",
    ))
}

/// The message omits the hash, because it may be written to logs.
fn not_a_hash(expected: String) -> Invalid {
    Invalid::new(format!(
        "this password hash cannot be used: expected {expected}"
    ))
}

fn check_bcrypt(hash: &str) -> Option<()> {
    let rest = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .find_map(|prefix| hash.strip_prefix(prefix))?;
    let (cost, digest) = rest.split_once('$')?;
    let cost = (cost.len() == 2).then(|| number(cost, 4..=limits::BCRYPT_COST_MAX))?;
    (cost.is_some() && digest.len() == 53 && is_base64(digest)).then_some(())
}

fn check_argon2id(hash: &str) -> Option<()> {
    let rest = hash.strip_prefix("$argon2id$v=19$")?;
    let mut parts = rest.split('$');
    let (parameters, salt, digest) = (parts.next()?, parts.next()?, parts.next()?);
    let mut values = parameters.split(',');
    number(
        values.next()?.strip_prefix("m=")?,
        8..=limits::ARGON2_KIB_MAX,
    )?;
    number(
        values.next()?.strip_prefix("t=")?,
        1..=limits::ARGON2_PASSES_MAX,
    )?;
    number(
        values.next()?.strip_prefix("p=")?,
        1..=limits::ARGON2_LANES_MAX,
    )?;
    let is_whole = parts.next().is_none() && values.next().is_none();
    let is_long = (11..=64).contains(&salt.len()) && (16..=128).contains(&digest.len());
    (is_whole && is_long && is_base64(salt) && is_base64(digest)).then_some(())
}

fn check_sha_crypt(hash: &str) -> Option<()> {
    let (prefix, rest) = hash.split_at(3);
    let rest = match rest.strip_prefix("rounds=") {
        Some(rest) => {
            let (rounds, rest) = rest.split_once('$')?;
            number(rounds, 1000..=limits::SHA_CRYPT_ROUNDS_MAX)?;
            rest
        }
        None => rest,
    };
    let (salt, digest) = rest.split_once('$')?;
    let length = if prefix == "$5$" { 43 } else { 86 };
    (salt.len() <= 16 && digest.len() == length && is_base64(digest)).then_some(())
}

fn number(digits: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_plain.then(|| digits.parse().ok())??;
    range.contains(&number).then_some(number)
}

/// Whether `text` has only characters of the three base64 alphabets of these hashes.
fn is_base64(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/' | b'+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_hashes_are_accepted() {
        let sha512 = format!("$6$salt${}", "a".repeat(86));
        let rounds = format!("$5$rounds=535000$salt${}", "a".repeat(43));
        for hash in [
            "$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b4dWRWJTmaaJObG",
            &sha512,
            &rounds,
        ] {
            assert_eq!(check_password_hash(hash), Ok(()), "{hash}");
        }
    }

    #[test]
    fn invalid_hash_error_does_not_leak_hash() {
        let expensive = format!("$6$rounds=9999999$salt${}", "a".repeat(86));
        for (hash, part) in [
            ("secret", "this is not a password hash"),
            ("", "this is not a password hash"),
            ("$apr1$abc$def", "too weak against brute force"),
            (
                "$2y$31$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
                "a cost of 4 to",
            ),
            ("$2y$10$short", "53 characters"),
            ("$2z$10$", "53 characters"),
            ("$argon2i$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$aaaa", "argon2id"),
            (
                "$argon2id$v=19$m=99999999,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub",
                "MiB",
            ),
            ("$6$salt$short", "$6$SALT$HASH"),
            (&expensive, "rounds="),
        ] {
            let error = check_password_hash(hash).expect_err(hash).to_string();
            assert!(error.contains(part), "{hash}: {error}");
            assert!(hash.is_empty() || !error.contains(hash), "{error}");
        }
    }
}
