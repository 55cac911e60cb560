//! A configuration file, from its text to a checked plan.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onrush_config::{Diagnostics, Errors, Plan, Sources};
use onrush_file::Stamp;
use onrush_serve::{Checked, PlanErrors, PlanIssue};

use super::config_files::{Disk, WatchedPath};
use crate::terminal::print_error;

/// Where errors in a configuration are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The terminal of the user who starts the program. Lines of the file are shown.
    Terminal,
    /// The error log of a running server. Other people may read it, so lines of the file, which may contain secrets,
    /// are left out.
    Log,
}

impl Audience {
    pub(crate) fn warn(self, warning: &dyn Display) {
        match self {
            Audience::Terminal => print_error(format_args!("{warning}")),
            Audience::Log => tracing::warn!("{warning:#}"),
        }
    }

    fn text(self, errors: &Errors) -> String {
        match self {
            Audience::Terminal => errors.to_string(),
            Audience::Log => format!("{errors:#}"),
        }
    }
}

/// A configuration file with its included files, kept so that errors can show their positions.
pub(crate) struct ConfigSource {
    sources: Sources,
    looked: Vec<(WatchedPath, Vec<Stamp>)>,
}

impl ConfigSource {
    /// Reads the file and all included files. Errors in included files are reported by [`ConfigSource::plan`].
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

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Files that were looked at, with their stamps before they were read.
    pub(super) fn looked(&self) -> &[(WatchedPath, Vec<Stamp>)] {
        &self.looked
    }

    /// Files that were read, or should have been.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = self.looked.iter().filter_map(|(looked, _)| match looked {
            WatchedPath::File(path) => Some(path.clone()),
            WatchedPath::Pattern(..) => None,
        });
        files.collect()
    }

    /// Parses the configuration; warnings and errors are worded for `audience`.
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

    fn findings(&self) -> Diagnostics<'_> {
        Diagnostics::new(&self.sources)
    }
}

const UNUSABLE: &str = "the configuration cannot be used";

/// Checks the files that a plan names. Errors are worded for `audience` and have a position if the configuration file
/// names the file, none if a flag does.
pub(crate) fn checked(
    plan: Plan,
    written: Option<&ConfigSource>,
    audience: Audience,
) -> anyhow::Result<Checked> {
    match onrush_serve::check(plan) {
        Ok(checked) => {
            warn(checked.warnings(), written, audience);
            Ok(checked)
        }
        Err(PlanErrors(troubles)) => Err(refusal(&troubles, written, audience)),
    }
}

/// Reports warnings about files, with a position where the configuration file names them.
pub(crate) fn warn(warnings: &[PlanIssue], written: Option<&ConfigSource>, audience: Audience) {
    let mut findings = written.map(ConfigSource::findings);
    for warning in warnings {
        match (&mut findings, &warning.place) {
            (Some(findings), Some(place)) => findings.warning(place.clone(), &*warning.message),
            _ => audience.warn(&format_args!("warning: {warning}")),
        }
    }
    if let Some(findings) = findings {
        let warnings = findings.finish().expect("only warnings, no errors");
        warnings.iter().for_each(|warning| audience.warn(warning));
    }
}

/// Error for a configuration whose files cannot be used.
pub(crate) fn refusal(
    troubles: &[PlanIssue],
    written: Option<&ConfigSource>,
    audience: Audience,
) -> anyhow::Error {
    let mut findings = written.map(ConfigSource::findings);
    let mut said = String::new();
    for trouble in troubles {
        match (&mut findings, &trouble.place) {
            (Some(findings), Some(place)) => findings.error(place.clone(), &*trouble.message),
            _ => said += &format!("\n{trouble}"),
        }
    }
    match findings.map(Diagnostics::finish) {
        None => anyhow::Error::msg(said.trim_start().to_owned()),
        Some(Err(errors)) => {
            anyhow::anyhow!("{UNUSABLE}{said}\n{}", audience.text(&errors))
        }
        Some(Ok(_)) => anyhow::anyhow!("{UNUSABLE}{said}"),
    }
}
