//! `check`: judges a recorded history.

use crate::exit::{Code, Failure};
use crate::output::Output;
use quorate_check::Judges;
use quorate_check::STEPS_MAX_DEFAULT;
use quorate_check::recorded::{self, Reader};
use quorate_check::report::{Report, Verdict};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A history is a file of JSON lines: one header, then one line for each \
                        invocation and each completion.\nExit code 0 if every promise was kept, 8 \
                        if one was broken, 1 if that could not be decided.\n\n\
                        Example: quorate check history.jsonl")]
pub struct Args {
    /// The recorded history; `-` reads standard input
    file: PathBuf,
    /// How many steps the search for one key may take before its verdict is unknown
    #[arg(long, value_name = "COUNT", default_value_t = STEPS_MAX_DEFAULT)]
    steps: u64,
    #[command(flatten)]
    output: Output,
}

/// Runs `check`.
///
/// # Errors
/// [`Code::CheckFailed`] if a promise was broken, [`Code::Failed`] if that is unknown or the
/// history cannot be read.
pub fn run(args: &Args) -> Result<(), Failure> {
    let history = read(&args.file)?;
    let report = Judges::new().judge(&history, args.steps);
    if args.output.is_json() {
        writeln!(stdout(), "{}", as_json(&report))?;
    } else {
        writeln!(stdout(), "{report}")?;
    }
    match report.verdict() {
        Verdict::Holds => Ok(()),
        Verdict::Violated(_) => Err(Failure::new(Code::CheckFailed, "")),
        Verdict::Unknown { .. } => Err(Failure::failed("")),
    }
}

fn read(path: &Path) -> Result<quorate_check::history::History, Failure> {
    let name = path.display();
    let unreadable = |error: std::io::Error| Failure::failed(format!("{name}: {error}"));
    let input: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(stdin()),
        _ => Box::new(File::open(path).map_err(unreadable)?),
    };
    let wrong = |error: recorded::RecordedError| Failure::failed(format!("{name}: {error}"));
    let mut reader = Reader::new();
    for line in BufReader::new(input).lines() {
        reader.line(&line.map_err(unreadable)?).map_err(wrong)?;
    }
    reader.finish().map_err(wrong)
}

fn as_json(report: &Report) -> Value {
    let word = |verdict: &Verdict| match verdict {
        Verdict::Holds => "holds",
        Verdict::Violated(_) => "violated",
        Verdict::Unknown { .. } => "unknown",
    };
    let judged = report.verdicts().map(|(name, verdict)| {
        let mut object = Map::new();
        object.insert(String::from("verdict"), word(verdict).into());
        match verdict {
            Verdict::Holds => None,
            Verdict::Violated(explanation) => {
                object.insert(String::from("explanation"), explanation.to_string().into())
            }
            Verdict::Unknown { why } => object.insert(String::from("why"), why.as_str().into()),
        };
        (name.to_owned(), Value::Object(object))
    });
    json!({
        "verdict": word(report.verdict()),
        "operations": report.counts.operations,
        "keys": report.counts.keys,
        "answered": report.counts.answered,
        "refused": report.counts.refused,
        "unknown": report.counts.unknown,
        "judges": judged.collect::<Map<String, Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_the_worst_verdict_and_each_judges_own() {
        let text = "{\"format\":\"quorate-history\",\"version\":1}\n\
            {\"event\":\"invoke\",\"id\":1,\"client\":1,\"at_ns\":1,\"operation\":\"put\",\
             \"key\":\"k\",\"value\":\"v\"}\n\
            {\"event\":\"complete\",\"id\":1,\"at_ns\":2,\"outcome\":\"written\"}\n\
            {\"event\":\"invoke\",\"id\":2,\"client\":1,\"at_ns\":3,\"operation\":\"get\",\
             \"key\":\"k\"}\n\
            {\"event\":\"complete\",\"id\":2,\"at_ns\":4,\"outcome\":\"value\",\"value\":null}\n";
        let history = recorded::read(text).expect("a history");
        let value = as_json(&Judges::new().judge(&history, STEPS_MAX_DEFAULT));
        assert_eq!(value["verdict"], "violated");
        assert_eq!(value["operations"], 2);
        let judge = &value["judges"]["linearizability"];
        assert_eq!(judge["verdict"], "violated");
        assert!(judge["explanation"].as_str().is_some_and(|text| !text.is_empty()));
    }
}
