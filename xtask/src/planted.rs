//! Builds with the planted bugs compiled in.
//!
//! None of them is in force unless the environment names it, so these are the builds that CI tests:
//! one for the tests and one for the simulator, instead of two each. The flag that lets them in
//! reaches only the crates of this workspace, through a compiler wrapper.

use crate::{run, sweep};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A cargo command that lets the planted bugs in.
pub fn cargo(arguments: &[&str]) -> Result<Command, String> {
    let mut command = run::cargo(arguments);
    command.env("RUSTC_WORKSPACE_WRAPPER", wrapper()?);
    // A panic says where it is all the same, and without lines all this builds much sooner.
    command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    Ok(command)
}

/// Writes the compiler wrapper. Cargo keeps the results of different wrappers apart by their paths.
fn wrapper() -> Result<PathBuf, String> {
    let target = run::target_directory();
    let path = target.join("with-mutants");
    // Other shells drop variables whose names have a hyphen, such as those of our binaries.
    let text = "#!/bin/bash\nexec \"$@\" --cfg quorate_mutants\n";
    // Steps run side by side, and none may run it while another one writes it.
    static WRITES: Mutex<()> = Mutex::new(());
    let write = || {
        let _alone = WRITES.lock().expect("no thread panics");
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            return Ok(());
        }
        fs::create_dir_all(&target)?;
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    };
    write()
        .map_err(|error: std::io::Error| format!("{}: cannot write: {error}", path.display()))?;
    Ok(path)
}

/// The arguments that name the tests of all crates but the simulator, whose turn comes where its
/// build is shared.
pub const ALL_TESTS: [&str; 4] = ["test", "--workspace", "--exclude", sweep::PACKAGE];

/// The binaries of tests.
#[derive(Debug, Default)]
pub struct Tests(BTreeMap<String, Vec<Executable>>);

#[derive(Debug)]
struct Executable {
    path: PathBuf,
    /// The directory of its crate, in which cargo runs it.
    directory: PathBuf,
}

/// Builds the tests of some crates, or of all.
pub fn tests(packages: Option<&BTreeSet<&str>>) -> Result<Tests, String> {
    let mut command = match packages {
        None => cargo(&ALL_TESTS)?,
        Some(packages) => {
            let mut command = cargo(&["test", "--tests"])?;
            command.args(packages.iter().flat_map(|package| ["--package", package]));
            command
        }
    };
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    println!("== tests with planted bugs: {}", run::line(&command));
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run: {error}"))?;
    if !output.status.success() {
        return Err(format!("tests with planted bugs: failed with {}", output.status));
    }
    let mut tests = Tests::default();
    String::from_utf8_lossy(&output.stdout).lines().for_each(|line| tests.take(line));
    Ok(tests)
}

impl Tests {
    /// Takes one message of cargo.
    fn take(&mut self, message: &str) {
        let Ok(message) = serde_json::from_str::<Value>(message) else { return };
        let (manifest, path) = (message["manifest_path"].as_str(), message["executable"].as_str());
        let (Some(manifest), Some(path), true) =
            (manifest, path, message["profile"]["test"] == true)
        else {
            return;
        };
        let directory = PathBuf::from(manifest).parent().map(PathBuf::from).unwrap_or_default();
        let package = package_of(message["package_id"].as_str().unwrap_or_default());
        let executable = Executable { path: path.into(), directory };
        self.0.entry(package.to_owned()).or_default().push(executable);
    }

    /// The commands that run the tests of a crate.
    pub fn of(&self, package: &str) -> impl Iterator<Item = Command> {
        self.0.get(package).into_iter().flatten().map(|executable| {
            let mut command = Command::new(&executable.path);
            command.current_dir(&executable.directory);
            command
        })
    }
}

/// The name in a package's id: `path+file:///directory#name@version`, without the name if the
/// directory ends with it.
fn package_of(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_name_the_tests_of_a_crate() {
        let mut tests = Tests::default();
        for (id, executable, is_test) in [
            ("path+file:///r/crates/node#quorate-node@0.1.0", "\"/t/node-1\"", true),
            ("path+file:///r/crates/node#quorate-node@0.1.0", "\"/t/it-2\"", true),
            ("path+file:///r/crates/node#quorate-node@0.1.0", "\"/t/node\"", false),
            ("path+file:///r/xtask#0.1.0", "\"/t/xtask-3\"", true),
            ("path+file:///r/crates/node#quorate-node@0.1.0", "null", true),
        ] {
            tests.take(&format!(
                r#"{{"package_id":"{id}","manifest_path":"/r/Cargo.toml",
                "profile":{{"test":{is_test}}},"executable":{executable}}}"#
            ));
        }
        tests.take("no message");
        let paths = |package| -> Vec<_> {
            tests.of(package).map(|command| command.get_program().to_owned()).collect()
        };
        assert_eq!(paths("quorate-node"), ["/t/node-1", "/t/it-2"]);
        assert_eq!(paths("xtask"), ["/t/xtask-3"]);
        assert!(paths("quorate-store").is_empty());
    }
}
