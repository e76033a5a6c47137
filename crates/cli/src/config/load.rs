//! The sources of a configuration in their order, and where each value came from.

use super::fields::{FIELDS, Field, find};
use super::settings::Config;
use super::suggest::nearest;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file beside the identity in a data directory, read before every file named by a flag.
pub const FILE_NAME: &str = "quorate.toml";

/// Why a configuration was refused. Nothing was started or changed.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is no TOML.
    #[error("{} is not valid TOML: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        message: String,
    },
    /// A setting that does not exist.
    #[error("{origin}: unknown setting {name}{}", did_you_mean(*suggestion))]
    Unknown {
        /// Where it was found.
        origin: Origin,
        /// What was written there, as it stands.
        name: String,
        /// The nearest setting that exists.
        suggestion: Option<&'static str>,
    },
    /// A value that the setting cannot take.
    #[error("{origin}: {path} = {value:?}: {message}")]
    Invalid {
        /// Where it was found.
        origin: Origin,
        /// The setting.
        path: &'static str,
        /// What was written there, as it stands.
        value: String,
        /// What was expected.
        message: String,
    },
    /// A door of clients would be open to other machines.
    #[error(
        "the {door} door would listen on {address}, which other machines can reach, without \
         encryption or authentication; bind it to a loopback address, or pass --insecure if the \
         network is trusted"
    )]
    Exposed {
        /// Which door.
        door: &'static str,
        /// Where others than this machine reach it.
        address: SocketAddr,
    },
    /// Two doors cannot listen at one place.
    #[error("the {door} door and the {other} door would both listen on {address}; move one")]
    Meeting {
        /// The later one in the order of the settings.
        door: &'static str,
        /// The earlier one, which may listen on all addresses.
        other: &'static str,
        /// Where the later one would listen.
        address: SocketAddr,
    },
    /// The addresses are not those of the directory's hosts.
    #[error("cluster.addresses has {given} addresses for {hosts} hosts")]
    Count {
        /// How many are given.
        given: usize,
        /// How many hosts the directory knows.
        hosts: usize,
    },
}

fn did_you_mean(suggestion: Option<&'static str>) -> String {
    suggestion.map_or_else(
        || String::from("; `quorate config reference` lists them all"),
        |name| format!("; did you mean {name}?"),
    )
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of this one sets it.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// It was given on the command line, by this name.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Environment(variable) => write!(f, "environment {variable}"),
            Origin::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// The environment variables of the process that begin with `QUORATE_`.
#[derive(Clone, Debug, Default)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// Those of this process. A name or value that is no UTF-8 cannot be one of ours.
    #[must_use]
    pub fn of_process() -> Environment {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Environment(variables.filter(|(name, _)| name.starts_with("QUORATE_")).collect())
    }
}

/// Everything a configuration is read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The files named by flags, in their order.
    pub files: Vec<PathBuf>,
    /// Those variables of the process that set something.
    pub environment: Environment,
    /// Flag, setting and text of each value given on the command line.
    pub flags: Vec<(&'static str, String, String)>,
}

