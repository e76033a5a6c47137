//! A directory whose machine may lose power: what was not synced is then gone, or random parts of
//! it are there.

use crate::support::cluster::Cluster;
use quorate_kernel::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// What survives whole or not at all of a file.
const PAGE: usize = 4096;

/// What survives of what was not synced.
pub enum Unsynced {
    /// Nothing.
    Lost,
    /// Of each file random pages as they were last written, and its old or new length; of each
    /// directory the random changes of its names.
    Some(Rng),
}

/// How many files and directories do not have any more what was last written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// Segments of logs.
    pub segments: usize,
    /// All others.
    pub others: usize,
}

impl Lost {
    fn note(&mut self, name: &str) {
        match name {
            // Nothing rests on what is in it, and no host ever syncs it.
            "lock" => {}
            _ if name.ends_with(SEGMENT) => self.segments += 1,
            _ => self.others += 1,
        }
    }
}

/// How the names of a log's segments end.
pub const SEGMENT: &str = ".segment";
/// How long a sync of a segment takes at least, so that hosts under load are killed within one,
/// however fast the machine's disk is.
const SYNC_TAKES: Duration = Duration::from_millis(3);
/// How long a sync takes within which a process is killed.
const DIES_IN: Duration = Duration::from_millis(200);

/// A directory under the shim's eyes.
pub struct Disk {
    root: PathBuf,
    shadow: PathBuf,
    boots: u32,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    inode: u64,
    is_directory: bool,
}

type Names = BTreeMap<String, Entry>;

/// The library that watches a directory, made once.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/power/shim.c");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let made = place.join(format!("power-{}.so", std::process::id()));
        let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"];
        let status = Command::new("cc").args(flags).arg("-o").arg(&made).arg(source).status();
        let status = status.expect("`cc`, a C compiler, is installed: `make tools` does it");
        assert!(status.success(), "the shim is made");
        let shim = place.join("power.so");
        // Whoever has the old one loaded keeps it.
        fs::rename(made, &shim).expect("a free name");
        shim
    })
}

/// The number that the shim has written, if it has.
fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.parse().ok()
}

/// The names in a directory as they are.
fn names_of(path: &Path) -> Names {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("nobody removes it");
        let name = entry.file_name().into_string().expect("names are text");
        (name, Entry { inode: metadata.ino(), is_directory: metadata.is_dir() })
    };
    fs::read_dir(path).expect("a directory").map(entry).collect()
}

impl Disk {
    /// A directory that is durable as it is; the shadow is beside it.
    pub fn of(root: &Path) -> Disk {
        let root = fs::canonicalize(root).expect("it is there");
        let shadow = root.with_extension("shadow");
        let mut disk = Disk { root, shadow, boots: 0 };
        disk.begin();
        disk
    }

    /// Puts the data of all hosts of a cluster, which do not run yet, on such a disk.
    pub fn under(cluster: &mut Cluster) -> Disk {
        let disk = Disk::of(&cluster.place().join("data"));
        cluster.set_environment(disk.environment());
        disk
    }

    /// What a process that uses the directory is to be started with.
    pub fn environment(&self) -> Vec<(String, String)> {
        let pair = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
        vec![
            pair("LD_PRELOAD", shim()),
            pair("POWER_ROOT", &self.root),
            pair("POWER_SHADOW", &self.shadow),
            pair("POWER_BOOT", &self.shadow.join("boot")),
            pair("POWER_LIES", &self.lies()),
            (String::from("POWER_TAKES"), SYNC_TAKES.as_micros().to_string()),
        ]
    }

    /// The same, and it is killed within the sync of this number, from 1, of paths that contain
    /// this: so late that whoever is answered before the sync has ended knows it by then.
    pub fn environment_until(&self, dies_at: u64, on: &str) -> Vec<(String, String)> {
        let mut environment = self.environment();
        environment.push((String::from("POWER_DIES_IN"), DIES_IN.as_micros().to_string()));
        environment.push((String::from("POWER_DIES_AT"), dies_at.to_string()));
        environment.push((String::from("POWER_DIES_ON"), on.to_owned()));
        environment
    }

    /// The same, and the sync of this number, from 1, of paths that contain this fails: what it was
    /// to make durable counts as clean, and is not.
    pub fn environment_failing(&self, fails_at: u64, on: &str) -> Vec<(String, String)> {
        let mut environment = self.environment();
        environment.push((String::from("POWER_FAILS_AT"), fails_at.to_string()));
        environment.push((String::from("POWER_FAILS_ON"), on.to_owned()));
        environment
    }

    fn lies(&self) -> PathBuf {
        self.root.with_extension("lies")
    }

    /// From now on a sync of a path that contains this does nothing: the planted bug.
    pub fn lie(&self, about: &str) {
        fs::write(self.lies(), about).expect("a temporary file");
    }

