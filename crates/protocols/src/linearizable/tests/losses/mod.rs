//! Groups that have lost data for good: what is given up then, who is heard first, and what does
//! not come back.

mod aftermath;
mod again;
mod copies;
mod epochs;
mod last_comers;
mod nobody_left;
mod passed;
mod returns;
mod told_twice;
mod unheard;
