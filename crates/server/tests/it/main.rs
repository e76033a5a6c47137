//! The binary as its users meet it, and as faults and bad input do.

mod balance;
mod causal;
mod command_line;
mod elastic;
mod epidemic;
mod faults;
mod intruders;
mod join;
mod keyspaces;
mod native;
mod net;
mod power;
mod promises;
mod ranges;
mod roll;
mod shares;
mod shutdown;
mod support;
