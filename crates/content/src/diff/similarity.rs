//! Pairs the blocks of a replaced region, so that an edited block is a change of it.
//!
//! Two blocks are similar if they share many words or children. The search is exact within small
//! parts of the region, so its cost is linear.

use super::steps::index;
use super::subtrees::SubtreeIds;
use crate::node::NodeKind;
use crate::schema::NodeType;
use crate::tree::Tree;

/// The bytes of text that a textblock is compared by.
const TEXTBLOCK_BYTES: usize = 4096;

/// The bytes of text that a container is compared by. Containers nest, so it is lower.
const CONTAINER_BYTES: usize = 256;

/// The limit on words that a block is compared by, the ones with the lowest hashes.
const FEATURES_MAX: usize = 48;

/// The limit on children that a container is compared by.
const CHILDREN_MAX: usize = 32;

/// The lowest score of two similar blocks, if 1,000 is the score of equal words.
const SIMILAR_MIN: u32 = 400;

/// The lowest score of two similar blocks of different types.
const SIMILAR_TYPE_CHANGE_MIN: u32 = 600;

/// The score of two blocks that are paired for their place.
const PLACE_SCORE: u32 = 1;

/// The two trees, and the size of the parts of a region.
#[derive(Clone, Copy)]
pub(super) struct Pairing<'t> {
    pub(super) before: &'t Tree,
    pub(super) after: &'t Tree,
    pub(super) ids: &'t SubtreeIds,
    /// The square root of the limit on comparisons within a part.
    pub(super) part_size: usize,
}

/// A block to pair: its type, and the hashes of its words and children in ascending order.
struct PairCandidate {
    node_type: NodeType,
    features: Vec<u32>,
    /// An equal source makes two images similar.
    is_image: bool,
}

impl Pairing<'_> {
    /// Pairs the deleted with the inserted siblings of a region. Returns their indexes in order.
    pub(super) fn pair(
        &self,
        parent: NodeType,
        old: &[usize],
        new: &[usize],
    ) -> Vec<(usize, usize)> {
        if old.is_empty() || new.is_empty() {
            return Vec::new();
        }
        let rules =
            PairRules { is_only: old.len() == 1 && new.len() == 1, is_in_item: is_item(parent) };
        if rules.is_only {
            let types = (self.before.kind(old[0]).node_type(), self.after.kind(new[0]).node_type());
            if rules.are_in_place(types.0, types.1) {
                return vec![(0, 0)];
            }
        }
        let limit = self.part_size * self.part_size;
        let parts = (old.len() * new.len()).div_ceil(limit).isqrt().max(1);
        let mut pairs = Vec::new();
        for part in 0..parts {
            let range = |len: usize| len * part / parts..len * (part + 1) / parts;
            let (olds, news) = (range(old.len()), range(new.len()));
            let old_part: Vec<PairCandidate> = old[olds.clone()]
                .iter()
                .map(|&node| candidate(self.before, &self.ids.before, node))
                .collect();
            let new_part: Vec<PairCandidate> = new[news.clone()]
                .iter()
                .map(|&node| candidate(self.after, &self.ids.after, node))
                .collect();
            let found = best_pairs(&old_part, &new_part, rules);
            pairs.extend(found.into_iter().map(|(x, y)| (olds.start + x, news.start + y)));
        }
        pairs
    }
}

