//! A budget of memory for the bodies of requests and responses: one bound for all, and a lower one
//! for each owner, such as a workspace.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::overloaded::Overloaded;

/// The bytes of each reservation that are not counted. Most bodies are smaller.
pub const UNCOUNTED: usize = 16 * 1024;

/// A budget of memory. Clones share it.
#[derive(Debug)]
pub struct MemoryBudget<K>(Arc<Shared<K>>);

#[derive(Debug)]
struct Shared<K> {
    limit: usize,
    limit_each: usize,
    used: Mutex<Used<K>>,
}

/// The reserved bytes.
#[derive(Debug)]
struct Used<K> {
    all: usize,
    by_owner: HashMap<K, usize>,
}

impl<K> Clone for MemoryBudget<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Copy + Eq + Hash> MemoryBudget<K> {
    /// Creates a budget of so many bytes. One owner has at most half of it.
    pub fn new(bytes: usize) -> Self {
        let used = Mutex::new(Used { all: 0, by_owner: HashMap::new() });
        Self(Arc::new(Shared { limit: bytes, limit_each: bytes.div_ceil(2), used }))
    }

    /// Creates an empty reservation, for an owner if it is known.
    pub fn reservation(&self, owner: Option<K>) -> Reservation<K> {
        Reservation { budget: self.clone(), owner, counted: 0 }
    }

    /// Returns the reserved bytes, and the number of owners that have any.
    pub fn used(&self) -> (usize, usize) {
        let used = self.lock();
        (used.all, used.by_owner.len())
    }

    fn lock(&self) -> MutexGuard<'_, Used<K>> {
        self.0.used.lock()
    }
}

/// A part of the budget, released when it is dropped.
#[derive(Debug)]
pub struct Reservation<K: Copy + Eq + Hash> {
    budget: MemoryBudget<K>,
    owner: Option<K>,
    counted: usize,
}

impl<K: Copy + Eq + Hash> Reservation<K> {
    /// Changes the size of the reservation. Fails, and changes nothing, if the budget is exceeded.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Overloaded> {
        self.set(bytes, |all, own, shared| all <= shared.limit && own <= shared.limit_each)
    }

    /// Changes the size of the reservation, also beyond the budget. For responses that must be
    /// sent.
    pub fn force_resize(&mut self, bytes: usize) {
        self.set(bytes, |_, _, _| true).expect("every size is accepted");
    }

    /// Reserves more if `fits` accepts the new sums of all and of the owner, or releases some.
    fn set(
        &mut self,
        bytes: usize,
        fits: impl FnOnce(usize, usize, &Shared<K>) -> bool,
    ) -> Result<(), Overloaded> {
        let counted = bytes.saturating_sub(UNCOUNTED);
        let change = |used: usize| used.saturating_add(counted).saturating_sub(self.counted);
        let mut used = self.budget.lock();
        let all = change(used.all);
        let used_by = |owner| used.by_owner.get(&owner).copied().unwrap_or_default();
        let own = self.owner.map_or(0, |owner| change(used_by(owner)));
        if counted > self.counted && !fits(all, own, &self.budget.0) {
            return Err(Overloaded);
        }
        used.all = all;
        match self.owner {
            Some(owner) if own > 0 => drop(used.by_owner.insert(owner, own)),
            Some(owner) => drop(used.by_owner.remove(&owner)),
            None => {}
        }
        drop(used);
        self.counted = counted;
        Ok(())
    }
}

impl<K: Copy + Eq + Hash + Send + 'static> Reservation<K> {
    /// Attaches the reservation to bytes: it is released with their last clone.
    pub fn attach(self, bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static) -> Bytes {
        if self.counted == 0 {
            return bytes.into();
        }
        Bytes::from_owner(ReservedBytes { bytes, _reservation: self })
    }
}

impl<K: Copy + Eq + Hash> Drop for Reservation<K> {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.force_resize(0);
        }
    }
}

/// Bytes with their reservation.
struct ReservedBytes<B, K: Copy + Eq + Hash> {
    bytes: B,
    _reservation: Reservation<K>,
}

impl<B: AsRef<[u8]>, K: Copy + Eq + Hash> AsRef<[u8]> for ReservedBytes<B, K> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1_000_000;

    #[test]
    fn a_reservation_grows_and_shrinks_within_the_limit() {
        let budget = MemoryBudget::<u8>::new(LIMIT);
        let mut reservation = budget.reservation(None);
        reservation.resize(LIMIT + UNCOUNTED).unwrap();
        assert_eq!(reservation.resize(LIMIT + UNCOUNTED + 1), Err(Overloaded));
        assert_eq!(budget.used(), (LIMIT, 0));
        reservation.resize(UNCOUNTED + 1).unwrap();
        assert_eq!(budget.used(), (1, 0));
        drop(reservation);
        assert_eq!(budget.used(), (0, 0));
    }

    #[test]
    fn one_owner_reserves_at_most_half() {
        let budget = MemoryBudget::<u8>::new(LIMIT);
        let (mut one, mut other) = (budget.reservation(Some(1)), budget.reservation(Some(2)));
        one.resize(LIMIT / 2 + UNCOUNTED).unwrap();
        assert_eq!(budget.reservation(Some(1)).resize(1 + UNCOUNTED), Err(Overloaded));
        other.resize(LIMIT / 2 + UNCOUNTED).unwrap();
        assert_eq!(budget.used(), (LIMIT, 2));
        drop((one, other));
        assert_eq!(budget.used(), (0, 0));
    }
}
