//! The nearest valid spelling of a word that is not known.

/// The word among `known` that `word` was probably meant to be; none when no word is near enough for the suggestion
/// to be a help. Nearness counts letters missing, added, changed or swapped, whatever their case; about a third of
/// the letters may be wrong.
pub(crate) fn nearest<'known>(
    word: &str,
    known: impl IntoIterator<Item = &'known str>,
) -> Option<&'known str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|known| {
            (
                strsim::damerau_levenshtein(&word, &known.to_lowercase()),
                known,
            )
        })
        .filter(|(distance, known)| *distance <= known.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_finds_its_word_and_another_word_does_not() {
        let known = ["host", "path", "respond", "files", "synthetic", "forward"];
        for (word, expected) in [
            ("forwrad", Some("forward")),
            ("Path", Some("path")),
            ("repond", Some("respond")),
            ("file", Some("files")),
            ("root", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "of {word:?}");
        }
    }
}