/// Returns the pairs in ascending order with the largest sum of scores, by dynamic programming.
fn best_pairs(
    old: &[PairCandidate],
    new: &[PairCandidate],
    rules: PairRules,
) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut scores = vec![0; old.len() * new.len()];
    let mut best = vec![0_u32; (old.len() + 1) * width];
    for x in (0..old.len()).rev() {
        for y in (0..new.len()).rev() {
            let own = rules.score(&old[x], &new[y]);
            scores[x * new.len() + y] = own;
            let paired = if own > 0 { own + best[(x + 1) * width + y + 1] } else { 0 };
            best[x * width + y] =
                paired.max(best[(x + 1) * width + y]).max(best[x * width + y + 1]);
        }
    }
    let (mut x, mut y, mut pairs) = (0, 0, Vec::new());
    while x < old.len() && y < new.len() {
        let (here, own) = (best[x * width + y], scores[x * new.len() + y]);
        if own > 0 && here == own + best[(x + 1) * width + y + 1] {
            pairs.push((x, y));
            x += 1;
            y += 1;
        } else if here == best[(x + 1) * width + y] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

/// The rules for the score of a pair.
#[derive(Clone, Copy)]
struct PairRules {
    /// True if the region has one block on either side.
    is_only: bool,
    is_in_item: bool,
}

impl PairRules {
    /// Returns true if two blocks are paired for their place, as cells are. An edited block that
    /// is the only one of its list or item is a change, too.
    fn are_in_place(self, old: NodeType, new: NodeType) -> bool {
        let group = TypeGroup::of(old);
        let is_only_container = !old.is_textblock() && !old.is_leaf();
        group == TypeGroup::of(new)
            && (group == TypeGroup::Cell
                || (self.is_only && old == new && (is_only_container || self.is_in_item)))
    }

    /// Returns the score of a pair, which is 0 for two blocks that can't be paired.
    fn score(self, old: &PairCandidate, new: &PairCandidate) -> u32 {
        if TypeGroup::of(old.node_type) != TypeGroup::of(new.node_type) {
            return 0;
        }
        let (mut x, mut y, mut shared) = (0, 0, 0);
        while let (Some(a), Some(b)) = (old.features.get(x), new.features.get(y)) {
            shared += u32::from(a == b);
            x += usize::from(a <= b);
            y += usize::from(b <= a);
        }
        let all = index(old.features.len() + new.features.len());
        let score = (2000 * shared).checked_div(all).unwrap_or(0);
        let is_same_type = old.node_type == new.node_type;
        let min = if is_same_type { SIMILAR_MIN } else { SIMILAR_TYPE_CHANGE_MIN };
        let min = if old.is_image { 1 } else { min };
        if score >= min {
            // A pair of the same type is preferred.
            score + PLACE_SCORE + u32::from(is_same_type)
        } else if self.are_in_place(old.node_type, new.node_type) {
            PLACE_SCORE
        } else {
            0
        }
    }
}

/// The types that a block may change between.
#[derive(PartialEq, Eq)]
enum TypeGroup {
    Textblock,
    List,
    Item,
    Cell,
    Other(NodeType),
}

impl TypeGroup {
    fn of(node_type: NodeType) -> Self {
        match node_type {
            NodeType::Paragraph | NodeType::Heading | NodeType::CodeBlock => Self::Textblock,
            NodeType::BulletList | NodeType::OrderedList | NodeType::TaskList => Self::List,
            NodeType::ListItem | NodeType::TaskItem => Self::Item,
            NodeType::TableCell | NodeType::TableHeader => Self::Cell,
            other => Self::Other(other),
        }
    }
}

fn is_item(parent: NodeType) -> bool {
    matches!(TypeGroup::of(parent), TypeGroup::Item | TypeGroup::Cell)
}

fn candidate(tree: &Tree, ids: &[u32], node: usize) -> PairCandidate {
    let node_type = tree.kind(node).node_type();
    let mut features = Vec::new();
    if let NodeKind::Image(image) = tree.kind(node) {
        let src = tree.image(image).src.as_ref().map(ToString::to_string).unwrap_or_default();
        features.push(src.bytes().fold(HASH_START, add_byte));
        return PairCandidate { node_type, features, is_image: true };
    }
    let is_textblock = node_type.is_textblock();
    let mut bytes_left = if is_textblock { TEXTBLOCK_BYTES } else { CONTAINER_BYTES };
    for descendant in node + 1..tree.end(node) {
        let NodeKind::Text { start, end, .. } = tree.kind(descendant) else { continue };
        let text = tree.text(start, end);
        let text = &text[..text.floor_char_boundary(bytes_left)];
        add_words(text, &mut features);
        bytes_left -= text.len();
        if text.len() < (end - start) as usize || bytes_left == 0 {
            break;
        }
    }
    keep_lowest(&mut features);
    if !is_textblock {
        // Ids have a range of their own, so they rarely equal the hash of a word.
        features.extend(tree.children(node).take(CHILDREN_MAX).map(|child| ids[child] | 1 << 31));
        features.sort_unstable();
        features.dedup();
    }
    PairCandidate { node_type, features, is_image: false }
}

/// Sorts the hashes and keeps the lowest ones. Two blocks that share words share many of these.
fn keep_lowest(features: &mut Vec<u32>) {
    features.sort_unstable();
    features.dedup();
    features.truncate(FEATURES_MAX);
}

/// The start of a hash of FNV-1a.
const HASH_START: u32 = 0x811c_9dc5;

fn add_byte(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// Appends the hash of each word. A character of a script without spaces is a word.
fn add_words(text: &str, features: &mut Vec<u32>) {
    let mut word = None;
    for c in text.chars() {
        let is_alone = c >= '\u{e00}';
        if is_alone || !c.is_alphanumeric() {
            features.extend(word.take().map(finish_hash));
        }
        if c.is_alphanumeric() {
            let mut bytes = [0; 4];
            let hash = c.encode_utf8(&mut bytes).bytes().fold(word.unwrap_or(HASH_START), add_byte);
            if is_alone {
                features.push(finish_hash(hash));
            } else {
                word = Some(hash);
            }
        }
    }
    features.extend(word.map(finish_hash));
}

/// Mixes a hash, and clears the bit of the ids of children.
fn finish_hash(hash: u32) -> u32 {
    ((hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d) ^ (hash >> 12)) & !(1 << 31)
}
