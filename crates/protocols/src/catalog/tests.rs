//! Tests of the catalog as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | [`world`] | many catalogs with latencies, loss, partitions, crashes |
//! | [`judge`] | one chain, no name twice, no lane again, no answer untrue |
//! | [`chain`] | births, races, orders and what is refused |
//! | [`apart`] | partitions, newcomers, members that come and go, partitions |
//! | [`muster`] | keyspaces begin on hosts that answer |
//! | [`newcomer`] | who may come into the system group |
//! | [`levelling`] | hosts that join take their share, and then it is quiet |
//! | [`settled`] | what nodes have done at partitions, said late, twice or of another tenure |
//! | [`shrink`] | hosts that leave, down to as few as there are replicas |
//! | [`maps`] | maps of partitions for these |
//! | [`random`] | random faults of every kind |
//! | [`golden`] | every message of a few runs |
//! | [`words`] | its engines, and messages in readable form |
//! | [`wire`] | every message's bytes, and that any other bytes are survived |

mod apart;
mod chain;
mod golden;
mod judge;
mod levelling;
pub mod maps;
mod muster;
mod newcomer;
mod random;
mod settled;
mod shrink;
mod wire;
mod words;
mod world;
