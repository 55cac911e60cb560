//! A configuration file, from its text to a plan whose files have been looked at.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onrush_config::{Errors, Findings, Plan, Sources};
use onrush_file::Stamp;
use onrush_serve::{Checked, Trouble, Unusable};

use super::disk::{Disk, Looked};
use crate::terminal::say;

/// Who hears of what is wrong with a configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Whoever starts the program. Lines of the file are shown.
    Terminal,
    /// The error log, while a server runs. It goes to others, too, and lines of the file may have secrets in them.
    Log,
}

impl Audience {
    /// Warns it.
    pub(crate) fn warn(self, warning: &dyn Display) {
        match self {
            Audience::Terminal => say(format_args!("{warning}")),
            Audience::Log => tracing::warn!("{warning:#}"),
        }
    }

    /// What it is told of these.
    fn text(self, errors: &Errors) -> String {
        match self {
            Audience::Terminal => errors.to_string(),
            Audience::Log => format!("{errors:#}"),
        }
    }
}

/// A configuration file as it is written, with those that it includes, so that places in them can be shown.
pub(crate) struct Written {
    sources: Sources,
    looked: Vec<(Looked, Vec<Stamp>)>,
}

impl Written {
    /// Reads it with all that it includes. What is wrong with that is said of the plan.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut disk = Disk::default();
        let text = disk
            .read_any(path)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        let sources = Sources::read(text, path, &mut disk);
        Ok(Self {
            sources,
            looked: disk.looked,
        })
    }

    /// The texts.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// What was looked at to read it, with the stamps from before.
    pub(super) fn looked(&self) -> &[(Looked, Vec<Stamp>)] {
        &self.looked
    }

    /// The files that were read, or were to be.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = self.looked.iter().filter_map(|(looked, _)| match looked {
            Looked::File(path) => Some(path.clone()),
            Looked::Pattern(..) => None,
        });
        files.collect()
    }

    /// What it means; `audience` hears what is wrong with it.
    pub(crate) fn plan(&self, audience: Audience) -> anyhow::Result<Plan> {
        match onrush_config::parse_sources(&self.sources) {
            Ok(parsed) => {
                let warnings = parsed.warnings.iter();
                warnings.for_each(|warning| audience.warn(warning));
                Ok(parsed.plan)
            }
            Err(errors) => bail!("{UNUSABLE}\n{}", audience.text(&errors)),
        }
    }

    fn findings(&self) -> Findings<'_> {
        Findings::new(&self.sources)
    }
}

const UNUSABLE: &str = "the configuration cannot be used";

/// The plan with what its files say; `audience` hears what is wrong with them. What the file names has its place there, as everything else that
/// is wrong with it; what flags name has none.
pub(crate) fn checked(
    plan: Plan,
    written: Option<&Written>,
    audience: Audience,
) -> anyhow::Result<Checked> {
    match onrush_serve::check(plan) {
        Ok(checked) => {
            warn(checked.warnings(), written, audience);
            Ok(checked)
        }
        Err(Unusable(troubles)) => Err(refusal(&troubles, written, audience)),
    }
}

/// Says what is odd about files: with its place where the file of the configuration names them.
pub(crate) fn warn(warnings: &[Trouble], written: Option<&Written>, audience: Audience) {
    let mut findings = written.map(Written::findings);
    for warning in warnings {
        match (&mut findings, &warning.place) {
            (Some(findings), Some(place)) => findings.warning(place.clone(), &*warning.message),
            _ => audience.warn(&format_args!("warning: {warning}")),
        }
    }
    if let Some(findings) = findings {
        let warnings = findings.finish().expect("there are warnings only");
        warnings.iter().for_each(|warning| audience.warn(warning));
    }
}

/// Why a configuration cannot be used: what is wrong with its files.
pub(crate) fn refusal(
    troubles: &[Trouble],
    written: Option<&Written>,
    audience: Audience,
) -> anyhow::Error {
    let mut findings = written.map(Written::findings);
    let mut said = String::new();
    for trouble in troubles {
        match (&mut findings, &trouble.place) {
            (Some(findings), Some(place)) => findings.error(place.clone(), &*trouble.message),
            _ => said += &format!("\n{trouble}"),
        }
    }
    match findings.map(Findings::finish) {
        None => anyhow::Error::msg(said.trim_start().to_owned()),
        Some(Err(errors)) => {
            anyhow::anyhow!("{UNUSABLE}{said}\n{}", audience.text(&errors))
        }
        Some(Ok(_)) => anyhow::anyhow!("{UNUSABLE}{said}"),
    }
}
