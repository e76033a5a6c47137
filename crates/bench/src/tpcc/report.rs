//! What a TPC-C-like run found, as data with documented names and as text.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::findings::{ClassReport, LoadReport, grouped, listed, ratio};
use crate::report::record::{Interval, seconds};
use crate::report::usage::Watch;
use crate::tpcc::audit::AuditReport;
use crate::tpcc::audit::violations::money;
use crate::tpcc::config::TpccConfig;
use crate::tpcc::data::sizes::Sizes;
use crate::tpcc::inputs::Kind;
use crate::tpcc::terminals::counts::{Counts, KindCounts, class};

/// What the figures are, and are not.
const LABEL: &str = "TPC-C-like: not an audited TPC-C result, not comparable with one";

/// One TPC-C-like run. The field names are stable: scripts read them from the JSON form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TpccReport {
    /// What the figures are, and are not.
    pub label: String,
    /// Where the tables are.
    pub keyspace: String,
    /// Warehouses.
    pub warehouses: u16,
    /// What customers, orders and items are divided by; 1 is the standard's size.
    pub scale: u32,
    /// Terminals.
    pub clients: u32,
    /// The hosts' addresses.
    pub endpoints: Vec<String>,
    /// How the rows were written before; null if they were not.
    pub load: Option<LoadReport>,
    /// How long the measured window was open.
    pub seconds: f64,
    /// NewOrders that were committed in a minute.
    pub tpmc: f64,
    /// The five kinds.
    pub transactions: Vec<KindReport>,
    /// Transactions that were not done, or nobody knows, by the kind of error.
    pub errors: BTreeMap<String, u64>,
    /// The longest time without a commit, in milliseconds.
    pub gap_ms: f64,
    /// Processor seconds of the client.
    pub client_cpu_seconds: f64,
    /// The run was ended early by the user.
    pub interrupted: bool,
    /// Whether the tables are consistent; null if the run was ended early, and nothing checked.
    pub audit: Option<AuditReport>,
    /// The time line.
    pub intervals: Vec<Interval>,
}

/// The transactions of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindReport {
    /// Which of the five.
    pub kind: Kind,
    /// Commits, and their latencies from the first attempt on.
    pub latencies: ClassReport,
    /// The 95th percentile of the latencies, in microseconds.
    pub p95_us: f64,
    /// Attempts after the first one: what was read had changed before the commit.
    pub retries: u64,
    /// Orders that name an unused item, so nothing was done, as it should be.
    pub rolled_back: u64,
    /// Nobody could say what became of them; they were done as a whole or not at all.
    pub unknown: u64,
    /// The cluster did not do them.
    pub failed: u64,
    /// Given up, since the run was over and what was read had changed.
    pub unfinished: u64,
    /// Districts without an order to deliver.
    pub skipped_districts: u64,
    /// What was ordered, paid or delivered, in cents.
    pub amount_cents: i64,
}

impl KindReport {
    fn new(kind: Kind, counts: &KindCounts) -> KindReport {
        let latencies = counts.recorder.class(class(kind));
        KindReport {
            kind,
            latencies: ClassReport::new(latencies),
            p95_us: latencies.histogram.value_at_quantile(0.95) as f64 / 1e3,
            retries: counts.retries,
            rolled_back: counts.rolled_back,
            unknown: counts.unknown,
            failed: counts.failed,
            unfinished: counts.unfinished,
            skipped_districts: counts.skipped,
            amount_cents: counts.amount,
        }
    }
}

impl TpccReport {
    /// Puts together what was counted; nothing is checked yet.
    pub(super) fn new(
        config: &TpccConfig,
        sizes: Sizes,
        load: Option<LoadReport>,
        counts: &Counts,
        watch: &Watch,
    ) -> TpccReport {
        let transactions = Kind::MIX.map(|(kind, _)| KindReport::new(kind, counts.of(kind)));
        let seconds_open = counts.total.window_seconds();
        let orders = transactions[0].latencies.operations as f64;
        TpccReport {
            label: LABEL.to_owned(),
            keyspace: config.keyspace.clone(),
            warehouses: sizes.warehouses,
            scale: sizes.scale,
            clients: config.terminals,
            endpoints: config.endpoints.clone(),
            load,
            seconds: seconds_open,
            tpmc: ratio(orders * 60.0, seconds_open),
            transactions: transactions.to_vec(),
            errors: counts.total.errors().clone(),
            gap_ms: seconds(counts.longest_gap()) * 1e3,
            client_cpu_seconds: watch.client_seconds(),
            interrupted: config.stop.is_raised(),
            audit: None,
            intervals: counts.total.intervals().to_vec(),
        }
    }

