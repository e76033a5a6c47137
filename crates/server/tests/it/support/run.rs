//! Runs the binary and takes what it says.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the binary said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A command without the settings of whoever runs the tests.
pub fn command(args: &[&str]) -> Command {
    cleared(Command::new(env!("CARGO_BIN_EXE_quorate")), args)
}

/// The same, with so many open files at most.
pub fn limited(files_max: u64, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {files_max} && exec \"$0\" \"$@\"")]);
    shell.arg(env!("CARGO_BIN_EXE_quorate"));
    cleared(shell, args)
}

/// A line as it is typed into a shell, to which `quorate` is the binary.
pub fn shell(line: &str) -> Command {
    let mut shell = cleared(Command::new("sh"), &["-c", line]);
    let own = Path::new(env!("CARGO_BIN_EXE_quorate")).parent().expect("it lies somewhere");
    let others = std::env::var("PATH").expect("there is a path");
    shell.env("PATH", format!("{}:{others}", own.display()));
    shell
}

fn cleared(mut command: Command, args: &[&str]) -> Command {
    for (name, _) in std::env::vars_os() {
        // A planted bug in force is one of the hosts, too.
        if name.to_string_lossy().starts_with("QUORATE_") && name != "QUORATE_PLANTED" {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

pub fn quorate(args: &[&str]) -> Said {
    finish(command(args))
}

pub fn finish(mut command: Command) -> Said {
    feed(&mut command, b"")
}

pub fn feed(command: &mut Command, input: &[u8]) -> Said {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    // A command that reads no input may have ended already.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().expect("the binary ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    Said {
        code: output.status.code().expect("the binary exits"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}
