//! The configuration of a host: TOML files, environment variables and flags over defaults.
//!
//! A flag beats the environment, the environment beats a file, a later file beats an earlier one,
//! and every file beats the default. Every setting is one row of [`fields::FIELDS`], which alone
//! says its name, its text form, its place in [`Config`] and its documentation; reading, showing
//! and the printed reference all follow that table. A name that is not in it is an error that
//! suggests the nearest one that is.
//!
//! | module | what it holds |
//! |---|---|
//! | [`values`] | the text forms of durations, sizes, levels and lists of addresses |
//! | [`settings`] | [`Config`]: the typed settings and their defaults |
//! | [`fields`] | the table of all settings |
//! | `doors` | the settings of each door of clients on the core thread |
//! | [`load`] | [`Loaded`]: the sources in their order, and where each value came from |
//! | `check` | what is refused of settings that do not fit each other |
//! | [`show`] | the settings as TOML or JSON, and the documented reference |
//! | [`suggest`] | the nearest known name |

mod check;
mod doors;
pub mod fields;
pub mod load;
pub mod settings;
pub mod show;
pub mod suggest;
pub mod values;

pub use load::{ConfigError, Environment, Loaded, Origin, Sources};
pub use settings::Config;
