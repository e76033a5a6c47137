//! What has happened in the cluster, as text for clients: the same at every door.

use alloc::string::String;
use core::fmt::Write;
use quorate_kernel::watch::Event;

/// An event as one JSON object: its word as `event`, then what it is about.
#[must_use]
pub fn json(event: &Event) -> String {
    let mut out = String::from("{\"event\":");
    string(&mut out, &event.word());
    for (name, text) in event.fields() {
        out.push(',');
        string(&mut out, name);
        out.push(':');
        string(&mut out, &text);
    }
    out.push('}');
    out
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\0'..' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::NodeId;
    use quorate_kernel::watch::Change;

    #[test]
    fn an_event_is_one_object_whatever_its_texts() {
        assert_eq!(json(&Event::Current), "{\"event\":\"current\"}");
        let address = String::from("a\"b\\c\nd");
        let left = Event::Host { change: Change::Left, node: NodeId(1), address };
        let text = "{\"event\":\"host-left\",\"node\":\"0000000000000001\",\
                    \"address\":\"a\\\"b\\\\c\\u000ad\"}";
        assert_eq!(json(&left), text);
    }
}
