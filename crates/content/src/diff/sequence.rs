//! The longest common subsequence of two sequences, within a bound on work.
//!
//! This is the linear-space algorithm of Myers ("An O(ND) Difference Algorithm and its
//! Variations", 1986). A search that reaches its limit is split at its furthest point, so the time
//! is linear and the result may not be the shortest.
//!
//! Libraries bound each search, not all of them. gix-imara-diff 0.3 takes 37 s for two texts of
//! one-letter words of 1 MiB each, and this search 0.5 s (both on the same machine, see
//! `benches/speed.rs`).

use super::steps::{EqualRun, index};

/// The mark for a diagonal or an element that isn't reached.
const NONE: usize = usize::MAX;
const UNMATCHED: u32 = u32::MAX;

/// The lowest limit on the edits that a search explores, once the budget is spent.
const SEARCH_LIMIT_MIN: usize = 4;
const SEARCH_LIMIT_MAX: usize = 1_000;

/// The work that the searches of a diff may still do, in advances of a diagonal.
pub(super) struct SearchBudget(pub(super) usize);

impl SearchBudget {
    /// Returns the limit on the edits that a search explores. The work of a search is about the
    /// product of the limit and the length.
    fn search_limit(&self, len: usize) -> usize {
        (self.0 / len.max(1)).clamp(SEARCH_LIMIT_MIN, SEARCH_LIMIT_MAX).min(len)
    }
}

/// Returns the equal runs of two sequences in ascending order. Elements are ids below `ids`.
pub(super) fn equal_runs(
    before: &[u32],
    after: &[u32],
    ids: usize,
    budget: &mut SearchBudget,
) -> Vec<EqualRun> {
    let prefix = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let (old, new) = (&before[prefix..], &after[prefix..]);
    let suffix = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - suffix], &new[..new.len() - suffix]);
    let mut runs = Vec::new();
    push(&mut runs, 0, 0, prefix);
    if old.len().min(new.len()) > 0 && old.len().max(new.len()) > 1 {
        let (old_at, new_at) = (shared(old, new, ids), shared(new, old, ids));
        let old_ids: Vec<u32> = old_at.iter().map(|&at| old[at as usize]).collect();
        let new_ids: Vec<u32> = new_at.iter().map(|&at| new[at as usize]).collect();
        let matches = if old_ids == new_ids {
            (0..index(new_ids.len())).collect()
        } else {
            search(&old_ids, &new_ids, budget)
        };
        for (old, new) in old_at.iter().zip(matches).filter(|(_, new)| *new != UNMATCHED) {
            let new = new_at[new as usize];
            push(&mut runs, prefix + *old as usize, prefix + new as usize, 1);
        }
    }
    push(&mut runs, before.len() - suffix, after.len() - suffix, suffix);
    runs
}

/// Returns the match of each element of the first sequence.
fn search(old: &[u32], new: &[u32], budget: &mut SearchBudget) -> Vec<u32> {
    let mut search = SequenceSearch::new(budget.search_limit(old.len() + new.len()));
    let matches = search.run(old, new);
    budget.0 = budget.0.saturating_sub(search.work);
    matches
}

/// Appends a run, or extends the last one.
fn push(runs: &mut Vec<EqualRun>, before: usize, after: usize, len: usize) {
    let run = EqualRun { before: index(before), after: index(after), len: index(len) };
    match runs.last_mut() {
        Some(last)
            if last.before + last.len == run.before && last.after + last.len == run.after =>
        {
            last.len += run.len;
        }
        _ if len > 0 => runs.push(run),
        _ => {}
    }
}

/// Returns the positions of the elements that also occur in the other sequence.
fn shared(sequence: &[u32], other: &[u32], ids: usize) -> Vec<u32> {
    let mut occurs = vec![false; ids];
    for &id in other {
        occurs[id as usize] = true;
    }
    (0..index(sequence.len())).filter(|&at| occurs[sequence[at as usize] as usize]).collect()
}

/// The furthest positions in the first sequence that a number of edits reaches, by diagonal.
struct Frontier(Vec<usize>);

/// The boundaries of a search: the lengths of both sequences, and the index of the diagonal of
/// their starts.
#[derive(Clone, Copy)]
struct Bounds {
    old_len: usize,
    new_len: usize,
    origin: usize,
}

impl Frontier {
    /// Forgets the diagonals within `edits` of the origin.
    fn reset(&mut self, origin: usize, edits: usize) {
        self.0[origin - edits - 1..=origin + edits + 1].fill(NONE);
    }

    /// Advances each diagonal by one edit. Returns the point at which it meets the frontier from
    /// the other end.
    fn advance(
        &mut self,
        edits: usize,
        bounds: Bounds,
        other: &Self,
        equal: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, usize)> {
        let Bounds { old_len, new_len, origin } = bounds;
        let lowest = origin - edits + 2 * edits.saturating_sub(new_len);
        let highest = origin + edits - 2 * edits.saturating_sub(old_len);
        for diagonal in (lowest..=highest).step_by(2) {
            let delete = self.0[diagonal - 1];
            let insert = self.0[diagonal + 1];
            let deleted = (delete < old_len).then(|| delete + 1);
            let inserted =
                (insert != NONE && insert + origin - diagonal <= new_len).then_some(insert);
            let start = if edits == 0 { Some(0) } else { deleted.max(inserted) };
            let Some(mut old) = start else {
                self.0[diagonal] = NONE;
                continue;
            };
            let mut new = old + origin - diagonal;
            while old < old_len && new < new_len && equal(old, new) {
                old += 1;
                new += 1;
            }
            self.0[diagonal] = old;
            let opposite = (2 * origin + old_len).checked_sub(new_len + diagonal);
            let met = opposite.and_then(|opposite| other.0.get(opposite));
            if met.is_some_and(|&met| met != NONE && old + met >= old_len) {
                return Some((old, new));
            }
        }
        None
    }

