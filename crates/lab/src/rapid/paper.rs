//! What the paper says of Rapid: L. Suresh et al., "Stable and Consistent Membership at Scale with
//! Rapid" (USENIX ATC 2018), §7. Nothing here was read off a picture.

/// Table 1: how many different cluster sizes processes reported while so many came.
#[must_use]
pub fn sizes(nodes: usize) -> Option<usize> {
    match nodes {
        1000 => Some(4),
        1500 => Some(8),
        2000 => Some(4),
        _ => None,
    }
}

/// Of the bootstrap.
pub const BOOTSTRAP: &str = "\
    The paper (§7; 100 virtual machines with 200 cores, several processes each, five runs): \
    with 1000, 1500 and 2000 processes 4, 8 and 4 different sizes were reported (Table 1), for \
    instance 1, 5 and 2000. Its times stand in a picture only (Fig. 5); in words, Rapid \
    bootstraps 2000 processes 2 to 2.32 times as fast as Memberlist, whose convergence takes \
    up to 95 s on average, and 3.23 to 5.8 times as fast as ZooKeeper. The times are not to be \
    compared with these: there it was real machines, here the costs are assumed.";

/// Of crashes.
pub const CRASHES: &str = "\
    The paper (Fig. 8): ten of 1000 processes fail; Rapid detects all ten concurrently and \
    removes them by one decision of consensus. Its failure detector, the same share of probes \
    as here, reacts roughly 10 seconds later than Memberlist's. The same is said of ten that \
    are partitioned away.";

/// Of flip-flops.
pub const FLIPS: &str = "\
    The paper (Fig. 9): ten of 1000 processes lose all that they receive for 20 s, recover for \
    20 s, and so on; Rapid detects and removes the faulty ones. Memberlist never removes all \
    of them and oscillates, ZooKeeper does not react.";

/// Of loss.
pub const LOSS: &str = "\
    The paper (Fig. 10): 80 % loss at 1 % of 1000 processes, of outgoing packets by the text \
    and of ingress by the caption, so both are here; Rapid identifies and removes only the \
    faulty ones. ZooKeeper does not remove all of them, Memberlist does not conclusively \
    remove a set of them.";

/// Table 2: kilobytes that a process receives and sends in a second, in the mean, at the 99th
/// percentile and at most, in the crash experiment.
pub const BANDWIDTH: [(&str, &str); 3] = [("0.71", "0.71"), ("3.66", "3.72"), ("9.56", "11.37")];
