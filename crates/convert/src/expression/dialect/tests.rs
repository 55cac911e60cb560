//! Translated expressions match the same texts as PCRE. The expected results are from PCRE2 10.42.

use super::*;
use crate::expression::pcre::with_pcre_semantics;

/// Texts for the expressions of [`CASES`] and [`REFUSED`].
const TEXTS: [&[u8]; 32] = [
    b"",
    b"/",
    b"/a",
    b"/A",
    b"/a\n",
    b"/a\nb",
    b"/ab",
    b"/x.php",
    b"/x.php\n",
    b"/caf\xc3\xa9",
    b"/z\xc3\xa9",
    b"/\xc3",
    b"/\xff",
    b"/\xa0",
    b"/\x85",
    b"/x&y",
    b"/~",
    b"/-",
    b"/<b>",
    b"/[",
    b"/]",
    b"/^",
    b"/{2}",
    b"/a{,b}",
    b"/ b",
    b"/\t",
    b"/1",
    b"/_",
    b"/\xe2\x84\xaa",
    b"/K",
    b"/.git",
    b"/.well-known/x",
];

/// Expressions, and the indexes in [`TEXTS`] of the texts that they match in PCRE2 10.42.
const CASES: [(&str, &[usize]); 57] = [
    (r"^/caf\xc3\xa9", &[9]),
    (r"^/z\303\251", &[10]),
    (r"é$", &[9, 10]),
    (r"[<>&&]", &[15, 18]),
    (r"[!~~]", &[16]),
    (r"[+--]", &[17, 23, 31]),
    (r"[[(]", &[19]),
    (
        r"^/[[:^alpha:]]",
        &[
            11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28, 30, 31,
        ],
    ),
    (
        r"^/[^[:alpha:]]$",
        &[11, 12, 13, 14, 16, 17, 19, 20, 21, 25, 26, 27],
    ),
    (r"^/[[:punct:]]", &[16, 17, 18, 19, 20, 21, 22, 27, 30, 31]),
    (r"^/\h", &[13, 24, 25]),
    (
        r"^/\H$",
        &[2, 3, 4, 11, 12, 14, 16, 17, 19, 20, 21, 26, 27, 29],
    ),
    (r"^/\v", &[14]),
    (
        r"^/\N$",
        &[2, 3, 4, 11, 12, 13, 14, 16, 17, 19, 20, 21, 25, 26, 27, 29],
    ),
    (r"\.php$", &[7, 8]),
    (r"\.php\Z", &[7, 8]),
    (r"\.php\z", &[7]),
    (r"\A/a", &[2, 4, 5, 6, 23]),
    (
        r"^/.$",
        &[2, 3, 4, 11, 12, 13, 14, 16, 17, 19, 20, 21, 25, 26, 27, 29],
    ),
    (
        r"^/\W",
        &[
            11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 24, 25, 28, 30, 31,
        ],
    ),
    (r"^/\w$", &[2, 3, 4, 26, 27, 29]),
    (
        r"^/\S$",
        &[2, 3, 4, 11, 12, 13, 14, 16, 17, 19, 20, 21, 26, 27, 29],
    ),
    (r"\Q[\E", &[19]),
    (r"^/\Qx.\Ep", &[7, 8]),
    (r"^/a\E?$", &[1, 2, 4]),
    (r"\<", &[18]),
    (r"^/\x41", &[3]),
    (r"^/\x{2e}", &[30, 31]),
    (r"^/\x9", &[25]),
    (r"^/[\x80-\xff]", &[11, 12, 13, 14, 28]),
    (r"^/[é]", &[11]),
    (
        r"^/[^é]$",
        &[2, 3, 4, 12, 13, 14, 16, 17, 19, 20, 21, 25, 26, 27, 29],
    ),
    (r"^/[]]", &[20]),
    (
        r"^/[^]a]$",
        &[3, 11, 12, 13, 14, 16, 17, 19, 21, 25, 26, 27, 29],
    ),
    (r"^/[\]\[^]", &[19, 20, 21]),
    (r"[x^]", &[7, 8, 15, 21, 31]),
    (r"^/{", &[22]),
    (r"a{,b}", &[23]),
    (r"^/[a-c-]$", &[2, 4, 17]),
    (
        r"[\w-]$",
        &[2, 3, 4, 5, 6, 7, 8, 15, 17, 24, 26, 27, 29, 30, 31],
    ),
    (r"(?i)^/a", &[2, 3, 4, 5, 6, 23]),
    (r"(?i)^/k$", &[29]),
    (r"^/(?i:A)b?$", &[2, 3, 4, 6]),
    (r"^/(?i)a|B$", &[2, 3, 4, 5, 6, 23, 24]),
    (r"^/a(?-i)B|b$", &[5, 6, 24]),
    (r"(?s)^/a.", &[4, 5, 6, 23]),
    (r"^/a.", &[6, 23]),
    (r"^/(?<n>a)$", &[2, 4]),
    (r"^/(?'n'a)b", &[6]),
    (r"^/(a)(/|$)", &[2, 4]),
    (r"/\.(?!well-known/)", &[30]),
    (
        r"^/(?!a).*$",
        &[
            1, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28,
            29, 30, 31,
        ],
    ),
    (
        r"^/(?!\.|a).*",
        &[
            1, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28,
            29,
        ],
    ),
    (r"b{1,2}?$", &[5, 6, 24]),
    (r"^/[\d\s]", &[24, 25, 26]),
    (r"\bb", &[5, 18, 23, 24]),
    (r"\B-", &[17]),
];

