//! `rejoin`: makes room for a new identity where a directory was refused.

use crate::config::load::FILE_NAME;
use crate::config::values::path_parser;
use crate::config::{Loaded, Sources};
use crate::exit::{Code, Failure};
use quorate_store::{Directory, DirectoryError, Identity};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{Write, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The arguments of `rejoin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The old directory is kept beside the new one, as DIR.refused-N. What it \
                        held is fetched from the other hosts after the join, so never do this to \
                        a majority of the replicas of a key at once: wait until `quorate status` \
                        shows that nothing moves.\n\n\
                        Example: quorate rejoin --data quorate-data/host-2")]
pub struct Args {
    /// The data directory that a host refuses
    #[arg(long, value_name = "DIR", value_parser = path_parser())]
    data: PathBuf,
    /// Also if nothing is wrong with the directory, such as that of a host that was removed
    #[arg(long)]
    force: bool,
}

/// Runs `rejoin`.
///
/// # Errors
/// The directory is in use, was never one, or is well; it stays as it was.
pub fn run(args: &Args) -> Result<(), Failure> {
    let data = std::path::absolute(&args.data)?;
    if !data.is_dir() {
        let text = format!("{} is no directory; nothing was changed", data.display());
        return Err(Failure::new(Code::Usage, text));
    }
    quorate_store::directory::check_unused(&data)?;
    let why = refusal(&data, args.force)?;
    let aside = free_name(&data);
    std::fs::rename(&data, &aside)?;
    DirBuilder::new().mode(0o700).create(&data)?;
    let settings = aside.join(FILE_NAME);
    if settings.exists() {
        std::fs::copy(&settings, data.join(FILE_NAME))?;
    }
    let identity = quorate_store::identity_of(&aside).ok();
    let node = identity.as_ref().map_or_else(|| "NODE".into(), |known| known.node.to_string());
    writeln!(
        stdout(),
        "{why}\nIt was moved to {}, and {} is empty now.\nFirst count the old node as gone: \
         quorate remove {node} --http HOST:PORT\nThen join again: quorate server --data {} --join \
         HOST:PORT --secret-file cluster.secret{}",
        aside.display(),
        data.display(),
        data.display(),
        flags(&data, identity.as_ref())
    )?;
    Ok(())
}

/// What else the join needs: the host keeps its settings, but not what was said when it was
/// started or when its cluster was made.
fn flags(data: &Path, identity: Option<&Identity>) -> String {
    let flags = vec![("--data", String::from("node.data"), data.display().to_string())];
    // Settings that cannot be read are told when the host is started.
    let Ok(loaded) = Loaded::read(&Sources { flags, ..Sources::default() }) else {
        return String::new();
    };
    let mut text = String::new();
    let cluster = &loaded.config.cluster;
    if cluster.bind.ip().is_unspecified() && cluster.advertise.0.is_empty() {
        let own = |it: &Identity| it.hosts.iter().find(|host| host.node == it.node).cloned();
        let address = identity.and_then(own).map_or_else(|| "HOST:PORT".into(), |own| own.address);
        text.push_str(&format!(" --address {address}"));
    }
    if loaded.config.check_exposure().is_err() {
        text.push_str(" --insecure");
    }
    text
}

/// Why the directory cannot serve any more. Looking may raise its start counter, which is harmless.
fn refusal(data: &Path, is_forced: bool) -> Result<String, Failure> {
    let opened = Directory::open(data, None).and_then(|directory| {
        let options = quorate_store::Options::default();
        let opened = quorate_store::open(&directory, &options, quorate_store::machine_clock())?;
        drop(opened);
        Ok(directory.identity().node)
    });
    match opened {
        Err(error @ DirectoryError::NotInitialised { .. }) => Err(error.into()),
        Err(error @ (DirectoryError::Locked { .. } | DirectoryError::NewerFormat { .. })) => {
            Err(error.into())
        }
        // Too little memory, room or rights, or too many open files, say nothing of the directory.
        Err(error @ DirectoryError::Io { .. }) if !is_forced => Err(Failure::failed(format!(
            "{error}. Nothing was moved: find out why and start the host again. If its disk cannot \
             be read any more, use --force"
        ))),
        Err(error) => Ok(error.to_string()),
        Ok(node) if is_forced => Ok(format!("node {node} was given up by force.")),
        Ok(node) => Err(Failure::failed(format!(
            "{} holds node {node} and nothing is wrong with it: start it as it is. If node {node} \
             was removed from its cluster, or its directory is a copy, use --force",
            data.display()
        ))),
    }
}

/// The first name beside the directory that is free.
fn free_name(data: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name: OsString = data.as_os_str().to_owned();
        name.push(format!(".refused-{number}"));
        PathBuf::from(name)
    };
    (1..).map(name).find(|name| !name.exists()).expect("numbers do not run out before names do")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::{ClusterId, NodeId};
    use quorate_store::{Opened, Options, Secret};

    fn identity() -> Identity {
        Identity {
            cluster: ClusterId(1),
            node: NodeId(2),
            host: 1,
            is_founder: true,
            secret: Secret([7; 32]),
            context_key: None,
            hosts: Vec::new(),
            keyspaces: Vec::new(),
        }
    }

    #[test]
    fn a_directory_that_a_host_still_closes_is_not_set_aside() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = place.path().join("host-1");
        quorate_store::create(&data, &identity()).expect("created");
        let directory = Directory::open(&data, None).expect("opened");
        let options = Options::default();
        let opened = quorate_store::open(&directory, &options, quorate_store::machine_clock());
        let Opened { log, reader, .. } = opened.expect("opened");
        drop((log, directory));
        for force in [false, true] {
            let refused = run(&Args { data: data.clone(), force }).expect_err("refused");
            assert!(refused.message.contains("in use"), "{}", refused.message);
        }
        let names = std::fs::read_dir(place.path()).expect("a directory");
        assert_eq!(names.count(), 1, "nothing was moved");
        drop(reader);
        Directory::open(&data, None).expect("it is as it was");
    }
}
