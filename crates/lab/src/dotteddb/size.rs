//! How large and how long, and the model in words.

use super::simulated::Run;
use super::simulated::run::costs;

/// How large and how long runs are.
#[derive(Clone, Debug)]
pub struct Size {
    /// Nodes of all figures.
    pub nodes: u16,
    /// Keys of Fig. 1, updates per second, seconds, and milliseconds between replacements.
    pub churn: (u32, u64, u64, u64),
    /// Keys of Fig. 2, updates per second, and seconds.
    pub strip: (u32, u64, u64),
    /// Keys of Fig. 3, updates per second, and seconds.
    pub deletes: (u32, u64, u64),
    /// Keys of the grid, and updates per second.
    pub grid: (u32, u64),
    /// How many intervals of anti-entropy a run of the grid is at least, and how many seconds.
    pub grid_length: (u64, u64),
    /// Keys of two replicas that have converged, and in how many they differ then.
    pub quiet: (u32, &'static [u32]),
}

impl Size {
    /// A size; `keys` of the grid.
    #[must_use]
    pub fn of(is_quick: bool, keys: Option<u32>) -> Size {
        let mut size = if is_quick { Size::quick() } else { Size::full() };
        size.grid.0 = keys.unwrap_or(size.grid.0);
        size
    }

    /// What is worth keeping.
    fn full() -> Size {
        Size {
            nodes: 64,
            churn: (5000, 150, 240, 4000),
            strip: (50_000, 1000, 30),
            deletes: (50_000, 100, 600),
            grid: (50_000, 2500),
            grid_length: (12, 60),
            quiet: (1_000_000, &[1, 10, 100, 1000, 10_000]),
        }
    }

    /// What shows that everything works.
    fn quick() -> Size {
        Size {
            nodes: 16,
            churn: (300, 60, 30, 2000),
            strip: (500, 100, 4),
            deletes: (500, 50, 20),
            grid: (600, 200),
            grid_length: (6, 4),
            quiet: (3000, &[1, 10, 100]),
        }
    }

    /// A run of these keys, updates per second and seconds.
    #[must_use]
    pub fn run(&self, keys: u32, rate: u64, seconds: u64) -> Run {
        Run { nodes: self.nodes, ..Run::usual(keys, rate, seconds) }
    }
}

/// The model.
#[must_use]
pub fn model() -> String {
    let run = Run::usual(1, 1, 1);
    format!(
        "{} nodes with one partition each, in turn on {} machines. A machine does one thing at a \
         time, first come, first served: a message, a request or a timer takes {} µs, {} µs for \
         each record read, {} µs for writing anything and {} µs for each record written, and {} ns \
         for each byte sent; what it asks for leaves when that time is over. A message is {} µs on \
         its way on average, exponentially distributed, whatever its size; so is a client's. \
         Nothing is lost but messages of replication on write. Both engines get the same costs and \
         the same encoding; computing hashes costs nothing. Clients begin updates at a steady rate \
         (exponential gaps) with random keys at random nodes, most of which hold no replica of the \
         key: a get from whichever replica answers first, then a put or delete with its context. \
         Values have {} bytes, keys 11. All keys are written before, and all is at rest when it \
         begins.",
        run.nodes,
        run.machines,
        costs::STEP / 1000,
        costs::READ / 1000,
        costs::BATCH / 1000,
        costs::WRITE / 1000,
        costs::BYTE,
        costs::NETWORK_US,
        run.value_bytes,
    )
}

/// Where this is not what the paper measured.
#[must_use]
pub fn departures() -> String {
    "- Both engines choose the next peer in shuffled rounds, exchange in both directions, and \
     compare all that two replicas have in common at once. The paper's DottedDB chooses one \
     random peer and pulls from it; of MerkleDB the paper does not say. So here the interval \
     decides how fast both replicate, and hardly the mechanism.\n\
     - The baseline keeps 128-bit hashes, sends objects of keys that differ once in each \
     direction, and has no failures of exchanges. It is as good as its mechanism allows; what is \
     left between the two is the mechanism.\n\
     - Partitions stand on a line, not on a ring: the first have fewer keys than the others, the \
     last more.\n\
     - The paper does not say how large values are, nor the load of Fig. 2; its figures 4 and 5 \
     are drawings without numbers. What it says of them in words stands beside ours.\n\
     - Bytes kept beside objects are counted for each node; the paper does not say for what."
        .to_owned()
}
