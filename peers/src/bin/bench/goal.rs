//! [`Goal`]: what was to be reached, and what was.

use std::fmt;

#[derive(Debug, Clone)]
pub(crate) struct Goal {
    pub(crate) number: u8,
    pub(crate) what: String,
    pub(crate) limit: Limit,
    pub(crate) unit: Unit,
    pub(crate) figure: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

/// What a figure is; most are shares of what another program does or takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    OfQueuey,
    OfRaw,
    OfItself,
    Megabytes,
    Milliseconds,
    Number,
}

pub(crate) use Limit::{AtLeast, AtMost};

impl Goal {
    pub(crate) fn new(
        number: u8,
        what: impl Into<String>,
        limit: Limit,
        unit: Unit,
        figure: f64,
    ) -> Self {
        Self {
            number,
            what: what.into(),
            limit,
            unit,
            figure: Some(figure),
        }
    }

    /// Only the long form measures it.
    pub(crate) fn in_long_form(
        number: u8,
        what: impl Into<String>,
        limit: Limit,
        unit: Unit,
        figure: Option<f64>,
    ) -> Self {
        Self {
            figure,
            ..Self::new(number, what, limit, unit, f64::NAN)
        }
    }

    /// Whether it was reached, if it was measured. A figure that is no number misses.
    pub(crate) fn is_met(&self) -> Option<bool> {
        let figure = self.figure?;
        Some(match self.limit {
            AtLeast(limit) => figure >= limit,
            AtMost(limit) => figure <= limit,
        })
    }

    pub(crate) fn is_not_missed(&self) -> bool {
        self.is_met() != Some(false)
    }

    pub(crate) fn goal_text(&self) -> String {
        match self.limit {
            AtLeast(limit) => format!("≥ {}", self.unit.text(limit)),
            AtMost(limit) => format!("≤ {}", self.unit.text(limit)),
        }
    }

    pub(crate) fn figure_text(&self) -> String {
        self.figure
            .map_or("–".into(), |figure| self.unit.text(figure))
    }

    pub(crate) fn verdict(&self) -> &'static str {
        match self.is_met() {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured (long form)",
        }
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::OfQueuey => format!("{value:.2} × queuey"),
            Self::OfRaw => format!("{value:.2} × raw lapin"),
            Self::OfItself => format!("{value:.2} ×"),
            Self::Megabytes => format!("{value:.2} MB"),
            Self::Milliseconds => format!("{value:.1} ms"),
            Self::Number => format!("{}", Short(value)),
        }
    }
}

/// Whole numbers without, others with three decimals.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.3}", self.0)
        }
    }
}
