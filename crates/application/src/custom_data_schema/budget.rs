//! The work that the validations of one request may take.

/// The limit on the work of a request. A unit takes about 8 ns, all of it 0.1 to 0.2 s.
pub const WORK_MAX: u64 = 1 << 24;

/// The work that is left to a request.
#[derive(Debug)]
pub struct WorkBudget {
    left: u64,
}

/// The error of a validation whose budget did not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Default for WorkBudget {
    fn default() -> Self {
        Self { left: WORK_MAX }
    }
}

impl WorkBudget {
    /// Returns the work done.
    pub fn used(&self) -> u64 {
        WORK_MAX - self.left
    }

    /// Returns true if no work is left.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Takes work from the budget. If it does not suffice, nothing is left.
    pub(super) fn charge(&mut self, work: u64) -> Result<(), Exhausted> {
        self.left = self.left.saturating_sub(work);
        if self.left == 0 { Err(Exhausted) } else { Ok(()) }
    }
}
