//! The settings as TOML or JSON, and the documented reference.

use super::fields::{FIELDS, SECTIONS};
use super::load::Loaded;
use super::settings::Config;
use std::fmt::Write;

/// The settings in force as TOML, each with where it came from if asked.
#[must_use]
pub fn as_toml(loaded: &Loaded, with_origin: bool) -> String {
    let mut text = String::new();
    for (section, _) in SECTIONS.iter() {
        let _ = writeln!(text, "{}[{section}]", if text.is_empty() { "" } else { "\n" });
        for field in FIELDS.iter().filter(|field| field.section() == *section) {
            let _ = write!(text, "{} = {}", field.name(), field.toml(&loaded.config));
            if with_origin {
                let _ = write!(text, "  # {}", loaded.origin(field));
            }
            text.push('\n');
        }
    }
    text
}

/// The settings in force as one JSON object: each setting's path with its value and origin.
#[must_use]
pub fn as_json(loaded: &Loaded) -> serde_json::Value {
    let entries = FIELDS.iter().map(|field| {
        let value = (field.show)(&loaded.config);
        let origin = loaded.origin(field).to_string();
        (field.path.to_owned(), serde_json::json!({ "value": value, "origin": origin }))
    });
    serde_json::Value::Object(entries.collect())
}

/// A sample file with every setting at its default and what it means.
#[must_use]
pub fn reference() -> String {
    let defaults = Config::default();
    let mut text = String::from(
        "# Every setting of `quorate server` with its default.\n\
         # A flag beats the environment, the environment a file, a later file an earlier one.\n\
         # Lengths of time are written as \"500ms\", \"5s\", \"1m\"; sizes as \"64MiB\".\n",
    );
    for (section, doc) in SECTIONS.iter() {
        let _ = writeln!(text, "\n# {doc}\n[{section}]");
        for field in FIELDS.iter().filter(|field| field.section() == *section) {
            for line in field.doc.lines() {
                let _ = writeln!(text, "# {line}");
            }
            let _ = writeln!(text, "# Environment: {}", field.variable());
            let _ = writeln!(text, "{} = {}", field.name(), field.toml(&defaults));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::{Origin, Sources};

    fn read_back(text: &str) -> Loaded {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("sample.toml");
        std::fs::write(&path, text).expect("a temporary file");
        Loaded::read(&Sources { files: vec![path], ..Sources::default() }).expect("it parses")
    }

    #[test]
    fn the_reference_parses_to_the_defaults_and_names_every_setting() {
        let loaded = read_back(&reference());
        assert_eq!(loaded.config, Config::default());
        for field in FIELDS.iter() {
            assert_ne!(loaded.origin(field), Origin::Default, "{} is missing", field.path);
        }
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_settings() {
        let flags = [
            ("store.cache", "3MiB"),
            ("cluster.addresses", "a:1,b:2"),
            ("node.data", "a \"quoted\" place"),
        ];
        let flags = flags
            .iter()
            .map(|(path, text)| ("--set", (*path).to_owned(), (*text).to_owned()))
            .collect();
        let loaded = Loaded::read(&Sources { flags, ..Sources::default() }).expect("good");
        let shown = as_toml(&loaded, true);
        assert!(shown.contains("cache = \"3MiB\"  # flag --set"), "{shown}");
        assert!(shown.contains("addresses = [\"a:1\", \"b:2\"]  # flag --set"), "{shown}");
        assert!(shown.contains("level = \"info\"  # default"), "{shown}");
        assert_eq!(read_back(&shown).config, loaded.config);
        let json = as_json(&loaded);
        assert_eq!(json["store.cache"]["value"], "3MiB");
        assert_eq!(json["log.level"]["origin"], "default");
    }
}
