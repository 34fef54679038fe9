//! The retention of revisions.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::VariantId;
use crate::time::Timestamp;

/// The milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The time for which revisions are kept. Those with a note, those
/// that were published and the latest one are kept for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevisionRetention {
    /// The days for which all revisions are kept.
    pub all_days: u32,
    /// The days for which the last revision of each day is kept, in UTC.
    pub daily_days: u32,
}

impl Default for RevisionRetention {
    fn default() -> Self {
        Self { all_days: 30, daily_days: 365 }
    }
}

/// A revision, as far as its retention needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevisionAge {
    /// The number.
    pub number: i64,
    /// The variant; `None` for the piece itself.
    pub variant: Option<VariantId>,
    /// The time of the change.
    pub created_at: Timestamp,
    /// True if it is kept for ever, as it has a note or was published.
    pub is_kept: bool,
    /// True if it is kept for the states of others only.
    pub is_hidden: bool,
}

/// The revisions of a piece that a retention ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpiredRevisions {
    /// The revisions that are removed.
    pub removed: BTreeSet<i64>,
    /// The revisions that are hidden. A later revision of another part is kept, and its state
    /// includes their change.
    pub hidden: BTreeSet<i64>,
}

impl RevisionRetention {
    /// Returns the start of the time for which all revisions are kept.
    pub fn all_since(self, now: Timestamp) -> Timestamp {
        Timestamp::from_ms(now.ms() - i64::from(self.all_days) * DAY_MS)
    }

    /// Returns the revisions of a piece that expire. `revisions` are all of them, latest last.
    pub fn expired(self, revisions: &[RevisionAge], now: Timestamp) -> ExpiredRevisions {
        let all_since = self.all_since(now);
        let daily_since = now.ms() - i64::from(self.daily_days) * DAY_MS;
        let day = |revision: &RevisionAge| revision.created_at.ms().div_euclid(DAY_MS);
        let shown: Vec<_> = revisions.iter().filter(|revision| !revision.is_hidden).collect();
        let mut kept = BTreeSet::new();
        for (index, revision) in shown.iter().enumerate() {
            let next = shown.get(index + 1);
            let is_last_of_day = next.is_none_or(|next| day(next) != day(revision));
            let is_kept = next.is_none()
                || revision.is_kept
                || revision.created_at >= all_since
                || (is_last_of_day && revision.created_at.ms() >= daily_since);
            if is_kept {
                kept.insert(revision.number);
            }
        }
        // The last change of each part at a kept revision belongs to its state.
        let mut needed = BTreeSet::new();
        let mut last_of_parts = BTreeMap::new();
        for revision in revisions {
            last_of_parts.insert(revision.variant, revision.number);
            if kept.contains(&revision.number) {
                needed.extend(last_of_parts.values().copied());
            }
        }
        // No later revision of their part could contain their values.
        needed.extend(last_of_parts.into_values());
        let mut expired = ExpiredRevisions::default();
        for revision in revisions.iter().filter(|revision| !kept.contains(&revision.number)) {
            if !needed.contains(&revision.number) {
                expired.removed.insert(revision.number);
            } else if !revision.is_hidden {
                expired.hidden.insert(revision.number);
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000 * DAY_MS + 7);

    /// Creates a revision of a day before now, at an hour.
    fn revision(number: i64, variant: Option<u128>, days: i64, hour: i64) -> RevisionAge {
        let created_at = Timestamp::from_ms((1_000 - days) * DAY_MS + hour * DAY_MS / 24);
        let variant = variant.map(VariantId::new);
        RevisionAge { number, variant, created_at, is_kept: false, is_hidden: false }
    }

    fn expired(revisions: &[RevisionAge]) -> (Vec<i64>, Vec<i64>) {
        let expired = RevisionRetention::default().expired(revisions, NOW);
        (expired.removed.into_iter().collect(), expired.hidden.into_iter().collect())
    }

    #[test]
    fn the_last_revision_of_each_day_is_kept_for_a_year() {
        let noted = RevisionAge { is_kept: true, ..revision(1, None, 500, 1) };
        let revisions = [
            noted,
            revision(2, None, 400, 1),
            revision(3, None, 364, 1),
            revision(4, None, 364, 2),
            revision(5, None, 31, 3),
            revision(6, None, 31, 4),
            revision(7, None, 29, 1),
            revision(8, None, 29, 2),
        ];
        assert_eq!(expired(&revisions), (vec![2, 3, 5], vec![]));
    }

    #[test]
    fn the_latest_revision_is_kept_for_ever() {
        assert_eq!(expired(&[revision(1, None, 900, 1)]), (vec![], vec![]));
        let two = [revision(1, None, 900, 1), revision(2, None, 900, 2)];
        assert_eq!(expired(&two), (vec![1], vec![]));
    }

    #[test]
    fn the_last_change_of_a_part_is_kept_although_it_is_hidden() {
        let hidden = RevisionAge { is_hidden: true, ..revision(3, None, 898, 1) };
        let revisions = [revision(1, None, 900, 1), revision(2, Some(1), 899, 1), hidden];
        assert_eq!(expired(&revisions), (vec![], vec![1]));
    }

    #[test]
    fn changes_of_other_parts_that_belong_to_a_kept_state_are_hidden() {
        let german = Some(1);
        let revisions = [
            revision(1, None, 40, 1),
            revision(2, german, 40, 2),
            revision(3, german, 40, 3),
            revision(4, None, 40, 4),
            revision(5, None, 40, 5),
            revision(6, german, 1, 1),
        ];
        assert_eq!(expired(&revisions), (vec![1, 2, 4], vec![3]));
        let mut hidden = revisions;
        hidden[2].is_hidden = true;
        assert_eq!(expired(&hidden), (vec![1, 2, 4], vec![]));
    }
}
