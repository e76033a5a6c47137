//! Several runs at once. Each decides its own randomness, so the order changes nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does all work with so many threads; the results are in the order of the work.
pub fn all<W: Sync, R: Send>(work: &[W], threads: usize, one: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, work.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, work)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    work.get(index).map(|work| (index, work))
                } {
                    let result = one(work);
                    done.lock().expect("no worker panics while it adds").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics while it adds");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        let work: Vec<u64> = (0..100).collect();
        for threads in [1, 3, 200] {
            assert_eq!(
                all(&work, threads, |n| n * n),
                work.iter().map(|n| n * n).collect::<Vec<_>>()
            );
        }
        assert!(all(&[] as &[u64], 2, |n| *n).is_empty());
    }
}