    /// Whether a condition was checked and does not hold.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.violation_count > 0)
    }
}

impl fmt::Display for TpccReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = Sizes { warehouses: self.warehouses, scale: self.scale };
        writeln!(f, "{}", self.label)?;
        writeln!(
            f,
            "warehouses {}, scale {}: {} customers a district, {} items; keyspace {}",
            self.warehouses,
            self.scale,
            grouped(f64::from(sizes.customers())),
            grouped(f64::from(sizes.items())),
            self.keyspace
        )?;
        let endpoints = self.endpoints.join(", ");
        writeln!(f, "{} clients to {endpoints}, no keying or think time", self.clients)?;
        if let Some(load) = &self.load {
            writeln!(f, "{}", load.told("rows"))?;
        }
        let early = if self.interrupted { ", interrupted" } else { "" };
        let tpmc = grouped(self.tpmc);
        writeln!(
            f,
            "\n{tpmc} tpmC: NewOrders committed a minute, in {:.1} s{early}\n",
            self.seconds
        )?;
        self.fmt_transactions(f)?;
        self.fmt_failures(f)?;
        self.fmt_audit(f)
    }
}

impl TpccReport {
    fn fmt_transactions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<12}{:>10}{:>9}{:>12}{:>9}{:>8}{:>10}{:>10}{:>10}{:>10}",
            "",
            "committed",
            "retries",
            "rolled back",
            "unknown",
            "failed",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "max ms"
        )?;
        for of in &self.transactions {
            let count = |number: u64| grouped(number as f64);
            write!(
                f,
                "{:<12}{:>10}{:>9}{:>12}{:>9}{:>8}",
                of.kind.name(),
                count(of.latencies.operations),
                count(of.retries),
                count(of.rolled_back),
                count(of.unknown),
                count(of.failed)
            )?;
            for micros in [of.latencies.p50_us, of.p95_us, of.latencies.p99_us, of.latencies.max_us]
            {
                write!(f, "{:>10.2}", micros / 1e3)?;
            }
            writeln!(f)?;
        }
        writeln!(f)
    }

    fn fmt_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "errors       {}", listed(&self.errors))?;
        let sum = |of: fn(&KindReport) -> u64| self.transactions.iter().map(of).sum::<u64>();
        let unfinished = sum(|kind| kind.unfinished);
        if unfinished > 0 {
            writeln!(f, "unfinished   {}", grouped(unfinished as f64))?;
        }
        let skipped = sum(|kind| kind.skipped_districts);
        if skipped > 0 {
            writeln!(
                f,
                "skipped      {} districts without an order to deliver",
                grouped(skipped as f64)
            )?;
        }
        let amounts = self.transactions.iter().filter(|kind| kind.amount_cents != 0);
        let amounts: Vec<String> = amounts
            .map(|kind| format!("{} {}", kind.kind.name(), money(kind.amount_cents)))
            .collect();
        writeln!(f, "amounts      {}", amounts.join(", "))?;
        writeln!(f, "longest gap  {:.1} ms", self.gap_ms)?;
        writeln!(f, "client       {:.2} s of CPU", self.client_cpu_seconds)
    }

    fn fmt_audit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(audit) = &self.audit else {
            return write!(f, "conditions   not checked");
        };
        let numbers: Vec<String> = audit.conditions.iter().map(u8::to_string).collect();
        let (numbers, rows) = (numbers.join(", "), grouped(audit.rows as f64));
        let read = format!("over {rows} rows, read in {:.1} s", audit.seconds);
        if audit.violation_count == 0 {
            return write!(f, "conditions   {numbers} of clause 3.3.2 hold {read}");
        }
        let count = grouped(audit.violation_count as f64);
        write!(f, "conditions   {count} violations {read}")?;
        for violation in &audit.violations {
            write!(f, "\n  {violation}")?;
        }
        let more = audit.violation_count - audit.violations.len() as u64;
        if more > 0 { write!(f, "\n  and {} more", grouped(more as f64)) } else { Ok(()) }
    }
}
