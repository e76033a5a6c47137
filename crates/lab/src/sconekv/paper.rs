//! What the paper says (§6), in words: its figures have no tables.

/// On figure 5.
pub const A: &str = "The paper (20 nodes, 4 replicas, 5 buckets): between Cassandra and \
                     CockroachDB; with 256 clients about 40 % of the transactions are aborted, \
                     since few keys are asked for by most. It has 15 times the throughput of \
                     CockroachDB there, and 11 times the goodput (254 op/s, 22 % aborted).";

/// On figure 6.
pub const UNIFORM: &str = "The paper: with uniform keys throughput and goodput are almost \
                           identical.";

/// On figure 7.
pub const B: &str = "The paper: it scales, slower than Cassandra; far fewer aborts than with A, so \
                     goodput is very near to throughput.";

/// On figure 8.
pub const C: &str = "The paper: it scales, below Cassandra and CockroachDB, since its reads run \
                     the whole protocol; nothing is aborted. Here one aborted transaction ends the \
                     command with an error. `one by one`: five requests, and a commit that looks \
                     whether what was read is current, and logs nothing. `in one request`: the \
                     host reads all keys, looks once more if they are of several groups, and logs \
                     nothing. `logged`: one by one, and the commit is an entry in the logs of all \
                     its groups, by two-phase commit if they are several: that is the paper's, and \
                     an engine of the lab alone has it.";

/// On figure 9.
pub const F: &str = "The paper: throughput above Cassandra's, since of several operations on one \
                     key in a transaction only the first goes out; many aborts, as the keys are \
                     as skewed as A's and more is read.";

/// On what is not beside it.
pub const PEERS: &str = "Cassandra and CockroachDB are not measured. The paper's clients have a \
                         machine of their own; here they share the cores with all hosts, so \
                         numbers cannot be compared with the paper's, and more clients than keep \
                         the cores busy only wait.";

/// On figures 10 and 11.
pub const SCALE: &str = "The paper (Google Cloud, 4 nodes on each machine of 4 cores, 256 clients \
                         and a million keys for each 20 nodes): goodput grows with the nodes for A \
                         and B, less steeply than Cassandra's; CockroachDB's falls; many aborts \
                         with A.";

/// On figure 12.
pub const TPCC: &str = "The paper (20, 40 and 80 nodes; 256 clients and 768 warehouses for each \
                        20): goodput grows with the nodes, although most transactions touch all \
                        buckets, since keys are placed by their hashes. So are ours.";

/// On figure 13.
pub const CRASH: &str = "The paper (20 nodes, 4 replicas, 32 clients, light TPC-C): when a primary \
                         crashes throughput is zero for about 16 s, most of it until the \
                         membership has a new view; CockroachDB's about 7 s. A crash of any other \
                         replica is not seen, and not shown.";
