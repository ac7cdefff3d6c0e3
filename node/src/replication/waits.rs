//! What answers wait for.
//!
//! For: gathering the acknowledgements that a batch's answers need, on any links, and waiting for all of them at once.
//! Not here: which copies an answer needs (`primary`), how a link is acknowledged (`link`).

use std::sync::Arc;

use smallvec::SmallVec;

use super::link::{Link, Place};

/// What an answer must wait for.
#[derive(Default)]
pub struct Waits {
    /// Link, place, and the link's rechecks when it was first added.
    links: SmallVec<[(Arc<Link>, Place, u64); 2]>,
    /// A required copy fell out of step: there is no position to wait for, only another look.
    is_open: bool,
}

impl Waits {
    /// Wait for `place` on `link`. To be called under the lock of the partition that requires it.
    pub fn add(&mut self, link: &Arc<Link>, place: Place) {
        let is_same =
            |known: &&mut (Arc<Link>, Place, u64)| Arc::ptr_eq(&known.0, link) && known.1.lane == place.lane;
        match self.links.iter_mut().find(is_same) {
            Some((_, last, _)) => last.position = place.position.max(last.position),
            None => self.links.push((Arc::clone(link), place, link.rechecks())),
        }
    }

    /// There is no position to wait for, only another look.
    pub fn add_open(&mut self) {
        self.is_open = true;
    }

    /// Nothing to wait for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && !self.is_open
    }

    /// Nothing is left to wait for.
    #[must_use]
    pub fn are_acknowledged(&self) -> bool {
        !self.is_open && self.links.iter().all(|(link, place, _)| link.has_acknowledged(*place))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.links.clear();
        self.is_open = false;
    }

    /// Waits until all of it is acknowledged, also by copies that are not asked for any more. False if one never will.
    pub async fn acknowledged(&self) -> bool {
        if self.is_open {
            return false;
        }
        for (link, place, _) in &self.links {
            while link.wait(*place, link.rechecks()).await.is_err() {
                if link.is_broken() && !link.has_acknowledged(*place) {
                    return false;
                }
            }
        }
        true
    }

    /// Waits for all of it. True if all was acknowledged; false means: look again.
    pub async fn all(&self) -> bool {
        if self.is_open {
            return false;
        }
        for (link, place, rechecks) in &self.links {
            if link.wait(*place, *rechecks).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// How an answer that may have to wait stands.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Settlement {
    /// Every required copy has acknowledged.
    Done,
    /// Wait for what was added to the waits.
    Acknowledgements,
    /// A required copy is not in step; look again later.
    Agreement,
}

impl Settlement {
    /// What holds for both.
    #[must_use]
    pub(super) fn worse(self, other: Self) -> Self {
        if self == Self::Agreement { self } else { other }
    }
}
