//! Grouped bar charts as SVG text, with the error of each bar.

use crate::svg::{Scale, Span, colour, draw_heights, frame, legend, line, put, stacked, text};

/// The share of a group's width that its bars take.
const FILLED: f64 = 0.7;

/// One bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// How high it is, from zero.
    pub height: f64,
    /// The lower and the upper end of its error, if one is known.
    pub error: Option<(f64, f64)>,
}

/// Bars of one colour, one in each group.
#[derive(Clone, Debug)]
pub struct BarSeries {
    /// The name in the legend.
    pub name: String,
    /// Its bars in the order of the groups.
    pub bars: Vec<Bar>,
}

/// One chart of groups of bars.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// The line above it.
    pub title: String,
    /// What the groups are.
    pub x_label: String,
    /// What the heights are.
    pub y_label: String,
    /// The name of each group.
    pub groups: Vec<String>,
    /// The bars.
    pub series: Vec<BarSeries>,
}

/// A picture of these charts, one below the other.
#[must_use]
pub fn render(title: &str, charts: &[BarChart]) -> String {
    stacked(title, charts, draw)
}

fn draw(out: &mut String, top: f64, chart: &BarChart) {
    let (left, right, upper, lower) = frame(top);
    let bars = || chart.series.iter().flat_map(|series| &series.bars);
    let highest = |bar: &Bar| bar.error.map_or(bar.height, |(_, high)| high.max(bar.height));
    let y = Span::new(Scale::Linear, bars().map(highest), lower, upper);
    draw_heights(out, top, &chart.title, &chart.y_label, &y);
    let group_width = (right - left) / chart.groups.len().max(1) as f64;
    let bar_width = group_width * FILLED / chart.series.len().max(1) as f64;
    for (index, name) in chart.groups.iter().enumerate() {
        let begin = left + group_width * index as f64;
        text(out, (begin + group_width / 2.0, lower + 16.0), "middle", name);
        let first = begin + group_width * (1.0 - FILLED) / 2.0;
        for (nth, series) in chart.series.iter().enumerate() {
            let Some(bar) = series.bars.get(index) else { continue };
            draw_bar(out, first + bar_width * nth as f64, bar_width, bar, colour(nth), &y);
        }
    }
    line(out, (left, lower), (right, lower));
    text(out, ((left + right) / 2.0, lower + 34.0), "middle", &chart.x_label);
    for (nth, series) in chart.series.iter().enumerate() {
        legend(out, top, nth, &series.name);
    }
}

fn draw_bar(out: &mut String, left: f64, width: f64, bar: &Bar, colour: &str, y: &Span) {
    let (Some(top), Some(base)) = (y.at(bar.height), y.at(0.0)) else { return };
    put(
        out,
        format_args!(
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"{colour}\"/>\n",
            left + 1.0,
            (width - 2.0).max(1.0),
            (base - top).max(0.0)
        ),
    );
    let Some((low, high)) = bar.error else { return };
    let (Some(low), Some(high)) = (y.at(low.max(0.0)), y.at(high)) else { return };
    let middle = left + width / 2.0;
    for (from, to) in [
        ((middle, low), (middle, high)),
        ((middle - 4.0, low), (middle + 4.0, low)),
        ((middle - 4.0, high), (middle + 4.0, high)),
    ] {
        put(
            out,
            format_args!(
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" \
                 stroke=\"#333333\"/>\n",
                from.0, from.1, to.0, to.1
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::tests::check_well_formed;

    #[test]
    fn bars_are_well_formed_whatever_they_show() {
        for height in [0.0, 1.0, 1e7, f64::NAN] {
            let bar = Bar { height, error: Some((height - 1.0, height + 1.0)) };
            let bars = vec![bar, Bar { error: None, ..bar }];
            let chart = BarChart {
                title: "a < b".to_owned(),
                x_label: "x & y".to_owned(),
                y_label: "%".to_owned(),
                groups: vec!["<1>".to_owned(), "2".to_owned()],
                series: vec![BarSeries { name: "one".to_owned(), bars }],
            };
            let svg = render("bars", &[chart.clone(), BarChart { groups: Vec::new(), ..chart }]);
            check_well_formed(&svg);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{height}");
        }
    }
}
