//! Line charts as SVG text, without a library. [`crate::bars`] draws bars with the same axes.

use std::fmt::Write;

const WIDTH: f64 = 860.0;
const CHART_HEIGHT: f64 = 260.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 48.0;
const COLOURS: [&str; 4] = ["#1f6fb4", "#d1495b", "#2e8b57", "#8a5fbf"];
/// A line of more points than this has no dots: they would hide it.
const DOTS_MAX: usize = 24;

/// How numbers are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By powers of ten; what is not positive is left out.
    Log,
    /// Quantiles by their nines: 0.9, 0.99 and 0.999 are equally far apart.
    Nines,
}

/// An axis: what it shows and how.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What the numbers are.
    pub label: String,
    /// How they are spread.
    pub scale: Scale,
}

/// A named line.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// One chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The line above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its lines.
    pub series: Vec<Series>,
    /// Moments to point out: where on the horizontal axis, and what happened there.
    pub marks: Vec<(f64, String)>,
}

/// A picture of these charts, one below the other.
#[must_use]
pub fn render(title: &str, charts: &[Chart]) -> String {
    stacked(title, charts, draw)
}

/// A picture of charts of some kind, one below the other.
pub(crate) fn stacked<C>(title: &str, charts: &[C], draw: fn(&mut String, f64, &C)) -> String {
    let height = TOP + CHART_HEIGHT * charts.len() as f64;
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ),
    );
    text(&mut out, (WIDTH / 2.0, 22.0), "middle", title);
    for (index, chart) in charts.iter().enumerate() {
        draw(&mut out, TOP + CHART_HEIGHT * index as f64, chart);
    }
    out.push_str("</svg>\n");
    out
}

/// Where the numbers of an axis lie on the picture.
pub(crate) struct Span {
    scale: Scale,
    low: f64,
    high: f64,
    begin: f64,
    end: f64,
}

impl Span {
    /// An axis from `begin` to `end` that covers these numbers.
    pub(crate) fn new(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        begin: f64,
        end: f64,
    ) -> Span {
        let placed = values.filter_map(|value| place(scale, value));
        let (low, high) = placed
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match scale {
            _ if low > high => (0.0, 1.0),
            Scale::Linear => (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }),
            Scale::Log => (low.floor(), high.ceil().max(low.floor() + 1.0)),
            Scale::Nines => (0.0, high.max(1.0)),
        };
        Span { scale, low, high, begin, end }
    }

    /// The coordinate of a number; none if the axis cannot show it.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let share = (place(self.scale, value)? - self.low) / (self.high - self.low);
        Some(self.begin + share * (self.end - self.begin))
    }

    /// The numbers to label, and their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let step = nice(self.high / 5.0);
                let count = (self.high / step).floor() as usize;
                (0..=count).map(|n| n as f64 * step).map(|value| (value, short(value))).collect()
            }
            Scale::Log => {
                let powers = self.low as i32..=self.high as i32;
                powers.map(|n| 10_f64.powi(n)).map(|value| (value, short(value))).collect()
            }
            Scale::Nines => [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
                .into_iter()
                .filter(|&value| place(Scale::Nines, value).is_some_and(|at| at <= self.high))
                .map(|value| (value, format!("{} %", trimmed(value * 100.0))))
                .collect(),
        }
    }
}

/// A number's position on its scale before it is stretched; none if the scale has no place for it.
fn place(scale: Scale, value: f64) -> Option<f64> {
    let placed = match scale {
        Scale::Linear => value,
        Scale::Log => value.log10(),
        Scale::Nines => -(1.0 - value).log10(),
    };
    placed.is_finite().then_some(placed)
}

/// The next of 1, 2, 5, 10, 20, … that is not below this.
fn nice(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fits = |factor: &f64| factor * power >= least * 0.999_999;
    factors.into_iter().find(fits).unwrap_or(10.0) * power
}

