//! A configuration file, from its text to a plan whose files have been looked at.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, bail};
use onrush_config::{Files, Findings, Plan, Sources};
use onrush_file::Stamp;
use onrush_serve::{Checked, Unusable};

use super::disk::{Disk, Looked};
use crate::terminal::say;

/// Who hears of warnings.
pub(crate) type Warn = fn(&dyn Display);

/// Before a server runs: whoever started it.
pub(crate) fn on_standard_error(warning: &dyn Display) {
    say(format_args!("{warning}"));
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
            .read(path)
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

    /// What it means; of its warnings `warn` hears.
    pub(crate) fn plan(&self, warn: Warn) -> anyhow::Result<Plan> {
        match onrush_config::parse_sources(&self.sources) {
            Ok(parsed) => {
                parsed.warnings.iter().for_each(|warning| warn(warning));
                Ok(parsed.plan)
            }
            Err(errors) => bail!("{UNUSABLE}\n{errors}"),
        }
    }

    fn findings(&self) -> Findings<'_> {
        Findings::new(&self.sources)
    }
}

const UNUSABLE: &str = "the configuration cannot be used";

/// The plan with what its files say; of warnings `warn` hears. What the file names has its place there, as everything else that
/// is wrong with it; what flags name has none.
pub(crate) fn checked(
    plan: Plan,
    written: Option<&Written>,
    warn: Warn,
) -> anyhow::Result<Checked> {
    let outcome = onrush_serve::check(plan);
    let Some(written) = written else {
        let checked = outcome?;
        for warning in checked.warnings() {
            warn(&format_args!("warning: {warning}"));
        }
        return Ok(checked);
    };
    let mut findings = written.findings();
    match outcome {
        Ok(checked) => {
            for warning in checked.warnings() {
                match &warning.place {
                    Some(place) => findings.warning(place.clone(), &*warning.message),
                    None => warn(&format_args!("warning: {warning}")),
                }
            }
            let warnings = findings.finish().expect("there are warnings only");
            warnings.iter().for_each(|warning| warn(warning));
            Ok(checked)
        }
        Err(Unusable(troubles)) => {
            let mut said = UNUSABLE.to_owned();
            for trouble in &troubles {
                match &trouble.place {
                    Some(place) => findings.error(place.clone(), &*trouble.message),
                    None => said += &format!("\n{trouble}"),
                }
            }
            if let Err(errors) = findings.finish() {
                said += &format!("\n{errors}");
            }
            bail!(said)
        }
    }
}
