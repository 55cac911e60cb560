//! Meta commands: mg, ms, md, ma, me.

use super::cache::{Cache, StoreResult};
use super::change::{CountResult, StoreRequest, increment, store};
use super::command::{Direction, Mode, Step};
use super::item::{Expiry, Item, Moment, value};
use super::meta::Meta;
use super::output::ResponseBuffer;
use super::reply::{Refusal, Reply};

/// Writes a property of an item for a flag.
fn answer_fact(item: &Item, letter: u8, now: Moment, answers: &mut ResponseBuffer) {
    let number = match letter {
        b's' => item.bytes().len() as u64,
        b'c' => item.cas,
        b'f' => item.flags.into(),
        b'l' => now.seconds.0.saturating_sub(item.accessed.0),
        b'h' => item.is_fetched.into(),
        b't' => match item.expiry.left(now.seconds) {
            Some(left) => left,
            None => return answers.text(b" t-1"),
        },
        _ => return,
    };
    answers.text(&[b' ', letter]);
    answers.number(number);
}

pub(super) fn get(cache: &mut Cache, meta: &Meta<'_>, now: Moment, answers: &mut ResponseBuffer) {
    let mut is_new = false;
    if let Some(exptime) = meta.vivify
        && cache.find(&meta.key, now.seconds).is_none()
    {
        let item = Item::new(value(&[]), 0, Expiry::from_exptime(exptime, now));
        is_new = cache.set(&meta.key, item, now.seconds) != StoreResult::Not;
    }
    let Some(item) = cache.get(&meta.key, now.seconds) else {
        if meta.reply == Reply::Wanted {
            answers.text(b"EN");
            meta.answer_flags(answers, |_, _| {});
            answers.text(b"\r\n");
        }
        return;
    };
    match meta.wants_value {
        true => {
            answers.text(b"VA ");
            answers.number(item.bytes().len() as u64);
        }
        false => answers.text(b"HD"),
    }
    // Whether less time remains than the client's limit for recaching.
    let is_due = |recache: i32, item: &Item| match (Expiry::from_exptime(recache, now), item.expiry)
    {
        (Expiry::At(wanted), Expiry::At(at)) => at < wanted,
        (Expiry::Never, _) | (_, Expiry::Never) => false,
    };
    let mut wins = is_new;
    if let Some(exptime) = meta.touch {
        item.expiry = Expiry::from_exptime(exptime, now);
    }
    if let Some(recache) = meta.recache {
        wins |= !is_new && !item.is_won && is_due(recache, item);
    }
    meta.answer_flags(answers, |letter, answers| {
        answer_fact(item, letter, now, answers)
    });
    if item.is_won {
        answers.text(b" Z");
    }
    if item.is_stale {
        answers.text(b" X");
        wins |= !item.is_won;
    }
    if wins {
        answers.text(b" W");
        item.is_won = true;
    }
    if !meta.is_untracked {
        item.is_fetched = true;
        item.accessed = now.seconds;
    }
    answers.text(b"\r\n");
    if meta.wants_value {
        answers.value(&item.value);
    }
}