/// A number without needless digits, thousands as k and millions as M.
fn short(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        _ if value >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Where a chart's lines lie on the picture: left, right, upper and lower edge.
pub(crate) fn frame(top: f64) -> (f64, f64, f64, f64) {
    (LEFT, WIDTH - RIGHT, top + TOP, top + CHART_HEIGHT - BOTTOM)
}

fn draw(out: &mut String, top: f64, chart: &Chart) {
    let (left, right, upper, lower) = frame(top);
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let x = Span::new(chart.x.scale, points().map(|point| point.0), left, right);
    let y = Span::new(chart.y.scale, points().map(|point| point.1), lower, upper);
    draw_heights(out, top, &chart.title, &chart.y.label, &y);
    for (value, label) in x.ticks() {
        let Some(at) = x.at(value) else { continue };
        line(out, (at, upper), (at, lower));
        text(out, (at, lower + 16.0), "middle", &label);
    }
    text(out, ((left + right) / 2.0, lower + 34.0), "middle", &chart.x.label);
    for (value, label) in &chart.marks {
        let Some(at) = x.at(*value).filter(|at| *at <= right) else { continue };
        put(
            out,
            format_args!(
                "<line x1=\"{at:.1}\" y1=\"{upper:.1}\" x2=\"{at:.1}\" y2=\"{lower:.1}\" \
                 stroke=\"#999999\" stroke-dasharray=\"4 3\"/>\n"
            ),
        );
        text(out, (at + 3.0, upper + 11.0), "start", label);
    }
    for (index, series) in chart.series.iter().enumerate() {
        draw_series(out, index, series, (&x, &y));
        legend(out, top, index, &series.name);
    }
}

/// The title, the vertical axis and its lines.
pub(crate) fn draw_heights(out: &mut String, top: f64, title: &str, label: &str, y: &Span) {
    let (left, right, upper, _) = frame(top);
    text(out, (left, upper - 10.0), "start", title);
    text(out, (left - 8.0, upper - 10.0), "end", label);
    for (value, label) in y.ticks() {
        let Some(at) = y.at(value) else { continue };
        line(out, (left, at), (right, at));
        text(out, (left - 8.0, at + 4.0), "end", &label);
    }
}

fn draw_series(out: &mut String, index: usize, series: &Series, (x, y): (&Span, &Span)) {
    let colour = colour(index);
    let place = |point: &(f64, f64)| Some((x.at(point.0)?, y.at(point.1)?));
    let points: Vec<(f64, f64)> = series.points.iter().filter_map(place).collect();
    let mut path = String::new();
    for (x, y) in &points {
        put(&mut path, format_args!("{x:.1},{y:.1} "));
    }
    put(
        out,
        format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" \
             points=\"{}\"/>\n",
            path.trim_end()
        ),
    );
    for (x, y) in points.iter().filter(|_| points.len() <= DOTS_MAX) {
        let circle =
            format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n");
        put(out, circle);
    }
}

/// The colour of a series.
pub(crate) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// The name of a series, right of the chart.
pub(crate) fn legend(out: &mut String, top: f64, index: usize, name: &str) {
    let (_, right, upper, _) = frame(top);
    let at = upper + 8.0 + 18.0 * index as f64;
    let colour = colour(index);
    put(
        out,
        format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>\n",
            right + 12.0,
            at - 2.0
        ),
    );
    text(out, (right + 30.0, at + 4.0), "start", name);
}

pub(crate) fn line(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    put(
        out,
        format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>\n",
            from.0, from.1, to.0, to.1
        ),
    );
}

pub(crate) fn text(out: &mut String, at: (f64, f64), anchor: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    put(
        out,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"#333333\">{content}\
         </text>\n",
            at.0, at.1
        ),
    );
}

pub(crate) fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a string cannot fail");
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that tags nest, attributes are quoted, and text holds no bare markup.
    pub(crate) fn check_well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        while let Some(begin) = rest.find('<') {
            let text = &rest[..begin];
            assert!(!text.contains('>'), "a bare > in {text:?}");
            for entity in text.split('&').skip(1) {
                let name = entity.split(';').next().unwrap();
                assert!(["amp", "lt", "gt"].contains(&name), "a bare & in {text:?}");
            }
            let end = begin + rest[begin..].find('>').expect("a tag ends");
            let tag = &rest[begin + 1..end];
            assert!(!tag.contains('<') && !tag.contains('&'), "a broken tag {tag:?}");
            assert!(tag.matches('"').count().is_multiple_of(2), "open quotes in {tag:?}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "tags nest");
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} is open before {rest:?}");
    }

    fn chart(scales: (Scale, Scale), points: &[(f64, f64)]) -> Chart {
        let axis = |scale| Axis { label: "a < b & c > d".to_owned(), scale };
        let series = Series { name: "<reads>".to_owned(), points: points.to_vec() };
        let (x, y) = (axis(scales.0), axis(scales.1));
        let marks = vec![(0.5, "a <mark>".to_owned())];
        Chart { title: "x & y".to_owned(), x, y, series: vec![series], marks }
    }

    #[test]
    fn charts_are_well_formed_whatever_they_show() {
        let cases: [&[(f64, f64)]; 5] = [
            &[],
            &[(0.0, 0.0)],
            &[(0.0, 1.0), (0.5, 10.0), (1.0, 1e7)],
            &[(0.9, f64::NAN), (0.99, 5.0)],
            &[(0.1, -5.0), (0.2, 1e-9)],
        ];
        for points in cases {
            for x in [Scale::Linear, Scale::Log, Scale::Nines] {
                for y in [Scale::Linear, Scale::Log] {
                    let svg = render("a & b", &[chart((x, y), points), chart((y, x), points)]);
                    check_well_formed(&svg);
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}");
                    assert_eq!(svg.matches("<polyline").count(), 2);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "tags nest")]
    fn the_check_sees_a_broken_picture() {
        check_well_formed("<svg><g></svg></g>");
    }

    #[test]
    fn points_lie_where_they_belong() {
        let span = Span::new(Scale::Log, [1.0, 100.0].into_iter(), 0.0, 200.0);
        assert!((span.at(10.0).unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(span.at(0.0), None);
        let span = Span::new(Scale::Nines, [0.0, 0.999].into_iter(), 0.0, 300.0);
        assert!((span.at(0.99).unwrap() - 200.0).abs() < 1e-6);
        assert_eq!(span.at(1.0), None);
        let labels: Vec<String> = span.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["0 %", "50 %", "90 %", "99 %", "99.9 %"]);
        let span = Span::new(Scale::Linear, [0.0, 52_000.0].into_iter(), 0.0, 1.0);
        let labels: Vec<String> = span.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["0", "20k", "40k"]);
    }
}
