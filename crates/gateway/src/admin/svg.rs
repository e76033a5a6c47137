//! The ring as a picture: hosts at their tokens, groups with their members, who is suspected or
//! busy. Plain SVG text, readable as it is.
//!
//! The outer circle shows which host has each part of the ring; tokens ascend clockwise
//! from the top. The inner circles, one for each keyspace, show the groups that the host knows.

use quorate_host::ring::report::{KeyspaceReport, Report, Row, cell, standing};
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::{RingHost, Standing};
use std::f64::consts::TAU;
use std::fmt::Write;

const WIDTH: f64 = 1100.0;
const HEIGHT_MIN: f64 = 640.0;
const CENTRE: f64 = 320.0;
const RADIUS: f64 = 230.0;
/// How far inside the hosts the first keyspace's circle is, and each next one.
const INSET: f64 = 34.0;
const LEGEND_X: f64 = 660.0;
const LINE: f64 = 22.0;
/// With more groups than this their members are told by pointing at them only.
const LABELS_MAX: usize = 24;
/// The most keyspaces that have a circle of their own.
const CIRCLES_MAX: usize = 5;

/// The picture.
#[must_use]
pub fn render(report: &Report) -> String {
    let lines = report.ring.hosts().len() + report.keyspaces.len() + 9;
    let height = HEIGHT_MIN.max(LINE * (lines as f64 + 2.0));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    hosts(report, &mut out);
    for (index, keyspace) in report.keyspaces.iter().take(CIRCLES_MAX).enumerate() {
        groups(report, keyspace, RADIUS - INSET * (index as f64 + 1.0), &mut out);
    }
    legend(report, &mut out);
    out.push_str("</svg>\n");
    out
}

/// Where a token is on a circle.
fn point(token: u64, radius: f64) -> (f64, f64) {
    let angle = token as f64 / (u64::MAX as f64 + 1.0) * TAU;
    (CENTRE + radius * angle.sin(), CENTRE - radius * angle.cos())
}

/// The circle's part after one token up to another, clockwise.
fn arc(low: u64, high: u64, radius: f64) -> String {
    let width = high.wrapping_sub(low);
    if width == 0 {
        // An arc from a point to itself is nothing, so the whole circle is two halves.
        let half = low.wrapping_add(1 << 63);
        return format!("{} {}", arc(low, half, radius), arc(half, low, radius));
    }
    let ((x0, y0), (x1, y1)) = (point(low, radius), point(high, radius));
    let is_large = u8::from(width > 1 << 63);
    format!("M{x0:.1},{y0:.1} A{radius:.0},{radius:.0} 0 {is_large} 1 {x1:.1},{y1:.1}")
}

/// Which end of a text stays at its point, so that it runs away from the circle or into it.
fn anchor(x: f64, at_right: &'static str, at_left: &'static str) -> &'static str {
    match x - CENTRE {
        offset if offset > 30.0 => at_right,
        offset if offset < -30.0 => at_left,
        _ => "middle",
    }
}

/// A colour of its own for each host, by its place among all.
fn colour(report: &Report, node: NodeId) -> String {
    let place = report.ring.hosts().iter().position(|host| host.who.node == node);
    match place {
        // The golden angle keeps neighbours apart, however many there are.
        Some(place) => format!("hsl({},55%,48%)", place * 137 % 360),
        None => String::from("#888888"),
    }
}

/// The style of a host's arcs: dashed if it is suspected, pale if it leaves.
fn style(host: &RingHost) -> &'static str {
    match (host.is_suspected, host.standing) {
        (true, _) => " stroke-dasharray=\"3,3\"",
        (false, Standing::Up) => "",
        (false, _) => " stroke-opacity=\"0.4\"",
    }
}

fn hosts(report: &Report, out: &mut String) {
    let tokens: Vec<(u64, NodeId)> = report.ring.tokens().collect();
    for (place, (token, node)) in tokens.iter().enumerate() {
        let (low, _) = tokens[(place + tokens.len() - 1) % tokens.len()];
        let Some(host) = report.ring.host(*node) else { continue };
        let (colour, label) = (colour(report, *node), escaped(&report.label(*node)));
        let path = arc(low, *token, RADIUS);
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"16\"{}><title>\
             host {label}, token {token:016x}</title></path>",
            style(host)
        );
        let ((x0, y0), (x1, y1)) = (point(*token, RADIUS - 12.0), point(*token, RADIUS + 14.0));
        let (x, y) = point(*token, RADIUS + 24.0);
        let _ = writeln!(
            out,
            "<line x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x1:.1}\" y2=\"{y1:.1}\" stroke=\"#222222\" \
             stroke-width=\"2\"/>\n<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{}\" \
             font-weight=\"bold\">{label}{}</text>",
            y + 4.0,
            anchor(x, "start", "end"),
            if host.is_suspected { "?" } else { "" }
        );
    }
}

/// The colour of a group: grey at rest, orange while it changes.
fn group_colour(group: &Row) -> &'static str {
    if is_busy(group) { "#e08a1e" } else { "#9aa5b1" }
}

fn is_busy(group: &Row) -> bool {
    let moving = cell(group, "moving");
    cell(group, "status") != "ready" || !matches!(moving, "" | "-" | "0" | "false" | "no")
}