/// A configuration and where each value came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Reads all sources. The data directory's own file comes before those named by flags, and
    /// which directory that is, the later sources decide.
    ///
    /// # Errors
    /// The first thing wrong in any source. Nothing was changed.
    pub fn read(sources: &Sources) -> Result<Loaded, ConfigError> {
        let named = Loaded::read_files(&sources.files, sources)?;
        let own = named.config.node.data.join(FILE_NAME);
        // A link to nothing, or what cannot be looked at, is no file left out.
        if std::fs::symlink_metadata(&own).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(named);
        }
        let mut files = vec![own];
        files.extend(sources.files.iter().cloned());
        let mut loaded = Loaded::read_files(&files, sources)?;
        // The directory's own file cannot say that the data is elsewhere.
        loaded.config.node.data = named.config.node.data;
        if let Some(origin) = named.origins.get("node.data") {
            loaded.origins.insert("node.data", origin.clone());
        }
        Ok(loaded)
    }

    fn read_files(files: &[PathBuf], sources: &Sources) -> Result<Loaded, ConfigError> {
        let mut loaded = Loaded { config: Config::default(), origins: BTreeMap::new() };
        for path in files {
            loaded.apply_file(path)?;
        }
        for (variable, text) in &sources.environment.0 {
            loaded.apply_variable(variable, text)?;
        }
        for (flag, name, text) in &sources.flags {
            loaded.apply(name, text, &Origin::Flag(flag))?;
        }
        Ok(loaded)
    }

    /// Where the value of a setting came from.
    #[must_use]
    pub fn origin(&self, field: &Field) -> Origin {
        self.origins.get(field.path).cloned().unwrap_or(Origin::Default)
    }

    fn apply_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::Malformed { path: path.to_owned(), message: error.to_string() }
        })?;
        let origin = Origin::File(path.to_owned());
        for (section, value) in table {
            let toml::Value::Table(entries) = value else {
                return Err(unknown(&section, &origin));
            };
            for (name, value) in entries {
                self.apply(&format!("{section}.{name}"), &text_of(&value), &origin)?;
            }
        }
        Ok(())
    }

    fn apply_variable(&mut self, variable: &str, text: &str) -> Result<(), ConfigError> {
        let Some((section, name)) =
            variable.strip_prefix("QUORATE_").and_then(|rest| rest.split_once("__"))
        else {
            // Variables without a section, such as QUORATE_ENDPOINT, are not settings of a host.
            return Ok(());
        };
        let path = format!("{section}.{name}").to_lowercase();
        self.apply(&path, text, &Origin::Environment(variable.to_owned()))
    }

    fn apply(&mut self, name: &str, text: &str, origin: &Origin) -> Result<(), ConfigError> {
        let field = find(name).ok_or_else(|| unknown(name, origin))?;
        (field.set)(&mut self.config, text).map_err(|message| ConfigError::Invalid {
            origin: origin.clone(),
            path: field.path,
            value: text.to_owned(),
            message,
        })?;
        self.origins.insert(field.path, origin.clone());
        Ok(())
    }
}

fn unknown(name: &str, origin: &Origin) -> ConfigError {
    let by_name = || {
        let bare = name.rsplit_once('.').map_or(name, |(_, bare)| bare);
        FIELDS.iter().find(|field| field.name() == bare).map(|field| field.path)
    };
    let suggestion = nearest(name, FIELDS.iter().map(|field| field.path)).or_else(by_name);
    ConfigError::Unknown { origin: origin.clone(), name: name.to_owned(), suggestion }
}

