//! Suggestions for misspelled words.

/// The word in `known` that is closest to `word`; `None` if none is close enough. Closeness is the Damerau-Levenshtein
/// distance, ignoring case; about a third of the letters may be wrong.
pub fn suggestion<'known>(
    word: &str,
    known: impl IntoIterator<Item = &'known str>,
) -> Option<&'known str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    known
        .into_iter()
        .map(|known| (known.chars().count().max(3) / 3, known))
        // Checked first, because computing the distance takes memory for the product of both lengths.
        .filter(|(slips_max, known)| length.abs_diff(known.chars().count()) <= *slips_max)
        .map(|(slips_max, known)| {
            let distance = strsim::damerau_levenshtein(&word, &known.to_lowercase());
            (distance, slips_max, known)
        })
        .filter(|(distance, slips_max, _)| distance <= slips_max)
        .min_by_key(|(distance, _, _)| *distance)
        .map(|(_, _, known)| known)
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn typo_suggests_known_word() {
        let long = "forward".repeat(100_000);
        let known = ["host", "path", "respond", "files", "synthetic", "forward"];
        for (word, expected) in [
            ("forwrad", Some("forward")),
            ("Path", Some("path")),
            ("repond", Some("respond")),
            ("file", Some("files")),
            ("root", None),
            ("x", None),
            ("", None),
            (long.as_str(), None),
        ] {
            assert_eq!(suggestion(word, known), expected, "of {word:?}");
        }
    }
}
