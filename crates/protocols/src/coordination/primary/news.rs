//! What gateways are told at the end of a turn.

use super::{Primary, Served, done};
use crate::coordination::message::{GatewayNews, Message, News};
use crate::coordination::timer::Timer;
use crate::coordination::tree::Change;
use crate::coordination::{Context, Coordination};
use crate::smr::Changes;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// About the most bytes of one message.
const TOLD_BYTES_MAX: usize = 1024 * 1024;
/// About the most bytes of changes that one gateway is told in one turn; the next one goes on.
const TURN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// About the most bytes of answers of questions that wait behind changes for a gateway; one answer
/// more always fits. Other questions of it are not answered before.
const NEWS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a gateway waits for a word at most, if there is no more to tell.
const OWED: Span = Span::millis(100);
/// The most news of one message.
const NEWS_MAX: usize = 4096;

impl Coordination {
    /// Tells each gateway what there is to tell.
    pub(crate) fn tell_gateways(&mut self, cx: &mut Context<'_>) {
        self.answer_ready(cx);
        let Some(hosted) = &mut self.hosted else { return };
        let life = hosted.life();
        let Some(primary) = &mut hosted.primary else { return };
        let changes = hosted.machine.changes();
        let members = &hosted.replica.configuration().members;
        let mut room = done::TURN_BYTES_MAX;
        for node in primary.in_turn() {
            let Some(served) = primary.gateways.get_mut(&node) else { continue };
            served.tell_done(&hosted.machine, &mut room);
            if room == 0 && primary.first.is_none() {
                primary.first = Some(node);
                cx.fx.arm(Timer::Again, cx.now);
            }
            let all = served.told(changes, cx.now);
            let answers = self.settings.session_reads && members.contains(&node);
            if let Some(upto) = served.applied.take_if(|_| answers && !all.is_empty()) {
                let touch = served.touch_confirmed;
                // It was applied, so a majority has it.
                cx.fx.send_early(served.client, Message::Applied { life, touch, upto });
            }
            for told in all {
                let told = GatewayNews { view: primary.view, life, ..told };
                // It rests on a majority: nothing waits for this node's disk.
                cx.fx.send_early(served.client, Message::Told(told));
            }
            if primary.release(node) {
                cx.fx.arm(Timer::Again, cx.now);
            }
        }
    }
}

impl Primary {
    /// The gateways in the order in which they are told.
    fn in_turn(&mut self) -> Vec<NodeId> {
        let first = self.first.take().unwrap_or(NodeId(0));
        let (mut nodes, later): (Vec<NodeId>, Vec<NodeId>) =
            self.gateways.keys().partition(|node| **node >= first);
        nodes.extend(later);
        nodes
    }
}

impl Served {
    /// Something to be told, behind the change of this number.
    pub(super) fn tell(&mut self, at: u64, news: News) {
        self.has_news = true;
        self.news_bytes += bytes_of(&news);
        if let News::Answer(number, _) = &news {
            self.looked_up.insert(*number);
        }
        self.news.push((at, news));
    }

    /// Whether so much waits here that the answer of a question is not looked for before.
    pub(super) fn holds_back(&self) -> bool {
        self.news_bytes >= NEWS_BYTES_MAX && !mutant!("tree_keeps_all_news")
    }

