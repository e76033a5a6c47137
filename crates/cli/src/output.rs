//! How answers are printed.

use clap::ValueEnum;
use serde_json::{Map, Value};
use std::fmt::Write;

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people and pipes.
    Text,
    /// One JSON object a line.
    Json,
    /// As a table with a head, where there is more than one thing to show.
    Table,
}

/// The flag that says how answers are printed.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = "Example: quorate version --format json")]
pub struct Output {
    /// How answers are printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

impl Output {
    /// Whether JSON was asked for.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// Puts bytes into a JSON object: as `name` if they are text, as `name_hex` if not.
pub fn put_bytes(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), Value::from(text)),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            object.insert(format!("{name}_hex"), Value::from(hex))
        }
    };
}

/// Lines of cells as aligned columns, each line indented.
#[must_use]
pub fn columns(indent: &str, head: &[&str], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells =
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut text = String::new();
    for line in std::iter::once(&head).chain(lines) {
        let mut row = String::from(indent);
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(row, "{cell:width$}  ");
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = vec![
            vec![String::from("1"), String::from("127.0.0.1:7413")],
            vec![String::from("22222"), String::from("x")],
        ];
        let text = columns("  ", &["HOST", "RESP"], &lines);
        assert_eq!(text, "  HOST   RESP\n  1      127.0.0.1:7413\n  22222  x\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_digits() {
        let mut object = Map::new();
        put_bytes(&mut object, "key", "ü".as_bytes());
        put_bytes(&mut object, "value", &[0xff, 0x00]);
        assert_eq!(Value::Object(object).to_string(), r#"{"key":"ü","value_hex":"ff00"}"#);
    }
}