    /// When a log first had what no sync covers that has ended, or was believed to; nothing if all
    /// of it is synced.
    pub fn unsynced_since(&self, log: &Path) -> Option<SystemTime> {
        let number = |(name, entry): (String, Entry)| {
            let since = name.ends_with(SEGMENT).then(|| self.place("since", entry.inode))?;
            number_in(&since).filter(|since| *since > 0)
        };
        let first = names_of(log).into_iter().filter_map(number).min()?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(first))
    }

    /// How long the last sync of a log took, of the host that took longest.
    pub fn sync_took(&self) -> Duration {
        let names = names_of(&self.shadow).into_keys();
        let times = names.filter(|name| name.starts_with("took."));
        let longest = times.filter_map(|name| number_in(&self.shadow.join(name))).max();
        Duration::from_nanos(longest.unwrap_or(0))
    }

    /// Takes all that is there as durable.
    fn begin(&mut self) {
        let _ = fs::remove_dir_all(&self.shadow);
        fs::create_dir(&self.shadow).expect("a free name");
        self.boots += 1;
        let boot = format!("boot-{}\n", self.boots);
        fs::write(self.shadow.join("boot"), boot).expect("a temporary file");
        self.take(&self.root);
    }

    /// Whether all that a file has is durable.
    pub fn is_durable(&self, path: &Path) -> bool {
        let inode = fs::metadata(path).expect("it is there").ino();
        let durable = fs::read(self.place("file", inode)).unwrap_or_default();
        durable == fs::read(path).expect("it is there")
    }

    fn take(&self, path: &Path) {
        let mut text = String::new();
        for (name, entry) in names_of(path) {
            let (from, kind) = (path.join(&name), if entry.is_directory { 'd' } else { 'f' });
            text += &format!("{} {kind} {name}\n", entry.inode);
            if entry.is_directory {
                self.take(&from);
                continue;
            }
            // A file with two names is one file.
            if fs::hard_link(&from, self.place("keep", entry.inode)).is_ok() {
                fs::copy(&from, self.place("file", entry.inode)).expect("a temporary file");
            }
        }
        let inode = fs::metadata(path).expect("it is there").ino();
        fs::write(self.place("names", inode), text).expect("a temporary file");
    }

    fn place(&self, kind: &str, inode: u64) -> PathBuf {
        self.shadow.join(format!("{kind}.{inode}"))
    }

    /// The names of a directory that are durable.
    fn durable_names(&self, inode: u64) -> Names {
        let text = fs::read_to_string(self.place("names", inode)).unwrap_or_default();
        let entry = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let mut next = || parts.next().expect("a line has three parts");
            let (inode, kind, name) = (next().parse().expect("a number"), next(), next());
            (name.to_owned(), Entry { inode, is_directory: kind == "d" })
        };
        text.lines().map(entry).collect()
    }

    /// Loses power: nothing that uses the directory may run any more.
    pub fn lose_power(&mut self, unsynced: Unsynced) -> Lost {
        let new = self.root.with_extension("new");
        let inode = fs::metadata(&self.root).expect("it is there").ino();
        let (done, lost) = (BTreeSet::new(), Lost::default());
        let mut loss = Loss { disk: self, unsynced, done, lost };
        loss.rebuild(inode, Some(&self.root), &new);
        let lost = loss.lost;
        fs::remove_dir_all(&self.root).expect("it can be removed");
        fs::rename(new, &self.root).expect("a free name");
        let _ = fs::remove_file(self.lies());
        self.begin();
        lost
    }
}

/// A loss of power under way.
struct Loss<'a> {
    disk: &'a Disk,
    unsynced: Unsynced,
    /// The files that have what survives.
    done: BTreeSet<u64>,
    lost: Lost,
}

impl Loss<'_> {
    fn rebuild(&mut self, inode: u64, real: Option<&Path>, to: &Path) {
        DirBuilder::new().mode(0o700).create(to).expect("a free name");
        let durable = self.disk.durable_names(inode);
        let now = real.map(names_of).unwrap_or_default();
        let surviving = surviving(&durable, &now, &mut self.unsynced);
        if surviving != now {
            self.lost.note("");
        }
        for (name, entry) in surviving {
            let path = real.map(|real| real.join(&name));
            let path = path.filter(|_| now.get(&name) == Some(&entry));
            let target = to.join(&name);
            if entry.is_directory {
                self.rebuild(entry.inode, path.as_deref(), &target);
                continue;
            }
            let kept = self.disk.place("keep", entry.inode);
            let from = if kept.exists() { kept } else { path.expect("what is durable is kept") };
            if self.done.insert(entry.inode) && self.restore(entry.inode, &from) {
                self.lost.note(&name);
            }
            fs::hard_link(from, target).expect("a free name");
        }
    }

    fn is_new(&mut self) -> bool {
        match &mut self.unsynced {
            Unsynced::Lost => false,
            Unsynced::Some(rng) => rng.below(2) == 0,
        }
    }

    /// Gives a file the bytes that survive; whether it had others.
    fn restore(&mut self, inode: u64, file: &Path) -> bool {
        let durable = fs::read(self.disk.place("file", inode)).unwrap_or_default();
        let real = fs::read(file).expect("it is there");
        if durable == real {
            return false;
        }
        let out: File = OpenOptions::new().write(true).open(file).expect("it is the test's");
        let length = if self.is_new() { real.len() } else { durable.len() };
        let mut is_lost = length < real.len();
        for at in (0..length).step_by(PAGE) {
            let page = |bytes: &[u8]| {
                let end = length.min(at + PAGE);
                let mut page = bytes[at.min(bytes.len())..end.min(bytes.len())].to_vec();
                page.resize(end - at, 0);
                page
            };
            let (old, new) = (page(&durable), page(&real));
            if old != new && !self.is_new() {
                out.write_all_at(&old, at as u64).expect("there is space");
                is_lost = true;
            }
        }
        out.set_len(length as u64).expect("there is space");
        is_lost
    }
}

/// The names that survive of a directory. All that changed with one file changes together, so a
/// file that was renamed has its old name or its new one.
fn surviving(durable: &Names, now: &Names, unsynced: &mut Unsynced) -> Names {
    let Unsynced::Some(rng) = unsynced else { return durable.clone() };
    let mut coins = BTreeMap::new();
    let mut names = Names::new();
    for name in durable.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (durable.get(name), now.get(name));
        let changed = new.or(old).expect("it is in one of them").inode;
        let is_new = old == new || *coins.entry(changed).or_insert_with(|| rng.below(2) == 0);
        if let Some(entry) = if is_new { new } else { old } {
            names.insert(name.clone(), *entry);
        }
    }
    names
}
