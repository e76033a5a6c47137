//! Whether the host lives, has started, and is ready.
//!
//! Live must not depend on a quorum: a supervisor that restarts hosts because others are away would
//! make an outage worse. Ready does: a balancer should send clients where they will be served.

use quorate_host::metrics::{Shared, Stage};
use std::fmt::Write;
use std::time::Duration;

/// How long the core thread may be silent before the host counts as stuck.
const BEAT_MAX: Duration = Duration::from_secs(10);

/// What is asked about the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Whether its threads turn.
    Live,
    /// Whether its doors have opened.
    Started,
    /// Whether clients will be served.
    Ready,
}

/// The question's parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthQuery {
    /// Whether each check is to be listed even if all passed.
    pub verbose: bool,
    /// Checks to leave out.
    pub exclude: Vec<String>,
    /// The one keyspace that is asked about.
    pub keyspace: Option<String>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// Whether all checks passed; `None` if the keyspace does not exist.
    pub is_passed: Option<bool>,
    /// The body.
    pub text: String,
}

struct Check {
    name: String,
    failure: Option<String>,
}

impl Check {
    fn new(name: impl Into<String>, is_passed: bool, failure: impl FnOnce() -> String) -> Check {
        Check { name: name.into(), failure: (!is_passed).then(failure) }
    }
}

impl HealthQuery {
    /// Reads the parameters `verbose`, `exclude` (any number) and `keyspace`; others mean nothing.
    #[must_use]
    pub fn of(pairs: Vec<(String, String)>) -> HealthQuery {
        let mut question = HealthQuery::default();
        for (name, value) in pairs {
            match name.as_str() {
                "verbose" => question.verbose = true,
                "exclude" => question.exclude.push(value),
                "keyspace" => question.keyspace = Some(value),
                _ => {}
            }
        }
        question
    }
}

/// Runs the checks of a probe.
#[must_use]
pub fn answer(probe: Probe, question: &HealthQuery, shared: &Shared) -> HealthReport {
    if let Some(name) = &question.keyspace
        && !shared.keyspaces().iter().any(|keyspace| keyspace.name() == *name)
    {
        return HealthReport { is_passed: None, text: format!("no keyspace {name}\n") };
    }
    let mut checks = match probe {
        Probe::Live => vec![core_turns(shared)],
        Probe::Started => vec![doors_open(shared)],
        Probe::Ready => ready(question, shared),
    };
    let known = |name: &String| checks.iter().any(|check| check.name == *name);
    let strangers: Vec<String> =
        question.exclude.iter().filter(|name| !known(name)).cloned().collect();
    checks.retain(|check| !question.exclude.contains(&check.name));
    let is_passed = checks.iter().all(|check| check.failure.is_none());
    if is_passed && !question.verbose {
        return HealthReport { is_passed: Some(true), text: String::from("ok\n") };
    }
    let mut text = String::new();
    for Check { name, failure } in &checks {
        let _ = match failure {
            None => writeln!(text, "[+]{name} ok"),
            Some(failure) => writeln!(text, "[-]{name} failed: {failure}"),
        };
    }
    for name in strangers {
        let _ = writeln!(text, "warning: there is no check {name} to exclude");
    }
    text.push_str(if is_passed { "all checks passed\n" } else { "some checks failed\n" });
    HealthReport { is_passed: Some(is_passed), text }
}

fn ready(question: &HealthQuery, shared: &Shared) -> Vec<Check> {
    let mut checks = vec![doors_open(shared), core_turns(shared)];
    let unknown = || String::from("not learnt yet; another host must be reached");
    checks.push(Check::new("catalog", shared.knows_keyspaces(), unknown));
    let asked = |name: &str| question.keyspace.as_deref().is_none_or(|asked| asked == name);
    for keyspace in shared.keyspaces().iter().filter(|keyspace| asked(keyspace.name())) {
        let refills = || String::from("not ready; it may be refilling from the other hosts");
        let name = format!("keyspace/{}", keyspace.name());
        checks.push(Check::new(name, keyspace.is_ready(), refills));
        let (reached, needed) = shared.reach(keyspace);
        let short = || format!("{reached} of {needed} members needed are connected");
        checks.push(Check::new(format!("quorum/{}", keyspace.name()), reached >= needed, short));
    }
    checks
}

