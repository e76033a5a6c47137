//! ZooKeeper's door, driven by hand: bytes in, operations out, outcomes in, bytes out.

mod client;
mod connect;
mod fuzz;
mod hostile;
mod multi;
mod order;
mod parting;
mod reads;
mod watches;
mod wire;
mod words;
mod world;
mod writes;
