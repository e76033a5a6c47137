mod calm;
mod faults;
mod judge;
mod shape;
mod traps;
mod world;