/// Expressions that cannot be translated, also with their matches.
const REFUSED: [(&str, &[usize]); 24] = [
    (
        r"^/\pL",
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 23, 28, 29],
    ),
    (
        r"^/[\pL]",
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 23, 28, 29],
    ),
    (r"^/\R", &[14]),
    (r"^/\Ka", &[2, 4, 5, 6, 23]),
    (r"^/a++", &[2, 4, 5, 6, 23]),
    (r"^/(?>a)b", &[6]),
    (r"^/(?=a)", &[2, 4, 5, 6, 23]),
    (r"(?<=a)b", &[6]),
    (
        r"^/(.)\1?",
        &[
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
            26, 27, 28, 29, 30, 31,
        ],
    ),
    (r"^/(?|a|b)", &[2, 4, 5, 6, 23]),
    (r"(?x) ^ / a", &[2, 4, 5, 6, 23]),
    (r"(?m)^b", &[5]),
    (r"^/(?#c)a", &[2, 4, 5, 6, 23]),
    (
        r"^/\Cb?",
        &[
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
            26, 27, 28, 29, 30, 31,
        ],
    ),
    (r"^/\cI", &[25]),
    (r"^/\o{141}", &[2, 4, 5, 6, 23]),
    (r"^/a$\n", &[4]),
    (
        r"^/[[:^upper:]]",
        &[
            2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
            26, 27, 28, 30, 31,
        ],
    ),
    (r"(*ANYCRLF)^/a", &[2, 4, 5, 6, 23]),
    (r"^/(?1)(a)?", &[2, 4, 5, 6, 23]),
    (r"^/(?(?=a)a|b)", &[2, 4, 5, 6, 23]),
    (
        r"^/\X$",
        &[2, 3, 4, 11, 12, 13, 14, 16, 17, 19, 20, 21, 25, 26, 27, 29],
    ),
    (r"^/\x", &[]),
    (r"^/\g{1}?(a)", &[2, 4, 5, 6, 23]),
];

#[test]
fn translations_match_like_pcre() {
    for (pattern, expected) in CASES {
        let carried = translate(pattern).expect(pattern);
        assert_eq!(found(&carried), expected, "{pattern} as {carried}");
    }
}

#[test]
fn untranslatable_patterns_are_refused_or_widened() {
    for (pattern, expected) in CASES.iter().chain(&REFUSED) {
        let Some(wider) = wider(pattern) else {
            continue;
        };
        let found = found(&wider);
        let is_missing = |text: &&usize| !found.contains(text);
        let missing = expected.iter().find(is_missing);
        assert_eq!(missing, None, "{pattern} as {wider}");
    }
    for (pattern, _) in REFUSED {
        assert!(translate(pattern).is_err(), "{pattern}");
    }
    // A byte that is not UTF-8 and was replaced.
    assert!(translate("^/caf\u{FFFD}").is_err());
    assert_eq!(wider("^/caf\u{FFFD}"), None);
}

/// Indexes of the texts that an expression matches.
fn found(pattern: &str) -> Vec<usize> {
    let regex = regex::bytes::Regex::new(&with_pcre_semantics(pattern)).expect(pattern);
    let texts = TEXTS.iter().enumerate();
    let found = texts.filter(|(_, text)| regex.is_match(text));
    found.map(|(at, _)| at).collect()
}
