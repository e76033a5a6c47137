//! The settings that every door of clients on the core thread has, in a section of its own.

use super::fields::{Field, Shape};
use super::settings::ClientDoor;
use super::values::{assign, assign_positive};
use quorate_doors::DOORS;

/// A setting that every door of clients on the core thread has.
struct Row {
    name: &'static str,
    shape: Shape,
    /// With `{clients}` for those whom the door is for.
    doc: &'static str,
    set: fn(&mut ClientDoor, &str) -> Result<(), String>,
    show: fn(&ClientDoor) -> String,
}

/// The settings of each door of clients on the core thread.
const ROWS: &[Row] = &[
    Row {
        name: "bind",
        shape: Shape::Text,
        doc: "Where {clients} connect. Port 0 takes a free port, shown when the host is ready.",
        set: |door, text| assign(&mut door.bind, text),
        show: |door| door.bind.to_string(),
    },
    Row {
        name: "clients_max",
        shape: Shape::Number,
        doc: "The most clients connected at once; one more is told so and closed. Fewer if the\n\
              system allows this process too few open files (`ulimit -n`).",
        set: |door, text| assign_positive(&mut door.clients_max, text),
        show: |door| door.clients_max.to_string(),
    },
    Row {
        name: "memory_max",
        shape: Shape::Text,
        doc: "The memory that all clients may take together: commands that have begun to arrive\n\
              or are not answered, and replies that are not taken. A command for which there is\n\
              no room is refused before it is read. 0 is a quarter of the machine's memory.",
        set: |door, text| assign(&mut door.memory_max, text),
        show: |door| door.memory_max.to_string(),
    },
];

/// The settings of all doors.
pub(super) fn fields() -> impl Iterator<Item = Field> {
    (0..DOORS.len()).flat_map(|number| ROWS.iter().map(move |row| field(number, row)))
}

/// The setting of the door of this number. Its texts live as long as the process.
fn field(number: usize, row: &'static Row) -> Field {
    let door = DOORS[number];
    Field {
        path: format!("{}.{}", door.name, row.name).leak(),
        shape: row.shape,
        doc: row.doc.replace("{clients}", door.clients).leak(),
        set: Box::new(move |config, text| (row.set)(&mut config.doors[number], text)),
        show: Box::new(move |config| (row.show)(&config.doors[number])),
    }
}