    /// What this gateway is to be told, in messages of a size.
    pub(super) fn told(&mut self, changes: &Changes<Change>, now: Time) -> Vec<GatewayNews> {
        let last = changes.last();
        if self.upto > last && !mutant!("tree_tells_less_than_is_known") {
            // What it has seen was done: another node leads, and knows more than this one.
            return Vec::new();
        }
        // That it is there, it is told from time to time: mostly there is more to tell soon.
        let is_owed = self.is_owed && now - self.told_at >= OWED;
        // An answer that waits comes behind the changes up to here, and before others.
        let waits_at = self.done.waits_at().map(|at| at.max(self.upto));
        let end = waits_at.map_or(last, |at| at.min(last));
        let has_moved = self.done.waits_at() != self.waited_at;
        if !self.has_news && !has_moved && !is_owed && end == self.upto {
            // What is here waits yet.
            return Vec::new();
        }
        (self.has_news, self.waited_at) = (false, self.done.waits_at());
        let news = core::mem::take(&mut self.news);
        let behind = changes.after(self.upto);
        let lacks = behind.is_none() && (self.follows || !mutant!("tree_lacks_in_silence"));
        let is_told = |change: &Change| match change {
            Change::Node { .. } | Change::Guarded { .. } => {
                self.follows || mutant!("tree_tells_all")
            }
            Change::Session { gateway, .. } => *gateway == self.client,
        };
        let (mut all, mut bytes) = (Vec::new(), 0);
        let mut upto = if behind.is_none() { last } else { end };
        let behind = behind.into_iter().flatten().take_while(|(number, _)| *number <= end);
        for (number, change) in behind.filter(|(_, it)| is_told(it)) {
            let change = News::Change(number, change.clone());
            bytes += bytes_of(&change);
            all.push((number, change));
            if bytes >= TURN_BYTES_MAX && !mutant!("tree_tells_all_in_one_turn") {
                upto = number;
                break;
            }
        }
        self.upto = upto;
        // Answers that show later changes come behind those, and those of questions behind the
        // answers of commands that they may show.
        let is_now = |(at, news): &(u64, News)| match news {
            News::Answer(..) => *at <= upto && waits_at.is_none_or(|waits_at| *at < waits_at),
            _ => *at <= upto,
        };
        let (news, later): (Vec<_>, Vec<_>) = news.into_iter().partition(is_now);
        for (_, news) in &news {
            if let News::Answer(number, _) = news {
                self.looked_up.remove(number);
            }
        }
        let of_questions = later.iter().filter(|(_, it)| matches!(it, News::Answer(..)));
        self.news_bytes = of_questions.map(|(_, news)| bytes_of(news)).sum();
        self.news = later;
        if all.is_empty() && news.is_empty() && !is_owed && !lacks {
            return Vec::new();
        }
        // An answer comes behind the changes that it shows, and before others; of those of one
        // moment a change comes first, and what was asked behind a command behind its answer.
        if mutant!("event_after_reply") {
            all.splice(0..0, news);
        } else {
            all.extend(news);
            all.sort_by_key(|(at, news)| (*at, rank(news)));
        }
        (self.is_owed, self.told_at) = (false, now);
        self.messages(all, lacks)
    }

    fn messages(&mut self, all: Vec<(u64, News)>, lacks: bool) -> Vec<GatewayNews> {
        let mut messages = Vec::new();
        let (mut news, mut bytes, mut upto) = (Vec::new(), 0, 0);
        for (at, one) in all {
            let size = bytes_of(&one);
            let is_full = bytes + size > TOLD_BYTES_MAX || news.len() >= NEWS_MAX;
            if is_full && !news.is_empty() {
                messages.push((upto, core::mem::take(&mut news)));
                bytes = 0;
            }
            bytes += size;
            // Changes of this number and below are before what comes next: an answer in this
            // message may show them, and if the next one is lost they are not told behind it.
            upto = if mutant!("tree_says_late_how_far") { 0 } else { at };
            news.push(one);
        }
        messages.push((self.upto, news));
        let told = |(at, (upto, news)): (usize, (u64, Vec<News>))| {
            self.number += 1;
            let (touch, turn, number) = (self.touch_confirmed, self.turn, self.number);
            let lacks = lacks && at == 0;
            GatewayNews { touch, turn, number, upto, lacks, news, ..GatewayNews::default() }
        };
        messages.into_iter().enumerate().map(told).collect()
    }
}

/// Which of the news of one moment come first.
fn rank(news: &News) -> u8 {
    match news {
        News::Change(..) => 0,
        News::Done(..) => 1,
        News::Answer(..) => 2,
    }
}

