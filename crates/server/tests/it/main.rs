//! The binary as its users meet it, and as faults and bad input do.

mod badinput;
mod balance;
mod basics;
mod check;
mod client;
mod cluster;
mod config;
mod ctl;
mod dev;
mod disks;
mod elastic;
mod faults;
mod init;
mod join;
mod keyspaces;
mod lab;
mod load;
mod mishaps;
mod net;
mod peers;
mod ranges;
mod ring;
mod run;
mod shutdown;
