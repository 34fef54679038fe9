//! Steps that restore deleted resources or remove them for good.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use super::content_groups::DEPTH_LIMIT;
use super::steps::Choice;
use super::workspace::{
    CheckResult, GroupModel, PieceModel, ScheduleModel, WorkspaceModel, column, text,
};

/// A deleted piece, or a group with everything below it.
#[derive(Debug, Clone)]
pub(super) struct TrashModel {
    pub(super) id: String,
    pub(super) title: String,
    /// The group that contained it.
    pub(super) group: Option<String>,
    /// The deleted groups, each after its parent.
    pub(super) groups: Vec<GroupModel>,
    /// The deleted pieces in their order, each with its order key.
    pub(super) pieces: Vec<(String, PieceModel)>,
}

impl WorkspaceModel<'_> {
    /// Returns the order keys of all pieces.
    pub(super) async fn order_keys(&self) -> Result<BTreeMap<String, String>, TestCaseError> {
        let list = self.walk("/content-pieces/list?perPage=1000", "lastOrder", "order").await?;
        Ok(list.iter().map(|piece| (text(&piece["id"]), text(&piece["order"]))).collect())
    }

    /// Picks an entry of the trash.
    fn pick_entry(&self, pick: Choice) -> Option<usize> {
        (!self.trash.is_empty()).then(|| usize::from(pick) % self.trash.len())
    }

    pub(super) async fn purge(&mut self, entry: Choice) -> CheckResult {
        let Some(at) = self.pick_entry(entry) else { return Ok(()) };
        let entry = self.trash.remove(at);
        let is_group = entry.id.starts_with("cg_");
        let path = if is_group { "/content-groups" } else { "/content-pieces" };
        let path = format!("{path}?id={}&permanent=true", entry.id);
        self.delete(&path, 204).await?;
        self.delete(&path, 404).await.map(drop)
    }

    pub(super) async fn undelete(&mut self, entry: Choice, group: Option<Choice>) -> CheckResult {
        let requested = group.map(|pick| self.pick_group(pick));
        let Some(at) = self.pick_entry(entry) else {
            let body = json!({"id": self.deleted.last(), "contentGroupId": null});
            return self.post("/content-pieces/undelete", &body, 404).await.map(drop);
        };
        let entry = self.trash[at].clone();
        let target = requested.clone().or(entry.group.clone());
        let levels = target.as_ref().map_or(0, |target| self.path(target).len());
        let fits = entry.groups.is_empty() || levels + height(&entry.groups) <= DEPTH_LIMIT;
        let right = fits && target.as_ref().is_none_or(|target| self.group(target).is_some());
        let mut keys = self.order_keys().await?;
        let body = json!({"id": entry.id, "contentGroupId": requested});
        self.post("/content-pieces/undelete", &body, if right { 204 } else { 400 }).await?;
        if !right {
            return Ok(());
        }
        self.trash.remove(at);
        for mut group in entry.groups {
            if group.id == entry.id {
                group.parent.clone_from(&target);
            }
            let id = group.id.clone();
            self.groups.push(group);
            let path = self.path(&id);
            self.record_event("contentGroupAdded", &id, None, Some(path));
        }
        // Lists have the order of the creation.
        self.groups.sort_by(|one, other| one.id.cmp(&other.id));
        // The last piece is restored first. One whose position is taken is placed after it.
        for (key, mut piece) in entry.pieces.into_iter().rev() {
            let moves = piece.id == entry.id && target.as_ref() != Some(&piece.group);
            if moves {
                piece.group = target.clone().expect("a piece has a group");
            }
            self.leave_out_deleted(&mut piece);
            piece.authors[1].clone_from(&self.token_id);
            let place = self.pieces.iter().position(|other| keys[&other.id] > key);
            let place = place.filter(|_| !moves).unwrap_or(self.pieces.len());
            keys.insert(piece.id.clone(), key);
            let (id, path) = (piece.id.clone(), self.path(&piece.group));
            let is_published = piece.published.is_some();
            self.pieces.insert(place, piece);
            self.record_event("contentPieceAdded", &id, None, Some(path.clone()));
            if is_published {
                self.record_published_event("contentPieceAdded", &id, None, Some(path));
            }
        }
        Ok(())
    }

    /// Removes tags, members and variants that were deleted meanwhile, and the schedule, which a
    /// deletion cancels.
    fn leave_out_deleted(&self, piece: &mut PieceModel) {
        piece.schedule = ScheduleModel::default();
        let exists = |tag: &String| self.has_tags(std::slice::from_ref(tag));
        piece.tags.retain(exists);
        piece.members.retain(|member| self.members.iter().any(|one| one.id == *member));
        piece.overrides.retain(|id, _| self.variants.iter().any(|(known, _)| known == id));
        for tags in piece.overrides.values_mut().filter_map(|one| one.tags.as_mut()) {
            tags.retain(exists);
        }
    }

    /// Compares the list of the trash.
    pub(super) async fn check_trash(&self) -> CheckResult {
        let list = self.get("/content-pieces/trash?perPage=1000").await?;
        let mut found: Vec<_> = column(&list, "id")
            .into_iter()
            .zip(column(&list, "title"))
            .zip(list.as_array().unwrap())
            .map(|((id, title), entry)| (id, title, entry["pieces"].as_u64().unwrap()))
            .collect();
        found.sort();
        let entry = |one: &TrashModel| (one.id.clone(), one.title.clone(), one.pieces.len() as u64);
        let mut expected: Vec<_> = self.trash.iter().map(entry).collect();
        expected.sort();
        prop_assert_eq!(found, expected);
        Ok(())
    }
}

/// Returns the number of levels of an entry's groups.
fn height(groups: &[GroupModel]) -> usize {
    let mut levels: BTreeMap<&str, usize> = BTreeMap::new();
    for group in groups {
        let above = group.parent.as_deref().and_then(|parent| levels.get(parent));
        levels.insert(&group.id, 1 + above.copied().unwrap_or_default());
    }
    levels.into_values().max().unwrap_or_default()
}
