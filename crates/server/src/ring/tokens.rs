//! Where hosts stand on the ring: evenly when the cluster is born, in the largest gaps afterwards.

/// The tokens of founding host `host` (from 0) of `hosts`, each with `count`. All hosts' tokens
/// together cut the ring into equal ranges, and neighbours are different hosts.
#[must_use]
pub fn founding(host: usize, hosts: usize, count: usize) -> Vec<u64> {
    assert!(host < hosts && count > 0, "a founding host is one of them, and stands somewhere");
    let ranges = (hosts * count) as u128;
    let token = |turn: usize| {
        let place = (turn * hosts + host + 1) as u128;
        // Multiplied before it is divided, so that the last range ends where the ring does.
        u64::try_from((place << 64) / ranges - 1).expect("a place is at most the number of ranges")
    };
    (0..count).map(token).collect()
}

/// `count` new tokens for a ring that has these: each about halves the largest gap that is left.
///
/// `random` moves each a little: of two hosts that join at one time and see the same gaps, neither
/// must take the other's place.
#[must_use]
pub fn bisecting(taken: &[u64], count: usize, mut random: impl FnMut() -> u64) -> Vec<u64> {
    let mut all = taken.to_vec();
    all.sort_unstable();
    all.dedup();
    let mut chosen = Vec::new();
    for _ in 0..count {
        let Some(token) = about_middle_of_largest_gap(&all, random()) else { break };
        chosen.push(token);
        let place = all.partition_point(|other| *other < token);
        all.insert(place, token);
    }
    chosen.sort_unstable();
    chosen
}

/// A position about the middle of the largest gap between neighbours of a sorted ring, off it by up
/// to a 64th of the gap; none if every gap is closed.
fn about_middle_of_largest_gap(tokens: &[u64], random: u64) -> Option<u64> {
    let Some(last) = tokens.last() else { return Some(u64::MAX) };
    let before = std::iter::once(last).chain(tokens);
    // One token alone has the whole ring before it, which a difference would show as nothing.
    let gap = |low: u64, high: u64| match high.wrapping_sub(low) {
        0 => 1 << 64,
        gap => u128::from(gap),
    };
    let gaps = before.zip(tokens).map(|(low, high)| (gap(*low, *high), *low));
    // Of equal gaps the one that begins lowest.
    let (width, low) = gaps.max_by_key(|(width, low)| (*width, std::cmp::Reverse(*low)))?;
    let half = u64::try_from(width / 2).expect("half of the ring fits");
    let reach = u64::try_from(width / 64).expect("a part of the ring fits");
    let offset = random.checked_rem(2 * reach + 1).unwrap_or(0);
    (width > 1).then(|| low.wrapping_add(half - reach + offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn founding_hosts_stand_evenly_and_take_turns() {
        assert_eq!(founding(2, 3, 1), [u64::MAX]);
        assert_eq!(founding(0, 1, 1), [u64::MAX]);
        for (hosts, count) in [(3, 1), (3, 2), (5, 4), (64, 64)] {
            let mut all: Vec<(u64, usize)> = (0..hosts)
                .flat_map(|host| {
                    founding(host, hosts, count).into_iter().map(move |token| (token, host))
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all.last().map(|(token, _)| *token), Some(u64::MAX));
            let even = ((1_u128 << 64) / (hosts * count) as u128) as u64;
            for (place, pair) in all.windows(2).enumerate() {
                assert!(pair[1].0 - pair[0].0 - even <= 1, "all ranges are as long");
                assert_eq!(pair[0].1, place % hosts, "hosts take turns");
            }
        }
    }

    #[test]
    fn newcomers_halve_the_largest_gaps() {
        let halve = |taken: &[u64], count| {
            let mut rng = quorate_kernel::rng::Rng::new(1);
            bisecting(taken, count, || rng.next())
        };
        let is_about = |token: u64, middle: u64, gap: u64| token.abs_diff(middle) <= gap / 64 + 1;
        assert_eq!(halve(&[], 1), [u64::MAX]);
        let one = halve(&[u64::MAX], 1);
        assert!(is_about(one[0], (1 << 63) - 1, u64::MAX), "the whole ring is one gap");
        let wrapped = halve(&[100, 200, 1000], 1);
        assert!(is_about(wrapped[0], 1000_u64.wrapping_add((u64::MAX - 899) / 2), u64::MAX));
        assert_eq!(halve(&[10, 12], 1).len(), 1);
        assert!(halve(&[u64::MAX], 1) != bisecting(&[u64::MAX], 1, || 7), "two that join at once");
        let quarter = 1_u64 << 62;
        let ring = [quarter - 1, 2 * quarter - 1, 3 * quarter - 1, u64::MAX];
        let two = halve(&ring, 2);
        assert!(is_about(two[0], quarter + quarter / 2 - 1, quarter), "{two:?}");
        assert!(two[1] > two[0] && !is_about(two[1], two[0], quarter), "in another gap");
        assert!(two.iter().all(|token| !ring.contains(token)));
    }
}
