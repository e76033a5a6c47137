//! What the machine has.

use std::fs;

/// What is taken for the machine's memory where that cannot be read.
const MEMORY_BYTES_ASSUMED: usize = 4 << 30;

/// The memory of the machine in bytes, or what this process's control group may take of it.
#[must_use]
pub fn memory_bytes() -> usize {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let machine = total(&text("/proc/meminfo")).unwrap_or(MEMORY_BYTES_ASSUMED);
    let group = text("/sys/fs/cgroup/memory.max").trim().parse().unwrap_or(usize::MAX);
    machine.min(group)
}

/// The line `MemTotal:  123 kB`.
fn total(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total("MemTotal:       16 kB\nMemFree: 1 kB\n"), Some(16 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(memory_bytes() > 0);
    }
}