/// About how many bytes it takes.
fn bytes_of(news: &News) -> usize {
    64 + match news {
        News::Change(_, change) => change.bytes(),
        News::Done(_, answer) | News::Answer(_, answer) => answer.bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::tree::Answer;
    use quorate_kernel::ids::{Incarnation, NodeId, Start};
    use quorate_kernel::tree::{Told as Reply, TreeReply, What, Zxid};
    use std::string::String;

    #[test]
    fn each_message_says_how_far_it_goes() {
        let client = Incarnation { node: NodeId(1), start: Start(1) };
        let mut served = Served { upto: 9, ..Served::new(client) };
        let change = |number| {
            let change =
                Change::Node { zxid: Zxid(number), path: String::from("/"), what: What::Data };
            (number, News::Change(number, change))
        };
        let answer = |at, number| {
            let reply = TreeReply { zxid: Zxid(at), told: Ok(Reply::Done) };
            (at, News::Answer(number, Answer::Told(reply)))
        };
        let mut all = Vec::from([answer(4, 1), change(5)]);
        all.extend((2..2 * NEWS_MAX as u64).map(|number| answer(7, number)));
        all.push(change(8));
        let messages = served.messages(all, true);
        let said: Vec<_> = messages.iter().map(|it| (it.number, it.upto, it.lacks)).collect();
        assert_eq!(said, [(1, 7, true), (2, 7, false), (3, 9, false)]);
        assert!(messages.iter().all(|it| it.news.len() <= NEWS_MAX));
    }

    #[test]
    fn a_turn_tells_so_much_and_the_next_one_goes_on() {
        let client = Incarnation { node: NodeId(1), start: Start(1) };
        let mut served = Served { follows: true, ..Served::new(client) };
        let mut changes = Changes::new(0);
        for number in 1..=3000 {
            let (zxid, path) = (Zxid(number), "x".repeat(10_000));
            changes.push(Change::Node { zxid, path, what: What::Data }, 10_000);
        }
        let answer = |at, number| (at, News::Answer(number, Answer::Expired));
        for (at, news) in [answer(5, 1), answer(2999, 2), answer(3000, 3)] {
            served.tell(at, news);
        }
        let (mut said, mut turns) = (Vec::new(), 0);
        while served.upto < changes.last() {
            let messages = served.told(&changes, Time(0));
            let bytes: usize = messages.iter().flat_map(|it| &it.news).map(bytes_of).sum();
            assert!(bytes < TURN_BYTES_MAX + 20_000, "{bytes} in one turn");
            assert_eq!(messages.last().map(|it| it.upto), Some(served.upto));
            assert!(messages.iter().all(|it| !it.lacks));
            said.extend(messages.into_iter().flat_map(|it| it.news));
            turns += 1;
        }
        assert_eq!(turns, 2);
        let numbers = said.iter().map(|it| match it {
            News::Change(number, _) => (*number, 0),
            News::Answer(number, _) | News::Done(number, _) => (0, *number),
        });
        let between = |from, to| (from..=to).map(|number| (number, 0));
        let all = between(1, 5).chain([(0, 1)]).chain(between(6, 2999)).chain([(0, 2)]);
        assert!(numbers.eq(all.chain([(3000, 0), (0, 3)])), "all of it, once and in its order");
        assert!(served.told(&changes, Time(0)).is_empty());
    }

    #[test]
    fn who_knows_less_than_a_gateway_has_seen_tells_nothing() {
        let client = Incarnation { node: NodeId(1), start: Start(1) };
        let mut served = Served { upto: 9, follows: true, ..Served::new(client) };
        assert!(served.told(&Changes::new(8), Time(0) + OWED).is_empty());
        assert_eq!(served.upto, 9);
        assert_eq!(served.told(&Changes::new(9), Time(0) + OWED).len(), 1);
    }

    #[test]
    fn questions_are_not_answered_while_much_waits_behind_changes() {
        let client = Incarnation { node: NodeId(1), start: Start(1) };
        let mut served = Served { follows: true, ..Served::new(client) };
        let mut changes = Changes::new(0);
        for number in 1..=3000 {
            let (zxid, path) = (Zxid(number), "x".repeat(10_000));
            changes.push(Change::Node { zxid, path, what: What::Data }, 10_000);
        }
        let mut count = 0;
        while !served.holds_back() && count < 20 {
            count += 1;
            let paths = Vec::from(["x".repeat(1024 * 1024)]);
            served.tell(3000, News::Answer(count, Answer::Paths { paths, next: None }));
        }
        assert_eq!(count, 16);
        let mut said = Vec::new();
        for holds_back in [true, false] {
            let told = served.told(&changes, Time(0));
            assert!(told.iter().all(|it| !it.lacks), "it is told all that it follows");
            said.extend(told.into_iter().flat_map(|it| it.news));
            assert_eq!(served.holds_back(), holds_back);
        }
        let answers = said.iter().filter_map(|news| match news {
            News::Answer(number, _) => Some(*number),
            _ => None,
        });
        assert!(answers.eq(1..=count), "all of them, in their order");
        assert_eq!((said.len(), served.news_bytes, served.upto), (3016, 0, 3000));
        assert!(served.told(&changes, Time(0)).is_empty());
    }
}
