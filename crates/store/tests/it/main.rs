//! The store, judged from outside: one suite for both stores, and damage to what lies on disk.

mod conformance;
mod damage;
mod directory;
mod full_disk;
mod host;
mod image;
mod lives;
mod logs;
mod look;
mod model;
mod segments;
mod space;
mod together;
