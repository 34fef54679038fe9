//! Steps that change webhooks.

use serde_json::json;

use super::steps::Choice;
use super::workspace::{CheckResult, WebhookModel, WorkspaceModel, is_of_groups, text};

const EVENTS: [&str; 16] = [
    "contentPieceAdded",
    "contentPieceUpdated",
    "contentPieceRemoved",
    "contentGroupAdded",
    "contentGroupMoved",
    "contentGroupRemoved",
    "memberInvited",
    "memberAdded",
    "memberRemoved",
    "contentGroupChanged",
    "tagChanged",
    "variantChanged",
    "contentPiecePublished",
    "contentPieceUnpublished",
    "assetAdded",
    "assetRemoved",
];

impl WorkspaceModel<'_> {
    pub(super) async fn make_webhook(
        &mut self,
        event: u8,
        group: Option<Choice>,
        is_published: bool,
    ) -> CheckResult {
        // The upper half of the numbers also names the next event.
        let (place, several) = (usize::from(event), event >= 128);
        let event = EVENTS[place % EVENTS.len()];
        let mut events = vec![event];
        events.extend(several.then(|| EVENTS[(place + 1) % EVENTS.len()]));
        let group = group.map(|pick| self.pick_group(pick));
        let known = group.as_ref().is_none_or(|group| self.group(group).is_some());
        let needs_group = events.iter().any(|event| event.starts_with("contentPiece"));
        let whole = several && group.is_none();
        let is_of_current = |event: &str| event.ends_with("ublished") || event.starts_with("asset");
        let is_of_view = |event: &&str| !is_published || !is_of_current(event);
        let fits = events.iter().all(is_of_view);
        let right = known && fits && (group.is_some() || whole || !needs_group);
        let mut body = json!({"url": "http://127.0.0.1:9/", "name": "w", "event": event,
            "events": events, "wholeWorkspace": whole || group.is_none() && !needs_group,
            "view": if is_published { "published" } else { "current" }});
        if let Some(group) = &group {
            body["metadata"] = json!({"contentGroupId": group});
        }
        let made = self.post("/webhooks", &body, if right { 201 } else { 400 }).await?;
        if right {
            let id = text(&made["id"]);
            let group = group.filter(|_| events.iter().any(|event| is_of_groups(event)));
            self.webhooks.push(WebhookModel {
                id,
                events,
                group,
                is_published,
                enabled: true,
                lost_group: false,
                gets: Vec::new(),
            });
        }
        Ok(())
    }

    pub(super) async fn enable_webhook(&mut self, webhook: Choice, enabled: bool) -> CheckResult {
        let id = self.pick_webhook(webhook);
        let found = self.webhooks.iter().position(|one| one.id == id);
        // Webhooks of deleted groups are skipped, as they cannot be enabled.
        let has_group = |at: usize| {
            let group = self.webhooks[at].group.as_ref();
            group.is_none_or(|group| self.group(group).is_some())
        };
        if found.is_none_or(has_group) {
            let body = json!({"id": id, "enabled": enabled});
            self.put("/webhooks", &body, if found.is_some() { 204 } else { 404 }).await?;
            if let Some(at) = found {
                self.webhooks[at].enabled = enabled;
                self.webhooks[at].lost_group &= !enabled;
            }
        }
        Ok(())
    }

    pub(super) async fn delete_webhook(&mut self, webhook: Choice) -> CheckResult {
        let id = self.pick_webhook(webhook);
        let exists = self.webhooks.iter().any(|one| one.id == id);
        self.delete(&format!("/webhooks?id={id}"), if exists { 204 } else { 404 }).await?;
        self.webhooks.retain(|one| one.id != id);
        if exists {
            self.deleted.push(id);
        }
        Ok(())
    }
}
