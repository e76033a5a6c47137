//! `rejoin`: makes room for a new identity where a directory was refused.

use crate::config::load::FILE_NAME;
use crate::config::values::{check_address, path_parser};
use crate::config::{Loaded, Sources};
use crate::exit::{Code, Failure};
use crate::owner;
use quorate_store::directory::{HeldDirectory, hold};
use quorate_store::{DirectoryError, Identity, identity_of};
use rustix::fs::Mode;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The arguments of `rejoin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The old directory is kept beside the new one, as DIR.refused-N. What it \
                        held is fetched from the other hosts after the join, so never do this to \
                        a majority of the replicas of a key at once: wait until `quorate status` \
                        shows that nothing moves.\n\n\
                        Run it as the user that its host runs as.\n\n\
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
/// The directory is in use, was never one, is somebody else's, or is well; it stays as it was. Or
/// the disk fails, which names what is where.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Without a slash at its end, which would make a name beside it one in it.
    let data: PathBuf = std::path::absolute(&args.data)?.components().collect();
    if !data.is_dir() {
        return Err(Failure::new(Code::Usage, absent(&data)));
    }
    owner::check(&data)?;
    if let Err(error @ DirectoryError::NotInitialised { .. }) = identity_of(&data) {
        return Err(Failure::failed(format!("{error}{}", put_aside(&data))));
    }
    // What the database makes when it is looked at is its owner's alone, as with a host.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // Until all is done: a host that is started again meanwhile must not come in between.
    let held = hold(&data)?;
    let why = refusal(&data, &held, args.force)?;
    let aside = free_name(&data);
    replace(&data, &aside)?;
    let identity = identity_of(&aside).ok();
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

/// What is said of a directory that is not there. One that was put aside may be all there is of it.
fn absent(data: &Path) -> String {
    let text = format!("{} is no directory; nothing was changed", data.display());
    match last_aside(data).filter(|_| !data.exists()) {
        Some(aside) => format!(
            "{text}. {} is there: if `quorate rejoin` was cut off after it had put that aside, \
             move it back to {}, and run it again",
            aside.display(),
            data.display()
        ),
        None => text,
    }
}

/// What is said of an empty directory beside one that was put aside.
fn put_aside(data: &Path) -> String {
    let text = |aside: PathBuf| {
        format!(
            ". {} is what `quorate rejoin` put aside; if that is done, {} is to join: quorate \
             server --data {} --join HOST:PORT --secret-file cluster.secret{}",
            aside.display(),
            data.display(),
            data.display(),
            flags(data, identity_of(&aside).ok().as_ref())
        )
    };
    last_aside(data).map(text).unwrap_or_default()
}

/// Moves the directory aside, and a new one with its settings into its place. That is whole and
/// synced before anything is moved.
fn replace(data: &Path, aside: &Path) -> Result<(), Failure> {
    let parent = data.parent().unwrap_or(data);
    let mut name: OsString = data.file_name().unwrap_or_default().to_owned();
    name.push(".rejoin-");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&name).permissions(Permissions::from_mode(0o700));
    let fresh = builder.tempdir_in(parent).map_err(|error| {
        let (name, parent) = (data.display(), parent.display());
        let text = format!("making the new directory for {name} in {parent} failed: {error}");
        Failure::failed(format!("{text}; nothing was changed{}", by_hand(data, &error)))
    })?;
    copy_settings(data, fresh.path())?;
    fs::rename(data, aside).map_err(|error| Failure::failed(not_moved(data, aside, &error)))?;
    fs::rename(fresh.path(), data).map_err(|error| {
        let is_back = !data.exists() && fs::rename(aside, data).is_ok();
        let (data, aside, fresh) = (data.display(), aside.display(), fresh.path().display());
        Failure::failed(if is_back {
            format!("moving {fresh} to {data} failed: {error}; nothing was changed")
        } else {
            format!(
                "{data} was moved to {aside}, and {fresh}, which is to take its place, could not \
                 be: {error}. Move {aside} back to {data}, and run this again"
            )
        })
    })?;
    // It has another name by now.
    let _ = fresh.keep();
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(|error| {
        let (data, aside, parent) = (data.display(), aside.display(), parent.display());
        Failure::failed(format!(
            "{data} was moved to {aside}, and a new one took its place, but syncing {parent} \
             failed: {error}. See that both are there after the next restart of the machine"
        ))
    })
}

/// What the operator has set is kept. A link to a file that is not there is no setting left out.
fn copy_settings(data: &Path, fresh: &Path) -> Result<(), Failure> {
    let (from, to) = (data.join(FILE_NAME), fresh.join(FILE_NAME));
    let copy = || match fs::symlink_metadata(&from) {
        Err(error) if error.kind() == ErrorKind::NotFound => File::open(fresh)?.sync_all(),
        Err(error) => Err(error),
        Ok(_) => {
            fs::copy(&from, &to)?;
            File::open(&to)?.sync_all()?;
            File::open(fresh)?.sync_all()
        }
    };
    copy().map_err(|error| {
        let (from, to) = (from.display(), to.display());
        Failure::failed(format!("copying {from} to {to} failed: {error}; nothing was changed"))
    })
}

fn not_moved(data: &Path, aside: &Path, error: &io::Error) -> String {
    let (name, aside) = (data.display(), aside.display());
    let advice = by_hand(data, error);
    format!("moving {name} to {aside} failed: {error}; nothing was changed{advice}")
}

/// What else can be done where nothing can be moved or made beside the directory.
fn by_hand(data: &Path, error: &io::Error) -> String {
    let kinds =
        [ErrorKind::ResourceBusy, ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
    if !kinds.contains(&error.kind()) {
        return String::new();
    }
    let flags = flags(data, identity_of(data).ok().as_ref());
    let data = data.display();
    format!(
        ". {data} is a mount point, or its user may write nothing beside it. Count its node as \
         gone, with `quorate remove`, move what is in {data} elsewhere, but for {FILE_NAME}, and \
         join with what is left: quorate server --data {data} --join HOST:PORT --secret-file \
         cluster.secret{flags}"
    )
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
        let address = identity.and_then(own).map(|own| own.address);
        let address = address.filter(|address| check_address(address).is_ok());
        let address = address.unwrap_or_else(|| "HOST:PORT".into());
        text.push_str(&format!(" --address {address}"));
    }
    if loaded.config.check_exposure().is_err() {
        text.push_str(" --insecure");
    }
    text
}

/// Why the directory cannot serve any more.
fn refusal(data: &Path, held: &HeldDirectory, is_forced: bool) -> Result<String, Failure> {
    match held.look().map(|identity| identity.node) {
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

/// The names of directories that were put aside, and then of those that may be.
fn aside_names(data: &Path) -> impl Iterator<Item = PathBuf> {
    let data = data.as_os_str().to_owned();
    (1u32..).map(move |number| {
        let mut name: OsString = data.clone();
        name.push(format!(".refused-{number}"));
        PathBuf::from(name)
    })
}

/// The first name beside the directory that is free.
fn free_name(data: &Path) -> PathBuf {
    let mut names = aside_names(data);
    names.find(|name| !name.exists()).expect("numbers do not run out before names do")
}

/// The directory that was put aside last.
fn last_aside(data: &Path) -> Option<PathBuf> {
    aside_names(data).take_while(|name| name.exists()).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::plan::tests::made;
    use quorate_kernel::ids::Start;
    use quorate_store::{Directory, Opened, Options};

    fn refused(data: &Path, force: bool) -> String {
        run(&Args { data: data.to_owned(), force }).expect_err("refused").message
    }

    fn names(place: &Path) -> Vec<String> {
        let names = fs::read_dir(place).expect("a directory").map(|entry| entry.expect("a name"));
        let mut names: Vec<_> = names.map(|entry| entry.file_name().into_string()).collect();
        names.sort_unstable();
        names.into_iter().map(|name| name.expect("text")).collect()
    }

    #[test]
    fn what_is_well_is_not_started_by_the_question() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        let start = || fs::read(data.join("start.toml")).expect("readable");
        let never = start();
        assert!(refused(&data, false).contains("nothing is wrong with it"));
        assert_eq!(start(), never, "it was never started");
        let directory = Directory::open(&data, None).expect("opened");
        assert_eq!(directory.start(), Start(1));
        let opened =
            quorate_store::open(&directory, &Options::default(), quorate_store::machine_clock());
        let Opened { log, reader, .. } = opened.expect("opened");
        log.close().expect("closed");
        drop(reader);
        directory.stop_cleanly().expect("stopped");
        let stopped = start();
        assert!(refused(&data, false).contains("nothing is wrong with it"));
        assert_eq!(start(), stopped, "it is closed as it was");
        assert_eq!(names(place.path()), ["host-1"], "nothing was moved");
    }

    #[test]
    fn a_directory_that_cannot_be_replaced_stays_as_it_was() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        fs::create_dir(data.join(FILE_NAME)).expect("a place");
        let text = refused(&data, true);
        let from = data.join(FILE_NAME).display().to_string();
        assert!(text.contains(&format!("copying {from} to ")), "{text}");
        assert_eq!(names(place.path()), ["host-1"], "nothing is left");
        identity_of(&data).expect("it is as it was");
        let (data, aside) = (Path::new("/d/a"), Path::new("/d/a.refused-1"));
        let busy = not_moved(data, aside, &ErrorKind::ResourceBusy.into());
        assert!(busy.contains("moving /d/a to /d/a.refused-1 failed"), "{busy}");
        assert!(busy.contains("/d/a is a mount point"), "{busy}");
        let full = not_moved(data, aside, &ErrorKind::StorageFull.into());
        assert!(!full.contains("mount point"), "{full}");
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
            let text = by_hand(data, &kind.into());
            assert!(text.contains("move what is in /d/a elsewhere"), "{text}");
        }
    }

    #[test]
    fn what_was_put_aside_is_named() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        fs::write(data.join(FILE_NAME), "").expect("a place");
        let slash = PathBuf::from(format!("{}/", data.display()));
        run(&Args { data: slash, force: true }).expect("put aside");
        assert_eq!(names(place.path()), ["host-1", "host-1.refused-1"]);
        assert_eq!(names(&data), [FILE_NAME]);
        let mode = fs::metadata(&data).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let text = refused(&data, false);
        assert!(text.contains("host-1.refused-1 is what `quorate rejoin` put aside"), "{text}");
        assert_eq!(names(&data), [FILE_NAME], "it is still empty");
        fs::remove_dir_all(&data).expect("as if it was cut off");
        let text = refused(&data, false);
        assert!(text.contains("host-1.refused-1 is there") && text.contains("move it back"));
        let text = refused(&place.path().join("host-2"), false);
        assert!(text.ends_with("nothing was changed"), "{text}");
    }

    #[test]
    fn a_stranger_changes_nothing() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        // Who may not give it away does not own this one.
        let own = data.join("start.toml");
        let is_given = std::os::unix::fs::chown(own, Some(4321), None).is_ok();
        let data = if is_given { data } else { PathBuf::from("/") };
        let text = refused(&data, true);
        assert!(text.contains("run this as that user"), "{text}");
    }

    #[test]
    fn a_directory_that_a_host_still_closes_is_not_set_aside() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = made(place.path());
        let directory = Directory::open(&data, None).expect("opened");
        let options = Options::default();
        let opened = quorate_store::open(&directory, &options, quorate_store::machine_clock());
        let Opened { log, reader, .. } = opened.expect("opened");
        drop((log, directory));
        for force in [false, true] {
            let text = refused(&data, force);
            assert!(text.contains("in use"), "{text}");
        }
        assert_eq!(names(place.path()), ["host-1"], "nothing was moved");
        drop(reader);
        Directory::open(&data, None).expect("it is as it was");
    }
}
