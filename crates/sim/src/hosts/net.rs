//! The network: every frame takes its time, is lost, comes twice, or meets a cut.
//!
//! What was sent before a cut still arrives, however late: that is more than a real network does to
//! a connection, and no protocol may mind.

use crate::delay::Delay;
use crate::queue::{Event, HostIndex, Queue, Said};
use crate::scenario::NetSection;
use quorate_kernel::arena::Arena;
use quorate_kernel::rng::Rng;
use quorate_kernel::wire::Frame;
use std::collections::BTreeMap;

/// What a network did to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames handed to it.
    pub sent: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Frames that met a cut.
    pub cut: u64,
    /// Frames delivered twice.
    pub doubled: u64,
}

/// A link: who sends on it, and to whom.
type Link = (HostIndex, HostIndex);

/// The network of one run. It keeps something only of the links of which there is something to say.
#[derive(Debug)]
pub struct Net {
    delay: Delay,
    /// How many times as long frames take.
    slowness: u64,
    /// What links add, in nanoseconds, row by sender; the rows and columns of the matrix come again
    /// where there are more hosts. Empty without a matrix.
    distance: Vec<Vec<u64>>,
    /// When the last frame of each link arrives; none if links need not keep their order.
    latest: Option<BTreeMap<Link, u64>>,
    /// How many faults cut links.
    cuts: BTreeMap<Link, u8>,
    /// Who is cut off for good.
    apart: Vec<bool>,
    /// What the next frames of links are delayed by.
    held: BTreeMap<Link, u64>,
    /// When the last frame that was delayed arrives.
    late_until: u64,
    loss_ppm: u32,
    duplicate_ppm: u32,
    rng: Rng,
    /// Room for frames.
    arena: Arena,
    /// What the connections of each host say of it.
    said: Vec<Said>,
    /// What happened to frames.
    pub counts: Counts,
}

impl Net {
    /// The network of a scenario; `distance` is its matrix in nanoseconds, row by sender.
    #[must_use]
    pub fn new(
        section: &NetSection,
        hosts: usize,
        delay: Delay,
        distance: &[Vec<u64>],
        mut rng: Rng,
    ) -> Net {
        Net {
            delay,
            slowness: power_of_two(section.slower_max, &mut rng),
            distance: distance.to_vec(),
            latest: section.ordered.then(BTreeMap::new),
            cuts: BTreeMap::new(),
            apart: vec![false; hosts],
            held: BTreeMap::new(),
            late_until: 0,
            loss_ppm: section.loss_ppm,
            duplicate_ppm: section.duplicate_ppm,
            rng,
            arena: Arena::default(),
            said: vec![Said::default(); hosts],
            counts: Counts::default(),
        }
    }

    /// What the connections of a host say of it from now on.
    pub fn say(&mut self, from: HostIndex, said: Said) {
        self.said[from] = said;
    }

    /// Takes a frame from one host to another.
    pub fn send(
        &mut self,
        from: HostIndex,
        to: HostIndex,
        now: u64,
        frame: &Frame,
        queue: &mut Queue,
    ) {
        self.counts.sent += 1;
        let link = (from, to);
        let is_apart = self.apart[from] || self.apart[to];
        if is_apart || self.cuts.contains_key(&link) {
            self.counts.cut += 1;
            return;
        }
        if self.loss_ppm > 0 && self.rng.chance_ppm(self.loss_ppm) {
            self.counts.lost += 1;
            return;
        }
        let (bytes, said) = (frame.join(&mut self.arena), self.said[from]);
        if self.duplicate_ppm > 0 && self.rng.chance_ppm(self.duplicate_ppm) {
            self.counts.doubled += 1;
            let at = self.arrival(link, now);
            queue.push(at, Event::Frame { host: to, bytes: bytes.clone(), said });
        }
        let at = self.arrival(link, now);
        queue.push(at, Event::Frame { host: to, bytes, said });
    }