    /// Returns the point with the largest sum of both positions.
    fn furthest(&self, edits: usize, origin: usize) -> (usize, usize) {
        let diagonals = (origin - edits..=origin + edits).step_by(2);
        let reached = diagonals.filter(|&diagonal| self.0[diagonal] != NONE);
        let points = reached.map(|diagonal| {
            let old = self.0[diagonal];
            (old, old + origin - diagonal)
        });
        points.max_by_key(|(old, new)| old + new).unwrap_or_default()
    }
}

/// A search for the common subsequence.
struct SequenceSearch {
    forward: Frontier,
    backward: Frontier,
    limit: usize,
    /// The advances of a diagonal so far.
    work: usize,
}

impl SequenceSearch {
    fn new(limit: usize) -> Self {
        let frontier = || Frontier(vec![NONE; 2 * limit + 6]);
        Self { forward: frontier(), backward: frontier(), limit, work: 0 }
    }

    /// Returns the match of each element of the first sequence.
    fn run(&mut self, old: &[u32], new: &[u32]) -> Vec<u32> {
        let mut matches = vec![UNMATCHED; old.len()];
        let mut boxes = vec![(0..old.len(), 0..new.len())];
        while let Some((mut olds, mut news)) = boxes.pop() {
            while !olds.is_empty() && !news.is_empty() && old[olds.start] == new[news.start] {
                matches[olds.start] = index(news.start);
                olds.start += 1;
                news.start += 1;
            }
            while !olds.is_empty() && !news.is_empty() && old[olds.end - 1] == new[news.end - 1] {
                olds.end -= 1;
                news.end -= 1;
                matches[olds.end] = index(news.end);
            }
            if olds.is_empty() || news.is_empty() {
                continue;
            }
            let (x, y) = self.split(&old[olds.clone()], &new[news.clone()]);
            let (middle_old, middle_new) = (olds.start + x, news.start + y);
            if (x, y) != (0, 0) && (middle_old, middle_new) != (olds.end, news.end) {
                boxes.push((middle_old..olds.end, middle_new..news.end));
                boxes.push((olds.start..middle_old, news.start..middle_new));
            }
        }
        matches
    }

    /// Returns the point at which a shortest edit path divides, or the furthest point from either
    /// end when the limit is reached.
    fn split(&mut self, old: &[u32], new: &[u32]) -> (usize, usize) {
        let (old_len, new_len) = (old.len(), new.len());
        let limit = self.limit.min(old_len + new_len);
        let bounds = Bounds { old_len, new_len, origin: self.limit + 2 };
        self.forward.reset(bounds.origin, limit + 1);
        self.backward.reset(bounds.origin, limit + 1);
        for edits in 0..=limit {
            self.work += 2 * (edits + 1);
            let equal = |x: usize, y: usize| old[x] == new[y];
            if let Some(point) = self.forward.advance(edits, bounds, &self.backward, equal) {
                return point;
            }
            let equal = |x: usize, y: usize| old[old_len - 1 - x] == new[new_len - 1 - y];
            if let Some((x, y)) = self.backward.advance(edits, bounds, &self.forward, equal) {
                return (old_len - x, new_len - y);
            }
        }
        let forward = self.forward.furthest(limit, bounds.origin);
        let backward = self.backward.furthest(limit, bounds.origin);
        if forward.0 + forward.1 >= backward.0 + backward.1 {
            forward
        } else {
            (old_len - backward.0, new_len - backward.1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the length of the longest common subsequence, in quadratic time.
    fn longest(before: &[u32], after: &[u32]) -> u32 {
        let mut best = vec![vec![0; after.len() + 1]; before.len() + 1];
        for (x, old) in before.iter().enumerate().rev() {
            for (y, new) in after.iter().enumerate().rev() {
                best[x][y] = if old == new {
                    1 + best[x + 1][y + 1]
                } else {
                    u32::max(best[x + 1][y], best[x][y + 1])
                };
            }
        }
        best[0][0]
    }

    /// Checks that runs are equal and ascending. Returns their total length.
    fn total(runs: &[EqualRun], before: &[u32], after: &[u32]) -> u32 {
        let (mut old_end, mut new_end) = (0, 0);
        for run in runs {
            assert!(run.len > 0 && run.before >= old_end && run.after >= new_end);
            (old_end, new_end) = (run.before + run.len, run.after + run.len);
            let old = &before[run.before as usize..old_end as usize];
            assert_eq!(old, &after[run.after as usize..new_end as usize]);
        }
        runs.iter().map(|run| run.len).sum()
    }

    #[test]
    fn runs_are_the_longest_within_the_budget() {
        let mut state = 1_u64;
        let mut below = move |end: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from(state >> 33).expect("31 bits") % end
        };
        for _ in 0..5_000 {
            let ids = 2 + below(8);
            let mut sequence = || (0..below(40)).map(|_| below(ids)).collect::<Vec<u32>>();
            let (before, after) = (sequence(), sequence());
            let runs = |work| equal_runs(&before, &after, ids as usize, &mut SearchBudget(work));
            assert_eq!(total(&runs(1_000_000), &before, &after), longest(&before, &after));
            total(&runs(0), &before, &after);
        }
    }
}
