//! Assertions that stay on in release builds, and coverage marks for rare paths.

/// Asserts a rule of a protocol. On in every build: a node with a broken invariant must stop
/// rather than serve on.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $($message:tt)+) => {
        assert!($condition, $($message)+)
    };
}

/// Marks a rare path: `probe!("linearizable/write_back")`. The simulator's sweep reports every mark
/// and fails if one that its list names is reached by no seed. It costs one relaxed add.
#[macro_export]
macro_rules! probe {
    ($name:literal) => {{
        static MARK: $crate::invariant::Probe = $crate::invariant::Probe::new($name);
        MARK.hit();
    }};
}

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A coverage mark: a static that links itself into one list when it is first reached.
pub struct Probe {
    name: &'static str,
    count: AtomicU64,
    next: AtomicPtr<Probe>,
}

static REACHED: AtomicPtr<Probe> = AtomicPtr::new(core::ptr::null_mut());

impl Probe {
    /// A mark with this name that has not been reached.
    #[must_use]
    pub const fn new(name: &'static str) -> Probe {
        Probe { name, count: AtomicU64::new(0), next: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Counts one passage; the first links the mark into the list.
    pub fn hit(&'static self) {
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            let me = core::ptr::from_ref(self).cast_mut();
            let mut head = REACHED.load(Ordering::Acquire);
            loop {
                self.next.store(head, Ordering::Relaxed);
                match REACHED.compare_exchange(head, me, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(now) => head = now,
                }
            }
        }
    }
}

/// Calls `each` with the name and count of every mark reached so far in this process.
#[allow(unsafe_code)]
pub fn probes(each: &mut dyn FnMut(&'static str, u64)) {
    let mut at = REACHED.load(Ordering::Acquire);
    // SAFETY: every pointer in the list comes from a `&'static Probe` in `hit`; nothing is removed.
    while let Some(probe) = unsafe { at.as_ref() } {
        each(probe.name, probe.count.load(Ordering::Relaxed));
        at = probe.next.load(Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_mark_is_listed_with_its_count() {
        for _ in 0..3 {
            probe!("test/mark");
        }
        let mut seen = 0;
        super::probes(&mut |name, count| {
            if name == "test/mark" {
                seen = count;
            }
        });
        assert_eq!(seen, 3);
    }
}
