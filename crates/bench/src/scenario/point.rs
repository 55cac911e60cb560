//! A point of a sweep: one value for each parameter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Values of parameters in file order; empty for a work without a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(Vec<Setting>);

/// The value of one parameter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// Name as in templates: `connections`, `io`.
    pub parameter: String,
    /// Value as written, without blanks.
    pub value: String,
}

impl Point {
    /// Adds a parameter, which must not have a value yet.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: &str) -> Point {
        debug_assert!(self.value(parameter).is_none(), "{parameter} has a value");
        self.0.push(Setting {
            parameter: parameter.into(),
            value: value.into(),
        });
        self
    }

    /// Whether the point has no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values in file order.
    pub fn settings(&self) -> &[Setting] {
        &self.0
    }

    /// The value of a parameter.
    pub fn value(&self, parameter: &str) -> Option<&str> {
        let mut settings = self.0.iter();
        let found = settings.find(|setting| setting.parameter == parameter)?;
        Some(&found.value)
    }

    /// Whether all parameters that both points have are equal.
    pub fn agrees_with(&self, other: &Point) -> bool {
        self.0.iter().all(|setting| {
            let theirs = other.value(&setting.parameter);
            theirs.is_none_or(|value| value == setting.value)
        })
    }
}

/// `connections=100 io=epoll`.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, setting) in self.0.iter().enumerate() {
            let before = if index == 0 { "" } else { " " };
            write!(f, "{before}{}={}", setting.parameter, setting.value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_agree_on_shared_parameters() {
        let both = Point::default()
            .with("connections", "10")
            .with("io", "epoll");
        let one = Point::default().with("connections", "10");
        let other = Point::default().with("connections", "100");
        assert!(both.agrees_with(&one) && one.agrees_with(&both));
        assert!(!both.agrees_with(&other) && both.agrees_with(&Point::default()));
        assert_eq!(both.to_string(), "connections=10 io=epoll");
        assert_eq!(
            (both.value("io"), both.value("rate")),
            (Some("epoll"), None)
        );
    }
}