    fn arrival(&mut self, link: Link, now: u64) -> u64 {
        let travel = self.delay.sample(&mut self.rng) * self.slowness;
        let held = self.held.remove(&link).unwrap_or_default();
        let mut at = now + travel + held;
        if !self.distance.is_empty() {
            let row = &self.distance[link.0 % self.distance.len()];
            at += row[link.1 % row.len()];
        }
        if let Some(latest) = &mut self.latest {
            let latest = latest.entry(link).or_default();
            at = at.max(*latest);
            *latest = at;
        }
        if held > 0 {
            self.late_until = at.max(self.late_until);
        }
        at
    }

    /// Whether a frame that a fault has delayed is still on its way.
    #[must_use]
    pub fn is_late(&self, now: u64) -> bool {
        now <= self.late_until
    }

    /// Cuts a link, once more if it is cut already.
    pub fn cut(&mut self, from: HostIndex, to: HostIndex) {
        *self.cuts.entry((from, to)).or_default() += 1;
    }

    /// Takes back one cut of a link.
    pub fn mend(&mut self, from: HostIndex, to: HostIndex) {
        let cuts = self.cuts.get_mut(&(from, to)).expect("only a cut link is mended");
        *cuts -= 1;
        if *cuts == 0 {
            self.cuts.remove(&(from, to));
        }
    }

    /// Delays the next frame of a link by this many nanoseconds more.
    pub fn hold_next(&mut self, from: HostIndex, to: HostIndex, extra: u64) {
        *self.held.entry((from, to)).or_default() += extra;
    }

    /// Loses this many more of a million frames, or fewer.
    pub fn change_loss(&mut self, by_ppm: i64) {
        self.loss_ppm = changed(self.loss_ppm, by_ppm);
    }

    /// Doubles this many more of a million frames, or fewer.
    pub fn change_duplication(&mut self, by_ppm: i64) {
        self.duplicate_ppm = changed(self.duplicate_ppm, by_ppm);
    }

    /// Ends every loss, duplication and cut, and cuts the hosts outside `core` off for good.
    pub fn heal(&mut self, core: &[bool]) {
        (self.loss_ppm, self.duplicate_ppm) = (0, 0);
        self.held.clear();
        self.cuts.clear();
        self.apart = core.iter().map(|is_in| !is_in).collect();
    }
}

/// Draws a power of two up to a limit.
#[must_use]
pub fn power_of_two(limit: u64, rng: &mut Rng) -> u64 {
    1 << rng.between(0, u64::from(limit.max(1).ilog2()))
}

fn changed(ppm: u32, by: i64) -> u32 {
    (i64::from(ppm) + by).max(0) as u32
}

