//! Telling lanes the news that they hear; what it means to them, only they know.

use super::Node;
use crate::host::Host;
use quorate_kernel::news::{News, Topic};

impl Node {
    /// Whether a lane wants to be told of a topic.
    pub(super) fn hears(&self, index: usize, topic: Topic) -> bool {
        self.slots[index].lane.as_ref().is_some_and(|lane| lane.hears(topic))
    }

    /// Tells a lane, if it hears such news.
    pub(super) fn tell_one(&mut self, index: usize, news: News<'_>, host: &mut dyn Host) {
        if self.hears(index, news.topic()) {
            self.call(index, host, |lane, env| lane.on_news(news, env));
        }
    }

    /// Tells the lanes that hear such news, but for the one that it is from.
    pub(super) fn tell(&mut self, news: News<'_>, from: Option<usize>, host: &mut dyn Host) {
        for index in 0..self.slots.len() {
            if Some(index) != from {
                self.tell_one(index, news, host);
            }
        }
    }
}