/// The text form of a TOML value; the fields read text only, so that every source means the same.
fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    fn flag(path: &str, text: &str) -> (&'static str, String, String) {
        ("--set", path.to_owned(), text.to_owned())
    }

    fn file(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, text).expect("a temporary file");
        path
    }

    #[test]
    fn flag_beats_environment_beats_later_file_beats_earlier_file_beats_default() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let all = "[store]\ncache = \"1MiB\"\nmemtable = \"1MiB\"\n[log]\nlevel = \"error\"\n\
                   format = \"text\"\n";
        let first = file(directory.path(), "a.toml", all);
        let second = file(
            directory.path(),
            "b.toml",
            "[store]\nmemtable = \"2MiB\"\n[log]\nlevel = \"warn\"\nformat = \"json\"\n",
        );
        let sources = Sources {
            files: vec![first.clone(), second.clone()],
            environment: environment(&[
                ("QUORATE_LOG__LEVEL", "debug"),
                ("QUORATE_LOG__FORMAT", "auto"),
            ]),
            flags: vec![flag("log.format", "text")],
        };
        let loaded = Loaded::read(&sources).expect("a good configuration");
        let origin = |path| loaded.origin(find(path).expect("a field"));
        let config = &loaded.config;
        assert_eq!(config.store.cache.to_string(), "1MiB");
        assert_eq!(origin("store.cache"), Origin::File(first));
        assert_eq!(config.store.memtable.to_string(), "2MiB");
        assert_eq!(origin("store.memtable"), Origin::File(second));
        assert_eq!(config.log.level.to_string(), "debug");
        assert_eq!(origin("log.level").to_string(), "environment QUORATE_LOG__LEVEL");
        assert_eq!(config.log.format.to_string(), "text");
        assert_eq!(origin("log.format"), Origin::Flag("--set"));
        assert_eq!(origin("http.bind"), Origin::Default);
    }

    #[test]
    fn the_data_directorys_own_file_comes_first_and_cannot_move_the_data() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = "[node]\ndata = \"/elsewhere\"\n[resp]\nbind = \"127.0.0.1:1\"\n\
                    [http]\nbind = \"127.0.0.1:2\"\n";
        file(directory.path(), FILE_NAME, text);
        let over = file(directory.path(), "over.toml", "[http]\nbind = \"127.0.0.1:3\"\n");
        let data = directory.path().display().to_string();
        let sources = Sources {
            files: vec![over],
            environment: Environment::default(),
            flags: vec![("--data", String::from("node.data"), data)],
        };
        let loaded = Loaded::read(&sources).expect("a good configuration");
        assert_eq!(loaded.config.node.data, directory.path());
        assert_eq!(loaded.config.doors[0].bind.port(), 1);
        assert_eq!(loaded.config.http.bind.port(), 3);
        let own = directory.path().join(FILE_NAME);
        fs::remove_file(&own).expect("it was there");
        std::os::unix::fs::symlink("nothing", &own).expect("a place");
        let error = Loaded::read(&sources).expect_err("refused");
        assert!(matches!(error, ConfigError::Unreadable { .. }), "it is not left out: {error}");
    }

    #[test]
    fn unknown_settings_are_refused_with_a_suggestion() {
        let message = |sources: &Sources| Loaded::read(sources).expect_err("unknown").to_string();
        let from_flag =
            |path: &str| message(&Sources { flags: vec![flag(path, "1")], ..Sources::default() });
        assert_eq!(
            from_flag("store.cahce"),
            "flag --set: unknown setting store.cahce; did you mean store.cache?"
        );
        assert!(from_flag("resp.memtable").ends_with("did you mean store.memtable?"));
        assert!(from_flag("x.y").ends_with("`quorate config reference` lists them all"));
        let variable = environment(&[("QUORATE_HTPP__BIND", "127.0.0.1:1")]);
        let text = message(&Sources { environment: variable, ..Sources::default() });
        assert!(text.ends_with("unknown setting htpp.bind; did you mean http.bind?"), "{text}");
    }

    #[test]
    fn keys_outside_a_section_and_bad_toml_are_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let read = |text: &str| {
            let files = vec![file(directory.path(), "x.toml", text)];
            Loaded::read(&Sources { files, ..Sources::default() }).map(|loaded| loaded.config)
        };
        let stray = read("cache = \"1MiB\"\n").expect_err("no section").to_string();
        assert!(stray.contains("did you mean store.cache?"), "{stray}");
        assert!(matches!(read("[store\n"), Err(ConfigError::Malformed { .. })));
        assert!(matches!(read("[store]\ncache = 1.5\n"), Err(ConfigError::Invalid { .. })));
        assert_eq!(read("[store]\ncache = 1024\n").expect("plain bytes").store.cache.0, 1024);
    }

    #[test]
    fn variables_without_a_section_are_not_settings() {
        let sources = Sources {
            environment: environment(&[("QUORATE_ENDPOINT", "x")]),
            ..Sources::default()
        };
        assert!(Loaded::read(&sources).is_ok());
    }
}
