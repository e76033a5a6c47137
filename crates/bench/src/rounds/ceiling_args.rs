//! The options of a measurement of costs on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::{DataArgs, Format, time};
use crate::config::{Config, Extent, Stop};
use crate::error::BenchError;
use crate::load::mixes::Workload;
use crate::rounds::ceiling::{CeilingConfig, Kind};
use crate::rounds::turns::Target;

/// The options of a measurement of what operations cost.
#[derive(Clone, Debug, Args)]
pub struct CeilingArgs {
    /// Executable to start the clusters with; this one if not given.
    #[arg(long, value_name = "FILE")]
    pub quorate: Option<PathBuf>,
    /// Executable of another version, in a column of its own.
    #[arg(long, value_name = "FILE")]
    pub other: Option<PathBuf>,
    /// Another column: its name, the durability of the rows that it has, and the command that
    /// starts its servers, split at spaces. The command's first line of output must be the JSON of
    /// `dev`; {directory} in it becomes a new empty directory. May be given again.
    #[arg(long, value_name = "NAME:DURABILITY:COMMAND", value_parser = beside)]
    pub beside: Vec<Beside>,
    /// Durabilities to measure.
    #[arg(long, value_name = "LEVEL,…", value_enum, value_delimiter = ',',
        default_values = ["memory", "sync"])]
    pub durability: Vec<Durability>,
    /// Keyspace of the clusters that is measured, in place of the usual ones, of which some cost
    /// processor time at rest: ENGINE and settings, ENGINE[,SETTING=VALUE]...
    #[arg(long, value_name = "SPEC")]
    pub keyspace: Option<String>,
    /// Hosts of a cluster.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub hosts: usize,
    /// First port of the cluster; another version begins 100 ports later.
    #[arg(long, value_name = "PORT", default_value_t = 7610)]
    pub port_base: u16,
    /// What the load phase writes and the runs work on.
    #[command(flatten)]
    pub data: DataArgs,
    /// How often each row is measured on each server.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub rounds: usize,
    /// Length of each measured window.
    #[arg(long, short, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub duration: Duration,
    /// Time to run before each window.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub warm_up: Duration,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// What servers promise of a write that they acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// It is in memory.
    Memory,
    /// It is on the disk.
    Sync,
}

/// A column that is given by a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    name: String,
    durability: Durability,
    command: String,
}

/// A column of the form `NAME:DURABILITY:COMMAND`.
fn beside(text: &str) -> Result<Beside, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(name), Some(durability), Some(command)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err("it must have the form NAME:DURABILITY:COMMAND".to_owned());
    };
    let durability = Durability::from_str(durability, false)
        .map_err(|_| format!("{durability:?} is neither memory nor sync"))?;
    Ok(Beside { name: name.to_owned(), durability, command: command.to_owned() })
}

impl Durability {
    fn name(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::Sync => "sync",
        }
    }

    /// What is asked of servers that promise it. Memory is bound by what a message costs, so
    /// pipelines tell more; disks by what a sync costs, so mixes do.
    fn cells(self) -> Vec<(Workload, usize)> {
        match self {
            Durability::Memory => vec![
                (Workload::Set, 1),
                (Workload::Get, 1),
                (Workload::Set, 16),
                (Workload::Get, 16),
            ],
            Durability::Sync => {
                [Workload::A, Workload::B, Workload::C, Workload::Set].map(|mix| (mix, 1)).into()
            }
        }
    }
}

impl CeilingArgs {
    /// The measurement that these options ask for.
    ///
    /// # Errors
    /// The path of this executable is needed and unknown, a command is empty, or two columns of
    /// one durability have the same name.
    pub fn config(self, stop: Stop) -> Result<CeilingConfig, BenchError> {
        let kinds = self.durability.iter().map(|&it| self.kind(it)).collect::<Result<_, _>>()?;
        Ok(CeilingConfig {
            kinds,
            round_count: self.rounds,
            base: Config {
                key_count: self.data.keys,
                value_bytes: self.data.value_size,
                connection_count: self.data.connections,
                extent: Extent::Time(self.duration),
                warm_up: self.warm_up,
                seed: self.data.seed,
                progress: true,
                stop,
                ..Config::new(Vec::new(), Workload::Set)
            },
        })
    }

    fn kind(&self, durability: Durability) -> Result<Kind, BenchError> {
        let dev = |name, program, port_base| {
            let keyspace = self.keyspace.as_deref();
            Target::dev(name, program, self.hosts, durability.name(), port_base, keyspace)
        };
        let mut targets = vec![dev("quorate", self.quorate.as_deref(), self.port_base)?];
        if let Some(other) = &self.other {
            targets.push(dev("other", Some(other), self.port_base.saturating_add(100))?);
        }
        for it in self.beside.iter().filter(|it| it.durability == durability) {
            targets.push(Target::command(&it.name, &it.command)?);
        }
        for (index, target) in targets.iter().enumerate() {
            if targets[..index].iter().any(|earlier| earlier.name() == target.name()) {
                let text =
                    format!("two columns of {} are named {}", durability.name(), target.name());
                return Err(BenchError::Settings(text));
            }
        }
        Ok(Kind { name: durability.name().to_owned(), cells: durability.cells(), targets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        ceiling: CeilingArgs,
    }

    fn parse(words: &[&str]) -> Result<CeilingConfig, String> {
        let words = std::iter::once("ceiling").chain(words.iter().copied());
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        program.ceiling.config(Stop::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_stand_in_the_rows_that_they_have() {
        let other = ["--other", "old/quorate", "--beside", "prototype:memory:sh three.sh 1:2"];
        let config = parse(&other).unwrap();
        let names = |kind: &Kind| -> Vec<String> {
            kind.targets.iter().map(|target| target.name().to_owned()).collect()
        };
        let [memory, sync] = &config.kinds[..] else { panic!("two durabilities") };
        assert_eq!(names(memory), ["quorate", "other", "prototype"]);
        assert_eq!(names(sync), ["quorate", "other"]);
        assert_eq!((memory.cells.len(), sync.cells.len()), (4, 4));
        let Target::Cluster { program, arguments, .. } = &memory.targets[2] else {
            panic!("it is started");
        };
        assert_eq!((program.as_str(), arguments.join(" ")), ("sh", "three.sh 1:2".to_owned()));
    }

    #[test]
    fn clusters_have_the_keyspace_that_is_measured_and_no_other() {
        let config = parse(&["--keyspace", "it,replicas=1", "--other", "old/quorate"]).unwrap();
        for target in config.kinds.iter().flat_map(|kind| &kind.targets) {
            let Target::Cluster { arguments, .. } = target else { panic!("it is started") };
            let given = arguments.iter().skip_while(|word| *word != "--keyspace");
            assert_eq!(given.collect::<Vec<_>>(), ["--keyspace", "default=it,replicas=1"]);
        }
    }

    #[test]
    fn a_column_that_cannot_be_is_refused() {
        for (given, said) in [
            ("prototype", "NAME:DURABILITY:COMMAND"),
            ("prototype:disk:sh", "neither memory nor sync"),
            ("prototype:sync:", "is empty"),
            ("quorate:sync:sh", "two columns of sync are named quorate"),
        ] {
            let error = parse(&["--beside", given]).unwrap_err();
            assert!(error.contains(said), "{given}: {error}");
        }
    }
}
