//! The alignment of blocks: equal ones first, then similar ones, then their children.

use foldhash::{HashMap, HashMapExt};

use super::sequence::{SearchBudget, equal_runs};
use super::similarity::Pairing;
use super::steps::{DiffStep, DiffSteps, index};
use super::subtrees::{SubtreeIds, subtree_ids};
use super::words::{TextblockWords, append_equal_runs};
use crate::tree::Tree;

/// The limit on the work of all searches for common subsequences, about.
const SEARCH_WORK: usize = 4_000_000;

/// The limit on comparisons of blocks, about.
const PAIRING_WORK: usize = 2_000_000;

/// Returns the steps between two trees.
pub(super) fn steps<'t>(before: &'t Tree, after: &'t Tree) -> DiffSteps<'t> {
    let ids = subtree_ids(before, after);
    let nodes = before.nodes().len() + after.nodes().len();
    let mut aligner = Aligner {
        pairing: Pairing {
            before,
            after,
            ids: &ids,
            part_size: (PAIRING_WORK / nodes).clamp(2, 64),
        },
        budget: SearchBudget(SEARCH_WORK),
        words: TextblockWords::default(),
        steps: DiffSteps { before, after, list: Vec::new(), runs: Vec::new() },
    };
    aligner.children(0, 0);
    aligner.steps
}

struct Aligner<'t, 'i> {
    pairing: Pairing<'i>,
    budget: SearchBudget,
    words: TextblockWords<'t>,
    steps: DiffSteps<'t>,
}

impl Aligner<'_, '_> {
    /// Appends the steps of the children of two nodes. The recursion is as deep as the trees are.
    fn children(&mut self, before: usize, after: usize) {
        let old: Vec<usize> = self.steps.before.children(before).collect();
        let new: Vec<usize> = self.steps.after.children(after).collect();
        let parent = self.steps.after.kind(after).node_type();
        let (mut old_at, mut new_at) = (0, 0);
        for (olds, news, equal) in regions(self.pairing.ids, &old, &new, &mut self.budget) {
            let (old_region, new_region) = (&old[old_at..olds], &new[new_at..news]);
            let (mut x, mut y) = (0, 0);
            for (old_pair, new_pair) in self.pairing.pair(parent, old_region, new_region) {
                self.replace(&old_region[x..old_pair], &new_region[y..new_pair]);
                self.change(old_region[old_pair], new_region[new_pair]);
                (x, y) = (old_pair + 1, new_pair + 1);
            }
            self.replace(&old_region[x..], &new_region[y..]);
            if equal > 0 {
                self.steps
                    .list
                    .push(DiffStep::Equal { after: index(new[news]), count: index(equal) });
            }
            (old_at, new_at) = (olds + equal, news + equal);
        }
    }

    fn replace(&mut self, old: &[usize], new: &[usize]) {
        self.steps.list.extend(old.iter().map(|&node| DiffStep::Delete { node: index(node) }));
        self.steps.list.extend(new.iter().map(|&node| DiffStep::Insert { node: index(node) }));
    }

    /// Appends the steps of two nodes that are paired.
    fn change(&mut self, old: usize, new: usize) {
        let (before, after) = (index(old), index(new));
        let trees = (self.steps.before, self.steps.after);
        if trees.1.kind(new).node_type().is_textblock() {
            let first_run = index(self.steps.runs.len());
            append_equal_runs(
                &mut self.words,
                trees,
                (old, new),
                &mut self.budget,
                &mut self.steps.runs,
            );
            let end_run = index(self.steps.runs.len());
            self.steps.list.push(DiffStep::Textblock { before, after, first_run, end_run });
        } else {
            self.steps.list.push(DiffStep::Enter { before, after });
            self.children(old, new);
            self.steps.list.push(DiffStep::Leave { after });
        }
    }
}

/// Returns the regions between equal siblings: the ends of both sides, and the number of equal
/// siblings that follow.
fn regions(
    ids: &SubtreeIds,
    old: &[usize],
    new: &[usize],
    budget: &mut SearchBudget,
) -> Vec<(usize, usize, usize)> {
    if let ([old], [new]) = (old, new)
        && ids.before[*old] != ids.after[*new]
    {
        return vec![(1, 1, 0)];
    }
    let mut local = HashMap::new();
    let mut renumber = |nodes: &[usize], ids: &[u32]| {
        let ids = nodes.iter().map(|&node| {
            let next = index(local.len());
            *local.entry(ids[node]).or_insert(next)
        });
        ids.collect::<Vec<u32>>()
    };
    let (old_ids, new_ids) = (renumber(old, &ids.before), renumber(new, &ids.after));
    let runs = equal_runs(&old_ids, &new_ids, local.len(), budget);
    let regions =
        runs.iter().map(|run| (run.before as usize, run.after as usize, run.len as usize));
    regions.chain([(old.len(), new.len(), 0)]).collect()
}
