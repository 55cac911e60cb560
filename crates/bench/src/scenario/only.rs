//! `--only`: the part of an experiment that is measured.

use super::Experiment;

/// Patterns that select the parts of an experiment to measure.
///
/// `WORK` and `WORK/VARIANT` select works and variants, with `*` for any characters; `PARAMETER=VALUE` selects points
/// of sweeps. Patterns of the same kind are alternatives; different kinds must all match.
#[derive(Debug, Clone, Default)]
pub struct Only {
    texts: Vec<String>,
}

impl Only {
    /// Creates a selection; without patterns it selects everything.
    pub fn new(texts: Vec<String>) -> Only {
        Only { texts }
    }

    /// Removes everything that is not selected, and figures that need a removed variant.
    ///
    /// # Errors
    /// The first pattern that matches nothing.
    pub fn apply(&self, experiment: &mut Experiment) -> Result<(), String> {
        let (points, names): (Vec<&String>, Vec<&String>) = self
            .texts
            .iter()
            .partition(|text| names_a_parameter(experiment, text));
        for text in &self.texts {
            let exists = !text.is_empty()
                && experiment.works.iter().any(|work| {
                    let mut variants = work.variants.iter();
                    has_value(work, text)
                        || variants.any(|variant| is_named(&work.name, &variant.name, text))
                });
            if !exists {
                return Err(text.clone());
            }
        }
        for work in &mut experiment.works {
            let is_at = |parameter: &str| {
                let mut of_it = points
                    .iter()
                    .filter(|text| text.split_once('=').map(|(name, _)| name) == Some(parameter));
                of_it.clone().next().is_none() || of_it.any(|text| has_value(work, text))
            };
            let is_wanted = work
                .point
                .settings()
                .iter()
                .all(|setting| is_at(&setting.parameter));
            let name = work.name.clone();
            work.variants.retain(|variant| {
                let mut named = names.iter();
                is_wanted
                    && (names.is_empty() || named.any(|text| is_named(&name, &variant.name, text)))
            });
            let kept: Vec<String> = work.variants.iter().map(|kept| kept.name.clone()).collect();
            work.figures.retain_mut(|figure| {
                figure.ours.retain(|name| kept.contains(name));
                let needed = figure.theirs.iter().chain(figure.above.values());
                let is_whole = needed.clone().all(|name| kept.contains(name));
                is_whole && !figure.ours.is_empty()
            });
        }
        experiment.works.retain(|work| !work.variants.is_empty());
        Ok(())
    }
}

/// Whether a pattern selects points by a parameter of a sweep.
fn names_a_parameter(experiment: &Experiment, text: &str) -> bool {
    text.split_once('=').is_some_and(|(parameter, _)| {
        let mut works = experiment.works.iter();
        works.any(|work| work.point.value(parameter).is_some())
    })
}

fn has_value(work: &super::Work, text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(parameter, value)| work.point.value(parameter) == Some(value))
}

fn is_named(work: &str, variant: &str, text: &str) -> bool {
    // Names contain no slash, so the first one separates the work from the variant.
    match text.split_once('/') {
        Some((of_work, of_variant)) => matches(of_work, work) && matches(of_variant, variant),
        None => matches(text, work),
    }
}

/// Matches `*` as any characters, ignoring case.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, middle @ .., last] = &parts[..] else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    const TEXT: &str = r#"
name = "t"
[program.s]
command = ["s", "{port}"]
[program.c]
command = ["c", "{connections}", "{io}"]
[[work]]
name = "fixed response"
server = "s"
client = "c"
sweep = { connections = [1, 10], io = ["a", "b"] }
[[work.variant]]
name = "onrush"
[[work.variant]]
name = "nginx"
[[work.figure]]
metric = "rps"
ours = ["onrush"]
theirs = "nginx"
[[work.figure]]
metric = "rps"
ours = ["onrush", "nginx"]
[[work]]
name = "file"
server = "s"
client = "c"
set = { io = "a" }
[[work.variant]]
name = "onrush"
"#;

    fn kept(texts: &[&str]) -> Result<Vec<String>, String> {
        let mut experiment =
            scenario::parse("t.toml", TEXT).unwrap_or_else(|mistake| panic!("{mistake}"));
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Only::new(texts).apply(&mut experiment)?;
        let works = experiment.works.iter();
        let lines = works.flat_map(|work| {
            let variants = work.variants.iter();
            variants.map(|variant| format!("{}/{}", work.title(), variant.name))
        });
        Ok(lines.collect())
    }

    #[test]
    fn filter_selects_works_variants_and_points() {
        assert_eq!(kept(&[]).expect("everything").len(), 9);
        assert_eq!(kept(&["file"]).expect("a work"), ["file/onrush"]);
        assert_eq!(kept(&["*/NGINX"]).expect("a variant").len(), 4);
        assert_eq!(kept(&["f*e/on*"]).expect("two works").len(), 5);
        let one = kept(&["fixed*/nginx", "connections=10", "io=a"]).expect("a point");
        assert_eq!(one, ["fixed response · connections=10 io=a/nginx"]);
        assert_eq!(kept(&["fixed*", "io=a", "io=b"]).expect("both").len(), 8);
    }

    #[test]
    fn pattern_without_match_is_an_error() {
        assert_eq!(kept(&["file", "fil"]), Err("fil".into()));
        assert_eq!(kept(&["connections=11"]), Err("connections=11".into()));
        assert_eq!(kept(&["file/nginx"]), Err("file/nginx".into()));
    }

    #[test]
    fn figures_of_removed_variants_are_removed() {
        let mut experiment =
            scenario::parse("t.toml", TEXT).unwrap_or_else(|mistake| panic!("{mistake}"));
        let only = Only::new(vec!["*/onrush".into()]);
        only.apply(&mut experiment).expect("it names something");
        let figures = &experiment.works[0].figures;
        assert_eq!(figures.len(), 1);
        assert_eq!(figures[0].ours, ["onrush"]);
    }
}
