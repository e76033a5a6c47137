//! `secret`: changes the cluster's secret while its hosts run.

use crate::exit::{Code, Failure};
use crate::output::Output;
use crate::owner;
use crate::provision::plan;
use quorate_host::proof::{Secrets, fingerprint, secret};
use quorate_store::Secret;
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};

/// The arguments of `secret`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A host that runs takes a change within a second or two; `show` says what is \
                        accepted, /status what the host accepts. Run `add` and `settle` as the \
                        user that the host runs as.\n\n\
                        Example, on every host before the next step:\n  \
                        quorate secret make new.secret                          (once)\n  \
                        quorate secret add new.secret --data quorate-data/host-1\n  \
                        quorate secret settle --data quorate-data/host-1"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Draw a new secret and write it into a new file
    Make {
        /// Where the new secret is written
        file: PathBuf,
    },
    /// Have a host accept the secret of a file too, beside its own
    Add {
        /// Where the secret to accept is written
        file: PathBuf,
        #[command(flatten)]
        host: Host,
    },
    /// Have a host accept the newest of its secrets alone
    Settle(Host),
    /// Show by their fingerprints which secrets a host accepts
    Show {
        #[command(flatten)]
        host: Host,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, clap::Args)]
struct Host {
    /// The host's data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Runs `secret`.
///
/// # Errors
/// A file or directory does not fit; nothing was changed.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Make { file } => make(file),
        Command::Add { file, host } => add(&host.data, file),
        Command::Settle(host) => settle(&host.data),
        Command::Show { host, output } => show(&host.data, output.is_json()),
    }
}

fn make(file: &Path) -> Result<(), Failure> {
    let fresh = Secret(plan::random()?);
    secret::write_new(file, &[fresh]).map_err(|error| match error.source.kind() {
        ErrorKind::AlreadyExists => {
            let text = format!("{} is there already; nothing was changed", file.display());
            Failure::new(Code::Usage, text)
        }
        _ => error.into(),
    })?;
    writeln!(stdout(), "{} holds the new secret {}", file.display(), fingerprint(&fresh))?;
    Ok(())
}

fn accepted(data: &Path) -> Result<Vec<Secret>, Failure> {
    let identity = quorate_store::identity_of(data)?;
    Ok(Secrets::of(data, &identity)?.accepted().to_vec())
}

/// What is accepted, for one who changes it: nobody else does until the lock is dropped.
fn accepted_to_change(data: &Path) -> Result<(File, Vec<Secret>), Failure> {
    owner::check(data)?;
    quorate_store::identity_of(data)?;
    let mut lock = secret::lock(data)?;
    let accepted = accepted(data)?;
    // Where it was changed before that was noted.
    secret::note_change(data, &mut lock)?;
    Ok((lock, accepted))
}

fn add(data: &Path, file: &Path) -> Result<(), Failure> {
    let fresh = secret::read(file)?;
    let [fresh] = fresh[..] else {
        let text = format!("{} holds two secrets; give a file with the new one", file.display());
        return Err(Failure::new(Code::Usage, text));
    };
    let (mut lock, mut all) = accepted_to_change(data)?;
    if !all.contains(&fresh) {
        if all.len() >= secret::SECRETS_MAX {
            let text = format!(
                "{} accepts two secrets already: finish that change first, with `quorate secret \
                 settle`; nothing was changed",
                data.display()
            );
            return Err(Failure::failed(text));
        }
        all.push(fresh);
        secret::change(data, &mut lock, &all)?;
    }
    say(data, &all)
}

fn settle(data: &Path) -> Result<(), Failure> {
    let (mut lock, all) = accepted_to_change(data)?;
    let newest = all[all.len() - 1];
    if all.len() == 1 {
        let name = fingerprint(&newest);
        writeln!(
            stdout(),
            "{} accepts {name} alone: there was nothing to settle. If that is not the new secret, \
             `quorate secret add` it first",
            data.display()
        )?;
        return Ok(());
    }
    secret::change(data, &mut lock, &[newest])?;
    say(data, &[newest])
}

fn show(data: &Path, is_json: bool) -> Result<(), Failure> {
    let all = accepted(data)?;
    if is_json {
        let names: Vec<String> = all.iter().map(fingerprint).collect();
        writeln!(stdout(), "{}", json!({ "accepted": names }))?;
        return Ok(());
    }
    say(data, &all)
}

fn say(data: &Path, all: &[Secret]) -> Result<(), Failure> {
    let names: Vec<String> = all.iter().map(fingerprint).collect();
    writeln!(stdout(), "{} accepts {}", data.display(), names.join(" and "))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::plan::tests::made;

    #[test]
    fn of_two_secrets_added_at_once_none_is_lost() {
        let place = tempfile::tempdir().expect("a temporary directory");
        for round in 0..20 {
            let data = made(&place.path().join(format!("round-{round}")));
            let add_one = |byte: u8| {
                let file = place.path().join(format!("{round}-{byte}"));
                let fresh = Secret([byte; 32]);
                secret::write_new(&file, &[fresh]).expect("a place");
                add(&data, &file).is_ok().then_some(fresh)
            };
            let added: Vec<Secret> = std::thread::scope(|scope| {
                let all = [1, 2].map(|byte| scope.spawn(move || add_one(byte)));
                all.into_iter().filter_map(|one| one.join().expect("it ends")).collect()
            });
            let [added] = added[..] else { panic!("the other one is told to wait: {added:?}") };
            assert_eq!(accepted(&data).expect("readable"), [Secret([7; 32]), added]);
        }
    }

    #[test]
    fn what_was_given_up_is_not_taken_back_with_a_file_that_is_gone() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        let [first, second] = ["first", "second"].map(|name| place.path().join(name));
        for file in [&first, &second] {
            make(file).expect("a place");
        }
        add(&data, &first).expect("added");
        settle(&data).expect("settled");
        std::fs::remove_file(data.join(secret::FILE_NAME)).expect("it was there");
        for refused in [add(&data, &second), settle(&data), show(&data, false)] {
            let text = refused.expect_err("refused").message;
            assert!(text.contains("put it back"), "{text}");
        }
        assert!(!data.join(secret::FILE_NAME).exists(), "nothing was changed");
    }

    #[test]
    fn only_the_owner_changes_what_a_host_accepts() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        let file = place.path().join("new.secret");
        make(&file).expect("a place");
        assert_eq!(make(&file).expect_err("it is there").code, Code::Usage);
        settle(&data).expect("there is nothing to do");
        assert!(!data.join(secret::FILE_NAME).exists(), "nor was anything done");
        // Who may not give it away does not own this one.
        let own = data.join("start.toml");
        let is_given = std::os::unix::fs::chown(own, Some(4321), None).is_ok();
        let other = if is_given { data } else { PathBuf::from("/") };
        for refused in [add(&other, &file), settle(&other)] {
            let text = refused.expect_err("refused").message;
            assert!(text.contains("run this as that user"), "{text}");
        }
        assert!(!other.join(secret::FILE_NAME).exists(), "nothing was changed");
    }
}