fn groups(report: &Report, keyspace: &KeyspaceReport, radius: f64, out: &mut String) {
    let token = |text: &str| u64::from_str_radix(text, 16).ok();
    for group in &keyspace.groups {
        let range = token(cell(group, "low")).zip(token(cell(group, "high")));
        let Some((low, high)) = range else { continue };
        let members = members(report, group);
        let _ = writeln!(
            out,
            "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"8\"><title>{}, after \
             {low:016x} up to {high:016x}, view {}: members {members}, {}</title></path>",
            arc(low, high, radius),
            group_colour(group),
            escaped(&keyspace.entry.keyspace.name),
            escaped(cell(group, "version")),
            escaped(cell(group, "status"))
        );
        // A gap at its end tells it from the next.
        let ((x0, y0), (x1, y1)) = (point(high, radius - 6.0), point(high, radius + 6.0));
        let _ = writeln!(
            out,
            "<line x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x1:.1}\" y2=\"{y1:.1}\" stroke=\"#ffffff\" \
             stroke-width=\"3\"/>"
        );
        if keyspace.groups.len() <= LABELS_MAX {
            let middle = low.wrapping_add(match high.wrapping_sub(low) {
                0 => 1 << 63,
                width => width / 2,
            });
            let (x, y) = point(middle, radius - 14.0);
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{}\" font-size=\"11\" \
                 fill=\"#444444\">{members}</text>",
                y + 4.0,
                anchor(x, "end", "start")
            );
        }
    }
}

/// The members of a group by their short names.
fn members(report: &Report, group: &Row) -> String {
    let member = |text: &str| match u64::from_str_radix(text, 16) {
        Ok(node) => report.label(NodeId(node)),
        Err(_) => text.to_owned(),
    };
    let members = cell(group, "members").split(',').filter(|member| !member.is_empty());
    escaped(&members.map(member).collect::<Vec<_>>().join(" "))
}

fn legend(report: &Report, out: &mut String) {
    let mut y = 40.0;
    let mut line = |mark: &str, text: &str, out: &mut String| {
        let _ = writeln!(
            out,
            "<g transform=\"translate({LEGEND_X},{y})\">{mark}<text x=\"26\">{text}</text></g>"
        );
        y += LINE;
    };
    let bar = |colour: &str, more: &str| {
        format!("<path d=\"M0,-5 H18\" stroke=\"{colour}\" stroke-width=\"10\"{more}/>")
    };
    let title = format!(
        "<tspan font-weight=\"bold\">The ring, version {}, as host {} sees it</tspan>",
        report.ring.version,
        escaped(&report.label(report.me))
    );
    line("", &title, out);
    for host in report.ring.hosts() {
        let mut text = format!("{} at {}", report.label(host.who.node), host.address);
        if !host.zone.is_empty() {
            text += &format!(" in {}", host.zone);
        }
        text += &format!(", {}", standing(host.standing));
        if host.is_suspected {
            text += ", suspected";
        }
        line(&bar(&colour(report, host.who.node), style(host)), &escaped(&text), out);
    }
    for (place, keyspace) in (1..).zip(&report.keyspaces) {
        let busy = keyspace.groups.iter().filter(|group| is_busy(group)).count();
        let text = format!(
            "circle {place}: {}, {} replicas, {} order; {} groups, {busy} busy",
            keyspace.entry.keyspace.name,
            keyspace.entry.keyspace.replicas(),
            keyspace.entry.order(),
            keyspace.groups.len()
        );
        line("", &escaped(&text), out);
    }
    line(&bar("#9aa5b1", ""), "a group at rest; beside it the hosts that hold it", out);
    line(&bar("#e08a1e", ""), "a group whose view changes or whose data moves", out);
    line(&bar("#666666", " stroke-dasharray=\"3,3\""), "a suspected host", out);
    line(&bar("#666666", " stroke-opacity=\"0.4\""), "a host that leaves", out);
    line("", "Tokens ascend clockwise from the top.", out);
}

/// Text that SVG takes for nothing else.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::report as sample;
    use quorate_kernel::ring::Ring;
    use std::sync::Arc;

    /// Look at the file in a browser after it was written anew.
    const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/admin/sample.svg");

    #[test]
    fn the_picture_is_the_one_that_was_looked_at() {
        let picture = render(&sample());
        if std::env::var_os("UPDATE_SCRIPTS").is_some() {
            std::fs::write(GOLDEN, &picture).expect("the source is writable");
        }
        let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
        assert_eq!(picture, golden, "UPDATE_SCRIPTS=1 writes it anew");
    }

    #[test]
    fn tokens_go_clockwise_from_the_top_and_one_token_has_all() {
        let near = |(x, y): (f64, f64), dx: f64, dy: f64| {
            (x - CENTRE - dx).abs() < 0.01 && (y - CENTRE - dy).abs() < 0.01
        };
        assert!(near(point(0, 100.0), 0.0, -100.0));
        assert!(near(point(1 << 62, 100.0), 100.0, 0.0));
        assert!(near(point(3 << 62, 100.0), -100.0, 0.0));
        assert_eq!(arc(7, 7, 10.0).matches('A').count(), 2);
        let nobody = Report { ring: Arc::new(Ring::default()), ..sample() };
        assert!(render(&nobody).ends_with("</svg>\n"));
    }

    #[test]
    fn names_cannot_break_the_picture() {
        let mut report = sample();
        let entry = &mut report.keyspaces[0].entry;
        Arc::make_mut(&mut entry.keyspace).name = String::from("<script>\"&");
        let picture = render(&report);
        assert!(!picture.contains("<script>") && picture.contains("&lt;script&gt;&quot;&amp;"));
    }
}
