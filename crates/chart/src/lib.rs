//! Charts as SVG text, without a library: what the load generator and the measurements draw.
//!
//! | module | what it draws |
//! |---|---|
//! | [`svg`] | lines over two axes, and the axes, legends and frames of both kinds |
//! | [`bars`] | groups of bars with the error of each |

pub mod bars;
pub mod svg;
