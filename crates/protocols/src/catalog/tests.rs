//! Tests of the catalog as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | [`world`] | many catalogs with latencies, loss, partitions, crashes |
//! | [`judge`] | one chain, no name twice, no lane again, no answer untrue |
//! | [`chain`] | births, races, orders and what is refused |
//! | [`apart`] | partitions, newcomers, members that come and go, positions |
//! | [`random`] | random faults of every kind |
//! | [`golden`] | every message of a few runs |
//! | [`words`] | its engines, and messages in readable form |
//! | [`wire`] | every message's bytes, and that any other bytes are survived |

mod apart;
mod chain;
mod golden;
mod judge;
mod random;
mod wire;
mod words;
mod world;
