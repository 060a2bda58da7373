//! Pure: [`History`], a number over the last minute.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How far back it goes.
const KEPT: Duration = Duration::from_secs(60);
/// Over how long a change is measured: shorter than that, it jumps.
const MEASURED: Duration = Duration::from_secs(10);
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Clone, Default)]
pub(crate) struct History(VecDeque<(Instant, u64)>);

impl History {
    /// Takes note of `number`; where nothing is known, the history begins anew.
    pub(crate) fn add(&mut self, at: Instant, number: Option<u64>) {
        let Some(number) = number else {
            return self.0.clear();
        };
        self.0.push_back((at, number));
        // Two stay, however long the interval: a change takes two.
        while self.0.len() > 2 && self.0.front().is_some_and(|&(then, _)| at - then > KEPT) {
            self.0.pop_front();
        }
    }

    /// The change per second, lately.
    pub(crate) fn per_second(&self) -> Option<f64> {
        let &(now, number) = self.0.back()?;
        let before = self.0.iter().rev().skip(1);
        let (then, before) = before
            .clone()
            .take_while(|&&(then, _)| now - then <= MEASURED)
            .last()
            .or(before.clone().next())?;
        let seconds = (now - *then).as_secs_f64();
        (seconds > 0.0).then(|| (number as f64 - *before as f64) / seconds)
    }

    /// The newest numbers as bars, the newest last, in at most `width` columns.
    pub(crate) fn bars(&self, width: usize) -> String {
        let most = self.0.iter().map(|&(_, number)| number).max().unwrap_or(0);
        let bar = |&(_, number): &(Instant, u64)| match most {
            0 => BARS[0],
            _ => BARS[(number as f64 / most as f64 * 7.0).round() as usize],
        };
        let newest = self.0.len().saturating_sub(width);
        self.0.iter().skip(newest).map(bar).collect()
    }
}

/// A change as it is shown: with its sign, and no more digits than can be read.
pub(crate) fn change(per_second: Option<f64>) -> String {
    match per_second {
        None => String::new(),
        Some(it) if it.abs() < 0.05 => "0".into(),
        Some(it) if it.abs() < 10.0 => format!("{it:+.1}"),
        Some(it) => format!("{it:+.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(numbers: &[u64]) -> History {
        let start = Instant::now();
        let mut history = History::default();
        for (second, &number) in (0..).zip(numbers) {
            history.add(start + Duration::from_secs(second), Some(number));
        }
        history
    }

    #[test]
    fn a_change_is_measured_over_some_seconds() {
        assert_eq!(history(&[]).per_second(), None);
        assert_eq!(history(&[5]).per_second(), None);
        assert_eq!(history(&[5, 9, 7]).per_second(), Some(1.0));
        let mut long: Vec<u64> = vec![0; 50];
        long.extend([20; 5]);
        assert_eq!(history(&long).per_second(), Some(2.0));
    }

    #[test]
    fn a_long_interval_has_a_change_too() {
        let start = Instant::now();
        let mut history = History::default();
        history.add(start, Some(10));
        history.add(start + Duration::from_secs(300), Some(310));
        assert_eq!(history.per_second(), Some(1.0));
    }

    #[test]
    fn bars_are_scaled_and_the_newest_are_last() {
        assert_eq!(history(&[0, 0]).bars(5), "▁▁");
        assert_eq!(history(&[0, 7, 14]).bars(5), "▁▅█");
        assert_eq!(history(&[1, 0, 7]).bars(2), "▁█");
        assert_eq!(history(&[1]).bars(0), "");
    }

    #[test]
    fn what_is_not_known_begins_a_history_anew() {
        let mut history = history(&[1, 2]);
        history.add(Instant::now(), None);
        assert_eq!(history.bars(9), "");
        assert_eq!(history.per_second(), None);
    }

    #[test]
    fn a_change_has_its_sign() {
        let shown = [None, Some(0.01), Some(-1.25), Some(120.4)].map(change);
        assert_eq!(shown, ["", "0", "-1.2", "+120"]);
    }
}