pub(super) fn put(
    cache: &mut Cache,
    (meta, mode, value): (&Meta<'_>, Mode, &[u8]),
    now: Moment,
    answers: &mut ResponseBuffer,
) {
    let wish = StoreRequest {
        key: &meta.key,
        mode,
        flags: meta.client_flags,
        expiry: Expiry::from_exptime(meta.touch.unwrap_or(0), now),
        value,
        required_cas: meta.cas,
        is_invalidating: meta.is_invalidating,
    };
    let (code, cas) = match store(cache, wish, now.seconds) {
        StoreResult::As(_) if meta.reply == Reply::Unwanted => return,
        StoreResult::As(cas) => ("HD", cas),
        StoreResult::Not => ("NS", 0),
        StoreResult::Exists => ("EX", 0),
        StoreResult::NotFound => ("NF", 0),
    };
    answers.text(code.as_bytes());
    meta.answer_flags(answers, |letter, answers| {
        if letter == b'c' {
            answers.text(b" c");
            answers.number(cas);
        }
    });
    answers.text(b"\r\n");
}

pub(super) fn delete(
    cache: &mut Cache,
    meta: &Meta<'_>,
    now: Moment,
    answers: &mut ResponseBuffer,
) {
    cache.counts.deletes += 1;
    let there = cache.find(&meta.key, now.seconds).map(|item| item.cas);
    let code = match there {
        None => "NF",
        Some(cas) if meta.cas.is_some_and(|wanted| wanted != cas) => "EX",
        Some(_) => {
            cache.counts.delete_hits += 1;
            match meta.is_invalidating {
                true => invalidate(cache, meta, now),
                false => drop(cache.remove(&meta.key, now.seconds)),
            }
            if meta.reply == Reply::Unwanted {
                return;
            }
            "HD"
        }
    };
    answers.text(code.as_bytes());
    meta.answer_flags(answers, |_, _| {});
    answers.text(b"\r\n");
}

/// Marks the item as stale; clients may use it until one has stored a new value.
fn invalidate(cache: &mut Cache, meta: &Meta<'_>, now: Moment) {
    let cas = cache.next_cas();
    let Some(item) = cache.find(&meta.key, now.seconds) else {
        return;
    };
    if let Some(exptime) = meta.touch {
        item.expiry = Expiry::from_exptime(exptime, now);
    }
    item.is_stale = true;
    item.is_won = false;
    item.cas = cas;
}

pub(super) fn step(
    cache: &mut Cache,
    (meta, direction): (&Meta<'_>, Direction),
    now: Moment,
    answers: &mut ResponseBuffer,
) -> Result<(), Refusal> {
    let by = Step {
        direction,
        by: meta.delta,
    };
    let (number, is_new) = match increment(cache, (&meta.key, by), meta.cas, now.seconds) {
        CountResult::To(_) if meta.reply == Reply::Unwanted => {
            touch(cache, meta, now);
            return Ok(());
        }
        CountResult::To(number) => (number, false),
        CountResult::NotFound if meta.vivify.is_some() => {
            let exptime = meta.vivify.unwrap_or_default();
            let text = value(&[itoa::Buffer::new().format(meta.initial).as_bytes()]);
            let item = Item::new(text, 0, Expiry::from_exptime(exptime, now));
            cache.set(&meta.key, item, now.seconds);
            (meta.initial, true)
        }
        CountResult::NotFound => return answer_nothing("NF", meta, answers),
        CountResult::Exists => return answer_nothing("EX", meta, answers),
        CountResult::NotNumeric => {
            let text = "CLIENT_ERROR cannot increment or decrement non-numeric value";
            return Err(Refusal::with_text(text));
        }
    };
    if !is_new || meta.touch.is_some() {
        touch(cache, meta, now);
    }
    let text = itoa::Buffer::new().format(number).to_owned();
    match meta.wants_value {
        true => {
            answers.text(b"VA ");
            answers.number(text.len() as u64);
        }
        false => answers.text(b"HD"),
    }
    let item = cache.find(&meta.key, now.seconds).cloned();
    meta.answer_flags(answers, |letter, answers| {
        if let (b'c' | b't', Some(item)) = (letter, &item) {
            answer_fact(item, letter, now, answers);
        }
    });
    answers.text(b"\r\n");
    if meta.wants_value {
        answers.line(text.as_bytes());
    }
    Ok(())
}

fn touch(cache: &mut Cache, meta: &Meta<'_>, now: Moment) {
    if let (Some(exptime), Some(item)) = (meta.touch, cache.find(&meta.key, now.seconds)) {
        item.expiry = Expiry::from_exptime(exptime, now);
    }
}

fn answer_nothing(
    code: &str,
    meta: &Meta<'_>,
    answers: &mut ResponseBuffer,
) -> Result<(), Refusal> {
    answers.text(code.as_bytes());
    meta.answer_flags(answers, |_, _| {});
    answers.text(b"\r\n");
    Ok(())
}

/// Writes the metadata of an item for debugging.
pub(super) fn debug(cache: &mut Cache, meta: &Meta<'_>, now: Moment, answers: &mut ResponseBuffer) {
    cache.counts.metas += 1;
    let Some(item) = cache.find(&meta.key, now.seconds) else {
        return answers.line(b"EN");
    };
    answers.text(b"ME ");
    meta.put_key(answers);
    let left = match item.expiry.left(now.seconds) {
        None => "-1".to_owned(),
        Some(left) => left.to_string(),
    };
    let age = now.seconds.0.saturating_sub(item.accessed.0);
    let fetched = if item.is_fetched { "yes" } else { "no" };
    let line = format!(
        " exp={left} la={age} cas={} fetch={fetched} cls=1 size={}",
        item.cas,
        item.value.len()
    );
    answers.line(line.as_bytes());
}
