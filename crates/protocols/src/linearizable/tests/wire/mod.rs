//! The bytes of messages and of stored values, and the pages of the manual that show them.

mod any;
mod bytes;
mod golden;
mod pages;
