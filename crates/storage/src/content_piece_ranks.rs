//! How many pieces stand before a place, so that a page deep in a list is found without walking there.
//!
//! [`Ranks`] has a boundary at every few hundredth piece of a list, and how many lie between two of them. It is made by
//! one walk over the list's index, and from then on kept right by the events that have come since: whatever adds,
//! removes or moves a piece is an event that says where from and where to. Writers do nothing for it.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use galley_domain::event::EventType;
use galley_domain::{ContentGroupId, Timestamp, WorkspaceId};
use serde::Deserialize;

use crate::content_piece_list::Position;
use crate::error::{Error, Result};
use crate::events::LAST;
use crate::row::Row;
use crate::tx::Tx;
use crate::value::{Value, params};

/// How many pieces lie between two boundaries, to begin with.
const BUCKET: i64 = 500;

/// From this many on it is worth while to make the boundaries anew.
const BUCKET_MAX: i64 = 8 * BUCKET;

/// More events than this take longer to read than the list to walk over.
const EVENTS_MAX: i64 = 5_000;

/// After this time they are made anew, whatever has happened.
const AGE_MAX_MS: i64 = 10 * 60 * 1_000;

/// A list of pieces in their own order: all of the workspace, or those directly in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RankedList {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Directly in it.
    pub group: Option<ContentGroupId>,
}

/// How many pieces stand before a place in a list, as of one of the workspace's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks {
    /// By the last key that counts to it: how many pieces there are after the boundary before. What is after the last
    /// boundary stands under the greatest of all keys.
    buckets: BTreeMap<String, i64>,
    sequence: i64,
    made_at: Timestamp,
}

/// Greater than every key.
const END: &str = "~";

/// How a piece came, went, or moved.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    sequence: i64,
    /// Where it was: in which group, by which key. A key that nobody knows any more is empty.
    before: Option<(ContentGroupId, String)>,
    after: Option<(ContentGroupId, String)>,
}

impl Ranks {
    fn new(
        boundaries: impl IntoIterator<Item = String>,
        total: i64,
        sequence: i64,
        made_at: Timestamp,
    ) -> Self {
        let mut buckets: BTreeMap<_, _> = boundaries.into_iter().map(|key| (key, BUCKET)).collect();
        let counted: i64 = buckets.values().sum();
        buckets.insert(END.to_owned(), total - counted);
        Self { buckets, sequence, made_at }
    }

    /// From where on to read, and how many pieces to leave out there, to get to the piece that `offset` others stand
    /// before.
    pub fn find(&self, offset: i64, descending: bool) -> (Option<Position>, i64) {
        let mut rest = offset;
        let mut after = None;
        if descending {
            let mut buckets = self.buckets.iter().rev().peekable();
            while let Some((_, count)) = buckets.next() {
                let Some((next, _)) = buckets.peek().filter(|_| *count <= rest) else { break };
                rest -= count;
                // Smaller than this is the boundary itself, too.
                after = Some(format!("{next}0"));
            }
        } else {
            let mut buckets = self.buckets.iter().peekable();
            while let Some((key, count)) = buckets.next() {
                if *count > rest || buckets.peek().is_none() {
                    break;
                }
                rest -= count;
                after = Some(key.clone());
            }
        }
        (after.map(Position::Order), rest)
    }

    /// Takes a change in; says whether that was possible.
    fn apply(&mut self, list: RankedList, change: &Change) -> bool {
        let of_list = |place: &Option<(ContentGroupId, String)>| {
            let place =
                place.as_ref().filter(|(group, _)| list.group.is_none_or(|own| own == *group));
            place.map(|(_, key)| key.clone())
        };
        let (before, after) = (of_list(&change.before), of_list(&change.after));
        let is_known = before.as_ref().is_none_or(|key| !key.is_empty());
        is_known
            && before.is_none_or(|key| self.count(&key, -1))
            && after.is_none_or(|key| self.count(&key, 1))
    }

