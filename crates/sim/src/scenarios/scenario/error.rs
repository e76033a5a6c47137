//! Why a scenario cannot be run.

use std::path::PathBuf;
use thiserror::Error;

/// Why a scenario cannot be run. Nothing was simulated.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// No scenario has this name and no file this path.
    #[error("no scenario is called `{name}`; --list shows them, and a path to a file is taken too")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written. The runs were done.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no scenario.
    #[error("{name} is not a valid scenario")]
    Syntax {
        /// The scenario.
        name: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A field is out of range, or two fields contradict each other.
    #[error("scenario {name}: {what}")]
    Invalid {
        /// The scenario.
        name: String,
        /// What is wrong.
        what: String,
    },
}
