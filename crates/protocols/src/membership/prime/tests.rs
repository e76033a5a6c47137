mod random;
mod traps;
mod wire;
mod world;