    fn count(&mut self, key: &str, by: i64) -> bool {
        let Some((_, count)) = self.buckets.range_mut::<str, _>((Included(key), Unbounded)).next()
        else {
            return false;
        };
        *count += by;
        (0..=BUCKET_MAX).contains(count)
    }
}

/// What was known of a list, as it is now; nothing, if it has to be made anew.
///
/// On SQLite it is of the transaction's moment. On PostgreSQL what is committed between this and a statement after
/// it may put a page off by as many pieces.
pub async fn bring_up(
    tx: &Tx<'_>,
    list: RankedList,
    known: Arc<Ranks>,
    now: Timestamp,
) -> Result<Option<Arc<Ranks>>> {
    if !(0..AGE_MAX_MS).contains(&(now.ms() - known.made_at.ms())) {
        return Ok(None);
    }
    let changes = changes_after(tx, list.workspace, known.sequence).await?;
    let Some(latest) = changes.last() else { return Ok(Some(known)) };
    let has_gap = changes[0].sequence != known.sequence + 1;
    if has_gap || changes.len() >= usize::try_from(EVENTS_MAX).unwrap_or(usize::MAX) {
        return Ok(None);
    }
    let mut ranks = Ranks { sequence: latest.sequence, ..(*known).clone() };
    let is_right = changes.iter().all(|change| ranks.apply(list, change));
    Ok(is_right.then(|| Arc::new(ranks)))
}

/// Walks over a list, which takes a second for a million pieces.
pub async fn make(tx: &Tx<'_>, list: RankedList, now: Timestamp) -> Result<Ranks> {
    let mut params = params![list.workspace].to_vec();
    let group = match list.group {
        Some(group) => {
            params.push(Value::from(group));
            " AND p.content_group_id = ?2"
        }
        None => "",
    };
    // In one statement, so that all is of one moment.
    let sql = format!(
        "SELECT {LAST}, p.order_key FROM workspace_sequences s
         LEFT JOIN content_pieces p ON p.workspace_id = ?1{group}
         WHERE s.workspace_id = ?1 ORDER BY p.order_key"
    );
    let (mut sequence, mut total, mut boundaries) = (0, 0, Vec::new());
    let walk = |row: &Row<'_>| {
        if let Some(key) = row.opt_text(1)? {
            total += 1;
            if total % BUCKET == 0 {
                boundaries.push(key.to_owned());
            }
        }
        if total <= 1 {
            sequence = row.int(0)?;
        }
        Ok(())
    };
    tx.query(&sql, &params, walk).await?;
    Ok(Ranks::new(boundaries, total, sequence, now))
}

/// What came, went or moved after an event. An event that is about something else counts as one that changed nothing.
async fn changes_after(tx: &Tx<'_>, workspace: WorkspaceId, sequence: i64) -> Result<Vec<Change>> {
    let sql = "SELECT sequence, type, path_before, path_after, order_before, data FROM events
        WHERE workspace_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3";
    tx.query(sql, params![workspace, sequence, EVENTS_MAX], read_change).await
}

fn read_change(row: &Row<'_>) -> Result<Change> {
    let mut change = Change { sequence: row.int(0)?, before: None, after: None };
    let event_type = row.text(1)?;
    let added = event_type == EventType::ContentPieceAdded.as_str();
    let removed = event_type == EventType::ContentPieceRemoved.as_str();
    let mut moved_from = row.opt_text(4)?;
    // Older programs didn't keep it.
    if moved_from.is_none() && !added && !removed && row.opt_text(2)? != row.opt_text(3)? {
        moved_from = Some("");
    }
    let moved = event_type == EventType::ContentPieceUpdated.as_str() && moved_from.is_some();
    if !added && !removed && !moved {
        return Ok(change);
    }
    let Placed { order } = serde_json::from_str(row.text(5)?).map_err(Error::corrupt)?;
    let group = |column| -> Result<Option<ContentGroupId>> {
        let path = row.opt_text(column)?.unwrap_or_default();
        path.rsplit(',')
            .next()
            .filter(|id| !id.is_empty())
            .map(str::parse)
            .transpose()
            .map_err(Error::corrupt)
    };
    if !added {
        let key = moved_from.map_or_else(|| order.clone(), ToOwned::to_owned);
        change.before = group(2)?.map(|group| (group, key));
    }
    if !removed {
        change.after = group(3)?.map(|group| (group, order));
    }
    Ok(change)
}

