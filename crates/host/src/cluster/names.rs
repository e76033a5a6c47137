//! Looking up the names of other hosts, on a thread of its own: the system's resolver may take
//! seconds, and the core thread may not.

use quorate_kernel::ids::NodeId;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long after a failure a name is looked up again.
const AGAIN: Duration = Duration::from_secs(2);

/// The questions and answers. The thread begins with the first name and ends with this.
#[derive(Default)]
pub(super) struct Names(Option<(Sender<Unresolved>, Receiver<Resolved>)>);

type Unresolved = (NodeId, String);
type Resolved = (NodeId, SocketAddr);

impl Names {
    /// Asks where an address leads; a later question about the same node replaces this one.
    pub fn ask(&mut self, node: NodeId, address: &str) {
        if self.0.is_none() {
            self.0 = start();
        }
        let Some((questions, _)) = &self.0 else { return };
        // The thread ends only when this is dropped.
        let _ = questions.send((node, address.to_owned()));
    }

    /// The next name that was found.
    pub fn answer(&self) -> Option<Resolved> {
        self.0.as_ref()?.1.try_recv().ok()
    }
}

fn start() -> Option<(Sender<Unresolved>, Receiver<Resolved>)> {
    let (questions, asked) = channel();
    let (answers, found) = channel();
    let thread = std::thread::Builder::new().name(String::from("names"));
    match thread.spawn(move || answer_all(&asked, &answers)) {
        Ok(_) => Some((questions, found)),
        Err(error) => {
            tracing::warn!(event = "names_not_looked_up", %error);
            None
        }
    }
}

fn answer_all(asked: &Receiver<Unresolved>, answers: &Sender<Resolved>) {
    let mut open: Vec<Unresolved> = Vec::new();
    loop {
        let next = match open.is_empty() {
            true => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => asked.recv_timeout(AGAIN),
        };
        match next {
            Ok(question) => {
                open.retain(|(node, _)| *node != question.0);
                open.push(question);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        open.retain(|(node, address)| {
            let found = address.to_socket_addrs().ok().and_then(|mut all| all.next());
            if let Some(found) = found {
                let _ = answers.send((*node, found));
            }
            found.is_none()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found() {
        let mut names = Names::default();
        assert_eq!(names.answer(), None);
        names.ask(NodeId(1), "no such name.invalid:1");
        names.ask(NodeId(1), "localhost:7");
        let (_, answers) = names.0.as_ref().expect("the thread began");
        let (node, address) = answers.recv().expect("the thread lives");
        assert_eq!((node, address.port()), (NodeId(1), 7));
    }
}
