//! Steps that change content groups.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use super::steps::Choice;
use super::trash::TrashModel;
use super::workspace::{CheckResult, GroupModel, WorkspaceModel, text};

/// The maximum depth of groups.
pub(super) const DEPTH_LIMIT: usize = 32;

impl WorkspaceModel<'_> {
    pub(super) async fn make_group(&mut self, parent: Option<Choice>) -> CheckResult {
        let parent = parent.map(|pick| self.pick_group(pick));
        let right = parent.as_ref().is_none_or(|parent| {
            self.group(parent).is_some() && self.path(parent).len() < DEPTH_LIMIT
        });
        let body = json!({"name": "a group", "ancestor": parent});
        let made = self.post("/content-groups", &body, if right { 201 } else { 400 }).await?;
        if right {
            let (id, name) = (text(&made["id"]), "a group".to_owned());
            self.groups.push(GroupModel { id: id.clone(), name, parent });
            let path = self.path(&id);
            self.record_event("contentGroupAdded", &id, None, Some(path));
        }
        Ok(())
    }

    pub(super) async fn move_group(
        &mut self,
        group: Choice,
        parent: Option<Choice>,
    ) -> CheckResult {
        let id = self.pick_group(group);
        let parent = parent.map(|pick| self.pick_group(pick));
        let fits = parent.as_ref().is_none_or(|parent| {
            let path = self.path(parent);
            self.group(parent).is_some()
                && !path.contains(&id)
                && path.len() + self.height(&id) <= DEPTH_LIMIT
        });
        let stays = self.group(&id).is_some_and(|group| group.parent == parent);
        let expected = match (self.group(&id).is_some(), fits || stays) {
            (false, _) => 404,
            (true, false) => 400,
            (true, true) => 204,
        };
        self.put("/content-groups", &json!({"id": id, "ancestor": parent}), expected).await?;
        if expected == 204 && !stays {
            let before = self.path(&id);
            self.groups.iter_mut().find(|one| one.id == id).unwrap().parent = parent;
            let after = self.path(&id);
            self.record_event("contentGroupMoved", &id, Some(before), Some(after));
        }
        Ok(())
    }

    pub(super) async fn rename_group(&mut self, group: Choice, name: u8) -> CheckResult {
        let (id, name) = (self.pick_group(group), format!("group {name}"));
        let expected = if self.group(&id).is_some() { 204 } else { 404 };
        self.put("/content-groups", &json!({"id": id, "name": name}), expected).await?;
        if let Some(group) = self.groups.iter_mut().find(|one| one.id == id)
            && group.name != name
        {
            group.name = name;
            let path = self.path(&id);
            self.record_event("contentGroupChanged", &id, Some(path.clone()), Some(path));
        }
        Ok(())
    }

    pub(super) async fn delete_group(&mut self, group: Choice, recursive: bool) -> CheckResult {
        let id = self.pick_group(group);
        let has_contents = self.pieces.iter().any(|piece| piece.group == id)
            || self.groups.iter().any(|group| group.parent.as_deref() == Some(&id));
        let expected = match (self.group(&id).is_some(), has_contents && !recursive) {
            (false, _) => 404,
            (true, true) => 409,
            (true, false) => 204,
        };
        let keys = self.order_keys().await?;
        self.delete(&format!("/content-groups?id={id}&recursive={recursive}"), expected).await?;
        if expected == 204 { self.follow_deletion(&id, &keys).await } else { Ok(()) }
    }

    /// Applies a group's deletion with its contents to the model. Events must report contents
    /// before their group.
    async fn follow_deletion(&mut self, id: &str, keys: &BTreeMap<String, String>) -> CheckResult {
        let group = self.group(id).expect("it was there").clone();
        let mut entry = TrashModel {
            id: group.id.clone(),
            title: group.name,
            group: group.parent,
            groups: Vec::new(),
            pieces: Vec::new(),
        };
        let is_under = |group: &&GroupModel| self.path(&group.id).iter().any(|one| one == id);
        let under = self.groups.iter().filter(is_under).map(|group| group.id.clone());
        let under: Vec<String> = under.collect();
        let mut left: HashMap<(bool, String), (&'static str, Vec<String>)> = HashMap::new();
        for piece in self.pieces.iter().filter(|piece| under.contains(&piece.group)) {
            let removed = ("contentPieceRemoved", self.path(&piece.group));
            if piece.published.is_some() {
                left.insert((true, piece.id.clone()), removed.clone());
            }
            left.insert((false, piece.id.clone()), removed);
        }
        for group in &under {
            left.insert((false, group.clone()), ("contentGroupRemoved", self.path(group)));
        }
        for (is_published, event) in self.new_events().await? {
            let id = text(&event["data"]["id"]);
            let Some((kind, path)) = left.remove(&(is_published, id.clone())) else {
                return Err(TestCaseError::fail(format!("unexpected event: {event}")));
            };
            let has_contents = left.values().any(|(_, other)| other.contains(&id));
            prop_assert!(!has_contents, "{} is reported before its contents", id);
            // The restoration reports the groups in the other direction.
            let group = self.groups.iter().find(|group| group.id == id);
            entry.groups.splice(0..0, group.cloned());
            if is_published {
                self.record_published_event(kind, &id, Some(path), None);
            } else {
                self.record_event(kind, &id, Some(path), None);
            }
        }
        prop_assert!(left.is_empty(), "{:?} without an event", left);
        let pieces = self.pieces.iter().filter(|piece| under.contains(&piece.group));
        entry.pieces = pieces.map(|piece| (keys[&piece.id].clone(), piece.clone())).collect();
        self.trash.push(entry);
        self.pieces.retain(|piece| !under.contains(&piece.group));
        self.groups.retain(|group| !under.contains(&group.id));
        for webhook in &mut self.webhooks {
            if webhook.enabled && webhook.group.as_ref().is_some_and(|group| under.contains(group))
            {
                (webhook.enabled, webhook.lost_group) = (false, true);
            }
        }
        self.deleted.push(id.to_owned());
        Ok(())
    }
}
