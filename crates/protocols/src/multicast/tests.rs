//! Tests of the order and of its progress, on schedules by hand and at random.

mod judge;
mod order;
mod paced;
mod pacer;
mod steps;
