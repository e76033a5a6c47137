//! Log lines: one event per line on standard error, as text for people or JSON for machines.
//!
//! Every line has `ts` (UTC, microseconds), `level`, `target`, `node` and `msg`; a notable one has
//! a stable `event`, and its own fields follow. Keys and values of clients are never logged. A line
//! that repeats is written a few times a minute; the next one says how many were left out.

use crate::config::values::{LogFormat, LogLevel};
use crate::repeats::Repeats;
use serde_json::{Map, Value};
use std::fmt::{self, Debug, Write};
use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use xxhash_rust::xxh3::xxh3_64;

static NODE: OnceLock<String> = OnceLock::new();

/// Starts logging for this process. Called once.
pub fn start(level: LogLevel, format: LogFormat) {
    let is_json = match format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let filter = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter)
        .with_writer(std::io::stderr)
        .event_format(Line { is_json, repeats: Mutex::default() })
        .finish();
    // A second call, which only a test could make, keeps the first.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Names the node on every line from now on.
pub fn set_node(node: &str) {
    let _ = NODE.set(node.to_owned());
}

struct Line {
    is_json: bool,
    repeats: Mutex<Repeats>,
}

impl Line {
    /// Whether a line is to be written, and how many like it were left out.
    fn admit(&self, meta: &Metadata<'_>, fields: &Fields) -> Option<u64> {
        let text = plain("", meta.level().as_str(), meta.target(), fields);
        let place = format!("{}:{:?}", meta.target(), meta.line());
        let mut repeats = self.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        repeats.admit(xxh3_64(place.as_bytes()), xxh3_64(text.as_bytes()), Instant::now())
    }
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let meta = event.metadata();
        let Some(left_out) = self.admit(meta, &fields) else { return Ok(()) };
        if left_out > 0 {
            fields.others.insert(String::from("left_out"), Value::from(left_out));
        }
        let timestamp = timestamp(SystemTime::now());
        let text = if self.is_json {
            json(&timestamp, meta.level().as_str(), meta.target(), &fields)
        } else {
            plain(&timestamp, meta.level().as_str(), meta.target(), &fields)
        };
        writeln!(writer, "{text}")
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    /// The message; the event's name where it says enough.
    fn message(&self) -> &str {
        let event = || self.others.get("event").and_then(Value::as_str).unwrap_or_default();
        if self.message.is_empty() { event() } else { &self.message }
    }

    fn put(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.others.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }
}

/// One JSON object, the fields every line has first.
fn json(timestamp: &str, level: &str, target: &str, fields: &Fields) -> String {
    let level = level.to_lowercase();
    let node = NODE.get().map(|node| ("node", node.as_str()));
    let all = [("ts", timestamp), ("level", &level), ("target", target)];
    let texts = all.into_iter().chain(node).chain([("msg", fields.message())]);
    let texts = texts.map(|(name, text)| format!("\"{name}\":{}", Value::from(text)));
    let others = fields.others.iter().map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", texts.chain(others).collect::<Vec<_>>().join(","))
}

fn plain(timestamp: &str, level: &str, target: &str, fields: &Fields) -> String {
    let mut line = format!("{timestamp} {level:5} {target}: {}", fields.message());
    for (name, value) in &fields.others {
        // A text with a line end must not look like a second event.
        let _ = match value.as_str() {
            Some(text) if !text.contains(|c: char| c.is_control() || c == '"') => {
                write!(line, " {name}={text}")
            }
            _ => write!(line, " {name}={value}"),
        };
    }
    line
}

/// The time in RFC 3339, UTC, with microseconds.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (since.as_secs(), since.subsec_micros());
    let (year, month, day) = date(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of the day this many days after 1970-01-01 in the Gregorian calendar.
/// Counted in years that begin in March, so that the leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let era = days / DAYS_OF_400_YEARS;
    let of_era = days % DAYS_OF_400_YEARS;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn timestamps_are_utc_with_microseconds() {
        let at = |seconds, micros| {
            timestamp(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros))
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696, 7), "2000-02-29T12:34:56.000007Z");
        assert_eq!(at(1_709_251_199, 999_999), "2024-02-29T23:59:59.999999Z");
        assert_eq!(at(1_709_251_200, 0), "2024-03-01T00:00:00.000000Z");
        assert_eq!(at(4_102_444_799, 0), "2099-12-31T23:59:59.000000Z");
    }

    fn fields() -> Fields {
        let mut fields = Fields::default();
        fields.others.insert(String::from("event"), Value::from("peer_up"));
        fields.others.insert(String::from("host"), Value::from(2));
        fields.others.insert(String::from("error"), Value::from("two\nlines"));
        fields
    }

    #[test]
    fn a_json_line_is_flat_and_named_as_documented() {
        let line = json("T", "INFO", "quorate", &fields());
        let value: Value = serde_json::from_str(&line).expect("one JSON object");
        assert_eq!(value["ts"], "T");
        assert_eq!(value["level"], "info");
        assert_eq!(value["target"], "quorate");
        assert_eq!(value["event"], "peer_up");
        assert_eq!(value["host"], 2);
        assert!(line.starts_with("{\"ts\":\"T\",\"level\":"), "{line}");
        assert!(!line.contains('\n'));
    }

    #[test]
    fn a_message_stands_for_the_event_unless_there_is_none() {
        let mut fields = fields();
        assert_eq!(fields.message(), "peer_up");
        fields.message = String::from("a peer is back");
        let value: Value = serde_json::from_str(&json("T", "INFO", "q", &fields)).expect("JSON");
        assert_eq!((&value["msg"], &value["event"]), (&"a peer is back".into(), &"peer_up".into()));
    }

    #[test]
    fn a_text_line_stays_one_line() {
        let line = plain("T", "WARN", "quorate", &fields());
        assert!(line.starts_with("T WARN  quorate: peer_up "), "{line}");
        assert!(line.contains(" host=2") && line.contains("error=\"two\\nlines\""), "{line}");
    }
}
