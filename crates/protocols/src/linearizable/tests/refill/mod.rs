//! Members that forgot or are new: whom they wait for, and how they get the data.

mod alone;
mod gathers;
mod leavers;
mod stranded;
mod transfers;
