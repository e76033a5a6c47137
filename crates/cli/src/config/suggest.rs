//! The nearest known name, for the error about an unknown one.

/// The candidate nearest to a name, if one is near enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let reach = (name.len() / 3).max(2);
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= reach)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many bytes must be inserted, removed, replaced or swapped with their neighbour to turn one
/// text into the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let width = to.len() + 1;
    let mut cost = vec![0; (from.len() + 1) * width];
    for i in 0..=from.len() {
        for j in 0..width {
            let at = i * width + j;
            if i == 0 || j == 0 {
                cost[at] = i + j;
                continue;
            }
            let replaced = cost[at - width - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(cost[at - 1] + 1).min(cost[at - width] + 1);
            let swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if swapped {
                best = best.min(cost[at - 2 * width - 2] + 1);
            }
            cost[at] = best;
        }
    }
    cost[from.len() * width + to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("cache", "cache"), 0);
        assert_eq!(distance("cahce", "cache"), 1);
        assert_eq!(distance("chache", "cache"), 1);
        assert_eq!(distance("cahe", "cache"), 1);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["http.bind", "resp.bind", "store.cache", "limits.request_timeout"];
        let near = |name| nearest(name, names.iter().copied());
        assert_eq!(near("store.cahce"), Some("store.cache"));
        assert_eq!(near("htp.bind"), Some("http.bind"));
        assert_eq!(near("limits.timeout_request"), None);
        assert_eq!(near("banana"), None);
    }
}