/// Of an event's data, where the piece stands.
#[derive(Deserialize)]
struct Placed {
    order: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: RankedList = RankedList { workspace: WorkspaceId::new(1), group: None };
    const GROUP: ContentGroupId = ContentGroupId::new(2);

    fn key(number: i64) -> String {
        format!("{number:05}")
    }

    /// Of pieces with the keys 1 to `count`.
    fn ranks(count: i64) -> Ranks {
        let boundaries = (1..=count).filter(|number| number % BUCKET == 0).map(key);
        Ranks::new(boundaries, count, 0, Timestamp::from_ms(0))
    }

    /// The key of the piece that `offset` others stand before, found as a list would.
    fn piece_at(ranks: &Ranks, keys: &[String], offset: i64, descending: bool) -> Option<String> {
        let (after, rest) = ranks.find(offset, descending);
        let after = after.map(|position| match position {
            Position::Order(key) => key,
            other => panic!("{other:?}"),
        });
        let is_beyond = |key: &&String| match &after {
            None => true,
            Some(after) => {
                if descending {
                    *key < after
                } else {
                    *key > after
                }
            }
        };
        let rest = usize::try_from(rest).unwrap();
        assert!(rest < 10_000);
        if descending {
            keys.iter().rev().filter(is_beyond).nth(rest).cloned()
        } else {
            keys.iter().filter(is_beyond).nth(rest).cloned()
        }
    }

    fn assert_right(ranks: &Ranks, keys: &[String]) {
        for offset in (0..keys.len() + 3).step_by(37).chain(keys.len() - 2..keys.len() + 2) {
            let number = i64::try_from(offset).unwrap();
            assert_eq!(piece_at(ranks, keys, number, false).as_ref(), keys.get(offset), "{offset}");
            let from_end = keys.iter().rev().nth(offset);
            assert_eq!(
                piece_at(ranks, keys, number, true).as_ref(),
                from_end,
                "{offset} from the end"
            );
        }
    }

    #[test]
    fn a_place_is_found_by_its_number_from_either_end() {
        for count in [3, 499, 500, 501, 1_000, 7_777] {
            let keys: Vec<_> = (1..=count).map(key).collect();
            assert_right(&ranks(count), &keys);
        }
    }

    #[test]
    fn what_came_and_went_is_taken_in() {
        let mut keys: Vec<_> = (1..=3_000).map(key).collect();
        let mut ranks = ranks(3_000);
        let mut state = 7_u64;
        for sequence in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = usize::try_from(state >> 33).unwrap() % keys.len();
            let new = format!("{}{:05}", keys[index], state % 99_991 + 1);
            let place = |key: &String| Some((GROUP, key.clone()));
            let change = match sequence % 3 {
                0 => Change { sequence, before: None, after: place(&new) },
                1 => Change { sequence, before: place(&keys[index]), after: None },
                _ => Change { sequence, before: place(&keys[index]), after: place(&new) },
            };
            assert!(ranks.apply(LIST, &change));
            if change.before.is_some() {
                keys.remove(index);
            }
            if change.after.is_some() {
                keys.push(new);
                keys.sort();
            }
        }
        keys.dedup();
        assert_right(&ranks, &keys);
    }

    #[test]
    fn what_is_not_of_the_list_or_not_known_is_told() {
        let list = RankedList { group: Some(ContentGroupId::new(3)), ..LIST };
        let mut known = ranks(3_000);
        let before = known.clone();
        let change =
            Change { sequence: 1, before: Some((GROUP, key(1))), after: Some((GROUP, key(9))) };
        assert!(known.apply(list, &change));
        assert_eq!(known, before);
        let unknown = Change { sequence: 1, before: Some((GROUP, String::new())), after: None };
        assert!(!known.apply(LIST, &unknown));
    }
}