fn core_turns(shared: &Shared) -> Check {
    let silence = shared.since_beat();
    // Before the doors open there is no loop that could turn: opening a large store takes a while.
    let is_passed = shared.stage() == Stage::Starting || silence <= BEAT_MAX;
    Check::new("core", is_passed, || {
        format!("the core thread has been silent for {} s", silence.as_secs())
    })
}

fn doors_open(shared: &Shared) -> Check {
    let stage = shared.stage();
    Check::new("doors", stage == Stage::Serving, || {
        String::from(if stage == Stage::Starting { "not yet open" } else { "closing" })
    })
}

/// Whether clients will be served, as `/readyz` without parameters says.
#[must_use]
pub fn is_ready(shared: &Shared) -> bool {
    answer(Probe::Ready, &HealthQuery::default(), shared).is_passed == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::{open_doors as open, shared as sample};

    fn ask(probe: Probe, query: &[(&str, &str)], shared: &Shared) -> (Option<bool>, String) {
        let pairs = query.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let answer = answer(probe, &HealthQuery::of(pairs), shared);
        (answer.is_passed, answer.text)
    }

    #[test]
    fn ready_needs_doors_a_ready_keyspace_and_a_majority() {
        let shared = sample();
        let ready = || ask(Probe::Ready, &[], &shared).0;
        assert_eq!(ready(), Some(false));
        open(&shared);
        assert_eq!(ready(), Some(false));
        shared.set_keyspace_ready(&shared.keyspaces()[0], true);
        assert_eq!(ready(), Some(false));
        shared.peers()[0].set_up(&shared, true);
        assert_eq!(ready(), Some(true));
        assert!(is_ready(&shared));
        shared.stopping();
        assert_eq!(ready(), Some(false));
    }

    #[test]
    fn live_and_started_do_not_depend_on_a_quorum() {
        let shared = sample();
        assert_eq!(ask(Probe::Live, &[], &shared).0, Some(true));
        assert_eq!(ask(Probe::Started, &[], &shared).0, Some(false));
        open(&shared);
        assert_eq!(ask(Probe::Live, &[], &shared), (Some(true), String::from("ok\n")));
        assert_eq!(ask(Probe::Started, &[], &shared).0, Some(true));
    }

    #[test]
    fn checks_are_listed_and_can_be_left_out() {
        let shared = sample();
        open(&shared);
        shared.set_keyspace_ready(&shared.keyspaces()[0], true);
        let (passed, text) = ask(Probe::Ready, &[], &shared);
        assert_eq!(passed, Some(false));
        assert!(text.contains("[+]keyspace/default ok\n"), "{text}");
        assert!(
            text.contains("[-]quorum/default failed: 1 of 2 members needed are connected\n"),
            "{text}"
        );
        let without = [("exclude", "quorum/default"), ("verbose", ""), ("exclude", "typo")];
        let (passed, text) = ask(Probe::Ready, &without, &shared);
        assert_eq!(passed, Some(true));
        assert!(text.contains("no check typo"), "{text}");
        assert!(!text.contains("quorum"), "{text}");
    }

    #[test]
    fn one_keyspace_can_be_asked_about() {
        let shared = sample();
        open(&shared);
        shared.set_keyspace_ready(&shared.keyspaces()[0], true);
        shared.peers()[0].set_up(&shared, true);
        assert_eq!(ask(Probe::Ready, &[("keyspace", "default")], &shared).0, Some(true));
        let (passed, text) = ask(Probe::Ready, &[("keyspace", "other")], &shared);
        assert_eq!((passed, text.as_str()), (None, "no keyspace other\n"));
    }
}