/// Reads a latency matrix: one line per sending host, means in microseconds separated by commas;
/// `#` begins a comment. Returns nanoseconds, or what is wrong.
///
/// # Errors
/// A field is no number, or the rows differ in length.
pub fn parse_matrix(text: &str) -> Result<Vec<Vec<u64>>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let row = |line: &str| -> Result<Vec<u64>, String> {
        let field = |field: &str| match field.trim().parse::<u64>() {
            Ok(us) if us < 1 << 40 => Ok(us * 1000),
            _ => Err(format!("`{}` is no number of microseconds", field.trim())),
        };
        line.split(',').map(field).collect()
    };
    let rows: Vec<Vec<u64>> =
        lines.filter(|line| !line.is_empty()).map(row).collect::<Result<_, _>>()?;
    let is_square = rows.iter().all(|row| row.len() == rows.len());
    if rows.is_empty() || !is_square {
        return Err("a matrix has as many columns in each row as it has rows".to_owned());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::Distribution;
    use bytes::BytesMut;
    use quorate_kernel::error::WireError;
    use quorate_kernel::ids::{Incarnation, LaneId};
    use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};

    struct Empty;

    impl Wire for Empty {
        fn encode(&self, _out: &mut Encoder<'_>) {}
        fn decode(_input: &Decoder) -> Result<Empty, WireError> {
            Ok(Empty)
        }
    }

    fn frame() -> Frame {
        let body = Body::encode(&Empty, &mut BytesMut::new()).expect("it fits");
        let (source, target) = (Incarnation::default(), Incarnation::default());
        Frame { lane: LaneId(1), source, target, body }
    }

    fn net(section: &NetSection, distance: &[Vec<u64>]) -> Net {
        Net::new(section, 3, Delay::new(&section.delay), distance, Rng::new(1))
    }

    fn section(delay: Distribution) -> NetSection {
        NetSection {
            delay,
            matrix: None,
            loss_ppm: 0,
            duplicate_ppm: 0,
            slower_max: 1,
            ordered: false,
        }
    }

    fn arrivals(queue: &mut Queue) -> Vec<(u64, HostIndex)> {
        let mut all = Vec::new();
        while let Some((time, event)) = queue.pop() {
            let Event::Frame { host, .. } = event else { panic!("only frames were sent") };
            all.push((time, host));
        }
        all
    }

    #[test]
    fn cuts_count_and_frames_on_their_way_arrive() {
        let mut net = net(&section(Distribution::Constant { us: 5 }), &[]);
        let mut queue = Queue::default();
        net.send(0, 1, 0, &frame(), &mut queue);
        net.cut(0, 1);
        net.cut(0, 1);
        net.mend(0, 1);
        net.send(0, 1, 10, &frame(), &mut queue);
        net.send(1, 0, 10, &frame(), &mut queue);
        net.mend(0, 1);
        net.send(0, 1, 20, &frame(), &mut queue);
        assert_eq!(arrivals(&mut queue), [(5000, 1), (5010, 0), (5020, 1)]);
        assert_eq!(net.counts.cut, 1);
        net.heal(&[true, true, false]);
        net.send(0, 2, 20, &frame(), &mut queue);
        assert!(arrivals(&mut queue).is_empty());
    }

    #[test]
    fn loss_and_duplication_follow_their_shares() {
        let mut section = section(Distribution::Constant { us: 5 });
        (section.loss_ppm, section.duplicate_ppm) = (100_000, 200_000);
        let mut net = net(&section, &[]);
        let mut queue = Queue::default();
        (0..10_000).for_each(|now| net.send(0, 1, now, &frame(), &mut queue));
        assert!((900..1100).contains(&net.counts.lost), "{:?}", net.counts);
        assert!((1650..1950).contains(&net.counts.doubled), "{:?}", net.counts);
        let count = arrivals(&mut queue).len() as u64;
        assert_eq!(count, net.counts.sent - net.counts.lost + net.counts.doubled);
    }

    #[test]
    fn an_ordered_link_keeps_its_order_and_a_held_frame_keeps_the_rest_waiting() {
        let mut section = section(Distribution::Uniform { low_us: 1, high_us: 1000 });
        section.ordered = true;
        let mut net = net(&section, &[]);
        let mut queue = Queue::default();
        net.hold_next(0, 1, 10_000_000);
        (0..50).for_each(|now| net.send(0, 1, now, &frame(), &mut queue));
        assert!(arrivals(&mut queue)[0].0 >= 10_000_000);
    }

    #[test]
    fn a_held_frame_is_late_until_it_has_arrived() {
        let mut net = net(&section(Distribution::Constant { us: 5 }), &[]);
        let mut queue = Queue::default();
        net.send(0, 1, 0, &frame(), &mut queue);
        assert!(!net.is_late(1), "it takes as long as any other");
        net.hold_next(0, 1, 10_000);
        net.send(0, 1, 100, &frame(), &mut queue);
        net.heal(&[true, true, true]);
        assert!(net.is_late(15_100));
        assert!(!net.is_late(15_101));
    }

    #[test]
    fn a_matrix_sets_links_apart() {
        let matrix = parse_matrix("# means\n0, 10, 20\n10, 0, 30 # far\n20, 30, 0\n").unwrap();
        let mut net = net(&section(Distribution::Constant { us: 1 }), &matrix);
        let mut queue = Queue::default();
        net.send(0, 2, 0, &frame(), &mut queue);
        net.send(2, 1, 0, &frame(), &mut queue);
        assert_eq!(arrivals(&mut queue), [(21_000, 2), (31_000, 1)]);
        assert!(parse_matrix("0,1\n1").is_err());
        assert!(parse_matrix("0,x\n1,0").is_err());
    }
}
