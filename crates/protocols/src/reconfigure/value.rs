//! What can be decided to follow a view, and what it is judged by.

use core::fmt::Debug;
use quorate_kernel::view::{Change, View};

/// What a group can decide to follow a view. Deciding it makes the view's successor, which has the
/// next version, whatever else it does.
pub trait Value: Clone + Debug + PartialEq {
    /// What it is judged by: the view, and what was decided before. Of one view there is one.
    type Ground: Ground;

    /// Whether it can follow. It depends on the ground alone, so all members judge alike.
    fn fits(&self, ground: &Self::Ground) -> bool;
}

/// What a decision follows.
pub trait Ground: Debug {
    /// The view whose members decide.
    fn view(&self) -> &View;
}

impl Ground for View {
    fn view(&self) -> &View {
        self
    }
}

impl Value for Change {
    type Ground = View;

    fn fits(&self, ground: &View) -> bool {
        ground.after(self).is_some()
    }
}
