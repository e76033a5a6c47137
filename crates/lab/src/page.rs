//! What a measurement leaves behind: tables as Markdown and CSV, pictures as SVG.

use clap::ValueEnum;
use quorate_cli::exit::Failure;
use quorate_cli::output::columns;
use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::path::Path;

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows: the line above it.
    pub title: String,
    /// The name of its CSV file, without the ending.
    pub file: String,
    /// The head, units included.
    pub head: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(file: &str, title: &str, head: &[&'static str]) -> Table {
        Table {
            title: title.to_owned(),
            file: file.to_owned(),
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.head.len(), "a row has a cell below each head");
        self.rows.push(row);
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let head: Vec<String> = self.head.iter().map(|cell| (*cell).to_owned()).collect();
        let rule: String = self.head.iter().map(|_| "---:|").collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}:\n\n{}|{rule}\n{rows}", self.title, line(&head))
    }

    fn csv(&self) -> String {
        let head: Vec<String> = self.head.iter().map(|cell| (*cell).to_owned()).collect();
        let line = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
            format!("{}\n", cells.join(","))
        };
        std::iter::once(&head).chain(&self.rows).map(line).collect()
    }

    /// The table for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}:\n{}", self.title, columns("  ", &self.head, &self.rows))
    }
}

/// A cell of CSV.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// What one figure leaves behind.
#[derive(Clone, Debug)]
pub struct Page {
    /// The name of its files, without endings.
    pub name: String,
    /// The heading.
    pub title: String,
    /// How it was measured and what it does not say, a paragraph each.
    pub notes: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The picture, as SVG.
    pub picture: String,
}

impl Page {
    /// Writes `NAME.md`, `NAME.svg` and a CSV file for each table. `origin` says where and how it
    /// was run.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, directory: &Path, origin: &str) -> Result<(), Failure> {
        let name = &self.name;
        let mut text = format!("# {}\n\n![{}]({name}.svg)\n", self.title, self.title);
        for note in self.notes.iter().map(String::as_str).chain([origin]) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{note}\n");
        }
        for table in &self.tables {
            let _ = write!(text, "\n{}", table.markdown());
            put(directory, &format!("{}.csv", table.file), &table.csv())?;
        }
        put(directory, &format!("{name}.md"), &text)?;
        put(directory, &format!("{name}.svg"), &self.picture)
    }
}

/// The pages of one paper: a folder.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a> {
    /// Where it is.
    pub directory: &'a Path,
    /// The pages that there may be: file, name, and what it shows.
    pub list: &'a [(&'a str, &'a str, &'a str)],
}

impl Pages<'_> {
    /// Shows a page's tables and writes the page; `origin` says where and how it was run.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(&self, page: &Page, origin: &str) -> Result<(), Failure> {
        for table in &page.tables {
            writeln!(stdout(), "{}", table.text())?;
        }
        page.write(self.directory, origin)
    }

    /// Writes `README.md`: what comes first, the list of the pages that are there, and what comes
    /// last.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn index(&self, first: &str, last: &str) -> Result<(), Failure> {
        let is_there = |file: &str| self.directory.join(format!("{file}.md")).exists();
        let there = self.list.iter().filter(|(file, ..)| is_there(file));
        let lines = there.map(|(file, name, what)| format!("- [{name}]({file}.md): {what}\n"));
        let text = format!("{first}{}{last}", lines.collect::<String>());
        put(self.directory, "README.md", &text)?;
        writeln!(stdout(), "written to {}", self.directory.display())?;
        Ok(())
    }
}

/// An option of a command line with its values, if there are any.
pub fn option<T: ToString>(words: &mut String, name: &str, values: &[T]) {
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(T::to_string).collect();
        // Writing to a string cannot fail.
        let _ = write!(words, " --{name} {}", values.join(","));
    }
}

/// The word of a value on the command line.
pub fn word<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

/// Writes one file.
///
/// # Errors
/// It cannot be written.
pub fn put(directory: &Path, file: &str, text: &str) -> Result<(), Failure> {
    let path = directory.join(file);
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// A number with this many digits behind the point.
#[must_use]
pub fn fixed(number: f64, digits: usize) -> String {
    format!("{number:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_listed() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let list = [("fig1", "Figure 1", "all"), ("fig2", "Figure 2", "more")];
        put(place.path(), "fig2.md", "").expect("written");
        let pages = Pages { directory: place.path(), list: &list };
        pages.index("# Head\n\n", "\nEnd\n").expect("written");
        let text = std::fs::read_to_string(place.path().join("README.md")).expect("it is there");
        assert_eq!(text, "# Head\n\n- [Figure 2](fig2.md): more\n\nEnd\n");
        let mut words = String::new();
        option(&mut words, "nodes", &[1, 2]);
        option::<u8>(&mut words, "none", &[]);
        assert_eq!(words, " --nodes 1,2");
    }

    #[test]
    fn a_page_is_written_in_all_its_forms() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mut table = Table::new("fig0-a", "What was seen", &["size (B)", "note"]);
        table.push(vec!["256".to_owned(), "a \"b\", c".to_owned()]);
        assert!(table.text().contains("256"));
        let page = Page {
            name: "fig0".to_owned(),
            title: "Nothing".to_owned(),
            notes: vec!["Hardly measured.".to_owned()],
            tables: vec![table],
            picture: "<svg/>".to_owned(),
        };
        let inner = place.path().join("new");
        page.write(&inner, "Here.").expect("written");
        let read = |file: &str| std::fs::read_to_string(inner.join(file)).expect("it is there");
        assert_eq!(read("fig0-a.csv"), "size (B),note\n256,\"a \"\"b\"\", c\"\n");
        assert_eq!(read("fig0.svg"), "<svg/>");
        let text = read("fig0.md");
        for part in ["# Nothing\n", "(fig0.svg)", "Hardly measured.\n", "\nHere.\n"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(text.ends_with("| size (B) | note |\n|---:|---:|\n| 256 | a \"b\", c |\n"));
    }
}
