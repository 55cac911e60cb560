//! A configuration file, from its text to a plan whose files have been looked at.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, bail};
use onrush_config::limits::TEXT_MAX;
use onrush_config::{Findings, Plan};
use onrush_serve::{Checked, Unusable};

use crate::terminal::say;

/// Who hears of warnings.
pub(crate) type Warn = fn(&dyn Display);

/// Before a server runs: whoever started it.
pub(crate) fn on_standard_error(warning: &dyn Display) {
    say(format_args!("{warning}"));
}

/// A configuration file as it is written, so that places in it can be shown.
pub(crate) struct Written<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> Written<'a> {
    pub(crate) fn read(path: &'a Path) -> anyhow::Result<Self> {
        let text = onrush_file::read_text(path, TEXT_MAX as u64)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        Ok(Self { path, text })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What it means; of its warnings `warn` hears.
    pub(crate) fn plan(&self, warn: Warn) -> anyhow::Result<Plan> {
        match onrush_config::parse(&self.text, self.path) {
            Ok(parsed) => {
                parsed.warnings.iter().for_each(|warning| warn(warning));
                Ok(parsed.plan)
            }
            Err(errors) => bail!("{UNUSABLE}\n{errors}"),
        }
    }

    fn findings(&self) -> Findings<'_> {
        Findings::new(&self.text, self.path)
    }
}

const UNUSABLE: &str = "the configuration cannot be used";

/// The plan with what its files say; of warnings `warn` hears. What the file names has its place there, as everything else that
/// is wrong with it; what flags name has none.
pub(crate) fn checked(
    plan: Plan,
    written: Option<&Written<'_>>,
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
