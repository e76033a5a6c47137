//! What a test sees of the world, and what is shown of it when it fails.

use super::node::Node;
use super::world::World;
use crate::vsr::Replica;
use std::format;
use std::string::String;

impl World {
    /// The one of these nodes that serves, if one does.
    pub fn serving_of(&self, nodes: &[usize]) -> Option<usize> {
        nodes
            .iter()
            .copied()
            .find(|node| self.nodes[*node].replica.as_ref().is_some_and(Replica::is_serving))
    }

    /// The node that serves, if one does.
    pub fn serving(&self) -> Option<usize> {
        let is_serving = |node: &Node| node.replica.as_ref().is_some_and(Replica::is_serving);
        let serving = self.nodes.iter().enumerate().filter(|(_, node)| is_serving(node));
        let view = |node: &Node| node.replica.as_ref().map(Replica::view);
        serving.max_by_key(|(_, node)| view(node)).map(|(place, _)| place)
    }

    pub fn replica(&self, node: usize) -> &Replica {
        self.nodes[node].replica.as_ref().expect("it is up")
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now.0 / 1_000_000;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now:>5} ms  {}", line()));
        }
    }
}

impl Drop for World {
    /// An assertion inside a node leaves no time to say which seed it was.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in self.trace.take().unwrap_or_default() {
                std::eprintln!("{line}");
            }
            for node in &self.nodes {
                match &node.replica {
                    Some(replica) => std::eprintln!("{} {replica:?}", node.me.node.0),
                    None => std::eprintln!("{} is down", node.me.node.0),
                }
            }
            std::eprintln!("{:?} at {:?}", self.setup, self.now);
        }
    }
}
