//! The ratios as bars, in SVG.

use crate::goal::{AtLeast, AtMost, Goal, Limit, Unit};

const WIDTH: f64 = 780.0;
const LABELS: f64 = 370.0;
const BARS: f64 = 340.0;
const ROW: f64 = 24.0;

/// A group for each thing this library is compared with; each has a scale of its own.
pub(crate) fn draw(goals: &[Goal]) -> String {
    let is_at_least = |limit| matches!(limit, AtLeast(_));
    let groups = [
        ("Rate, times queuey's: more is better", Unit::OfQueuey, true),
        (
            "Cost, times queuey's: less is better",
            Unit::OfQueuey,
            false,
        ),
        ("Rate, times raw lapin's: more is better", Unit::OfRaw, true),
        (
            "Cost, times raw lapin's: less is better",
            Unit::OfRaw,
            false,
        ),
    ];
    let (mut rows, mut y) = (String::new(), 8.0);
    for (title, unit, more_is_better) in groups {
        let members: Vec<_> = goals
            .iter()
            .filter(|goal| goal.unit == unit && is_at_least(goal.limit) == more_is_better)
            .filter_map(|goal| Some((goal, goal.figure?)))
            .filter(|(_, figure)| figure.is_finite())
            .collect();
        if members.is_empty() {
            continue;
        }
        y += ROW;
        rows += &format!("<text class=\"title\" x=\"10\" y=\"{y:.0}\">{title}</text>\n");
        let most = members.iter().fold(1.0, |most: f64, (goal, figure)| {
            most.max(*figure).max(value(goal.limit))
        });
        let scale = BARS / most;
        let (top, same) = (y + 8.0, LABELS + scale);
        for (goal, figure) in members {
            rows += &bar(goal, figure, scale, y + 8.0);
            y += ROW;
        }
        rows += &format!(
            "<line class=\"same\" x1=\"{same:.1}\" y1=\"{top}\" x2=\"{same:.1}\" y2=\"{}\"/>\n",
            y + 2.0
        );
        y += 8.0;
    }
    let height = y + 36.0;
    let legend = y + 24.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>.title {{ font-weight: bold }} .met {{ fill: #2a7f9e }} .missed {{ fill: #c8553d }} \
         .goal {{ stroke: #222; stroke-width: 2 }} \
         .same {{ stroke: #444; stroke-dasharray: 3 3 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         {rows}\
         <text x=\"10\" y=\"{legend}\" fill=\"#555\">Dashed line: the same as theirs. \
         Black line: the goal. Red: missed.</text>\n\
         </svg>\n"
    )
}

fn bar(goal: &Goal, figure: f64, scale: f64, y: f64) -> String {
    let class = if goal.is_not_missed() {
        "met"
    } else {
        "missed"
    };
    let (text, label) = (y + 13.0, LABELS - 8.0);
    let (bar, tick) = (figure.max(0.0) * scale, LABELS + value(goal.limit) * scale);
    let right = WIDTH - 12.0;
    format!(
        "<text x=\"{label}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n\
         <rect class=\"{class}\" x=\"{LABELS}\" y=\"{y}\" width=\"{bar:.1}\" height=\"18\"/>\n\
         <line class=\"goal\" x1=\"{tick:.1}\" y1=\"{y}\" x2=\"{tick:.1}\" y2=\"{}\"/>\n\
         <text x=\"{right}\" y=\"{text}\" text-anchor=\"end\">{figure:.2} ×</text>\n",
        goal.what,
        y + 18.0
    )
}

fn value(limit: Limit) -> f64 {
    let (AtLeast(value) | AtMost(value)) = limit;
    value
}
