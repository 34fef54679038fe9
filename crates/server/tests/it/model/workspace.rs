//! The model of a workspace: its resources, its events, and the requests to it.

use std::collections::{BTreeMap, HashMap};

use galley_domain::{PermissionSet, Timestamp, WorkspaceId};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use reqwest::Method;
use serde_json::{Value, json};

use super::steps::Choice;
use super::trash::TrashModel;
use crate::service::{Service, TestWorkspace};

pub(super) type CheckResult = Result<(), TestCaseError>;

/// The body of the expected response.
type RequestResult = Result<Value, TestCaseError>;

/// The overrides of a piece in a variant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ModelOverrides {
    pub(super) title: Option<String>,
    pub(super) tags: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PieceModel {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) date: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) members: Vec<String>,
    pub(super) group: String,
    pub(super) overrides: BTreeMap<String, ModelOverrides>,
    /// The ids of the tokens that created it and changed it last.
    pub(super) authors: [String; 2],
    /// The index of the published state in its history.
    pub(super) published: Option<usize>,
    pub(super) schedule: ScheduleModel,
}

/// The schedule of a piece's publication.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ScheduleModel {
    pub(super) publish_at: Option<Timestamp>,
    /// The index of the state that is published then; `None` for the latest one.
    pub(super) publish_index: Option<usize>,
    pub(super) unpublish_at: Option<Timestamp>,
}

impl PieceModel {
    /// Returns the title and the tags, in a variant or without one.
    pub(super) fn shown(&self, variant: Option<&str>) -> (String, Vec<String>) {
        let overrides =
            variant.and_then(|variant| self.overrides.get(variant)).cloned().unwrap_or_default();
        (overrides.title.unwrap_or(self.title.clone()), overrides.tags.unwrap_or(self.tags.clone()))
    }
}

/// The state of a piece at a revision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PieceState {
    pub(super) title: String,
    pub(super) tags: Vec<String>,
    pub(super) overrides: BTreeMap<String, ModelOverrides>,
}

impl PieceState {
    pub(super) fn of(piece: &PieceModel) -> Self {
        let PieceModel { title, tags, overrides, .. } = piece.clone();
        Self { title, tags, overrides }
    }
}

#[derive(Debug, Clone)]
pub(super) struct GroupModel {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) parent: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct MemberModel {
    pub(super) id: String,
    pub(super) email: String,
    pub(super) role: String,
}

#[derive(Debug, Clone)]
pub(super) struct WebhookModel {
    pub(super) id: String,
    pub(super) events: Vec<&'static str>,
    pub(super) group: Option<String>,
    /// True if it has the published view.
    pub(super) is_published: bool,
    pub(super) enabled: bool,
    /// True if its group was deleted while it was enabled.
    pub(super) lost_group: bool,
    /// The sequence numbers of the events that it receives.
    pub(super) gets: Vec<i64>,
}

/// Returns true if a scope of groups limits the event.
pub(super) fn is_of_groups(event: &str) -> bool {
    event.starts_with("content") || event.starts_with("asset")
}

/// An event in the model.
#[derive(Debug, Clone)]
pub(super) struct ModelEvent {
    /// The type for the whole workspace.
    pub(super) event: &'static str,
    pub(super) id: String,
    pub(super) before: Option<Vec<String>>,
    pub(super) after: Option<Vec<String>>,
    /// True if the event of a piece belongs to the published view.
    pub(super) is_published: bool,
}

impl ModelEvent {
    /// Returns the event's type as seen in the scope of a group and its subtree, or of the whole
    /// workspace for `None`.
    pub(super) fn seen(&self, group: Option<&str>) -> Option<&'static str> {
        let Some(group) = group.filter(|_| is_of_groups(self.event)) else {
            return Some(self.event);
        };
        let holds = |path: &Option<Vec<String>>| {
            path.as_ref().is_some_and(|path| path.iter().any(|one| one == group))
        };
        match (self.event, holds(&self.before), holds(&self.after)) {
            (_, false, false) => None,
            ("contentPieceUpdated", true, false) => Some("contentPieceRemoved"),
            ("contentPieceUpdated", false, true) => Some("contentPieceAdded"),
            (event, ..) => Some(event),
        }
    }
}

/// The model of a workspace.
pub(super) struct WorkspaceModel<'s> {
    pub(super) service: &'s Service,
    pub(super) workspace: WorkspaceId,
    pub(super) token: String,
    pub(super) token_id: String,
    /// Another token of the same member, and its id. The steps use both in turn.
    other_token: (String, String),
    pub(super) limited: String,
    /// A token of the published view.
    pub(super) site: String,
    pub(super) first_group: String,
    /// The states of each piece at its revisions, the first one first.
    pub(super) histories: HashMap<String, Vec<PieceState>>,
    /// The pieces in list order.
    pub(super) pieces: Vec<PieceModel>,
    pub(super) groups: Vec<GroupModel>,
    pub(super) tags: Vec<(String, String)>,
    pub(super) variants: Vec<(String, String)>,
    pub(super) roles: Vec<(String, String)>,
    pub(super) members: Vec<MemberModel>,
    pub(super) webhooks: Vec<WebhookModel>,
    pub(super) events: Vec<ModelEvent>,
    /// The ids of deleted resources.
    pub(super) deleted: Vec<String>,
    pub(super) trash: Vec<TrashModel>,
    pub(super) made: usize,
    /// True once order keys have grown long, as any later step may then change them.
    pub(super) has_long_keys: bool,
}

impl<'s> WorkspaceModel<'s> {
    pub(super) async fn new(service: &'s Service) -> Self {
        let TestWorkspace { made, token, group } = service.other_workspace().await;
        let roles = service.send_as(&token, Method::GET, "/roles/list", None).await;
        let names = roles.column("id").into_iter().zip(roles.column("name")).collect();
        let path = "/workspace-memberships/list-members";
        let members = service.send_as(&token, Method::GET, path, None).await;
        let member = |one: &Value| MemberModel {
            id: text(&one["id"]),
            email: text(&one["email"]),
            role: text(&one["roleId"]),
        };
        let members = members.body.as_array().unwrap().iter().map(member).collect();
        let path = format!("/content-groups?id={group}");
        let shown = service.send_as(&token, Method::GET, &path, None).await;
        let name = text(&shown.body["name"]);
        let limit = json!({"name": "limited", "contentGroupIds": [group],
            "permissions": ["contentPieces:read", "contentGroups:read", "webhooks:read"]});
        let limited = service.send_as(&token, Method::POST, "/tokens", Some(&limit)).await;
        let site = json!({"name": "site", "view": "published", "permissions":
            ["contentPieces:read", "contentGroups:read", "tags:read", "variants:read"]});
        let site = service.send_as(&token, Method::POST, "/tokens", Some(&site)).await;
        let all: Vec<_> = PermissionSet::ALL.iter().map(|one| one.to_string()).collect();
        let second = json!({"name": "second", "permissions": all});
        let second = service.send_as(&token, Method::POST, "/tokens", Some(&second)).await;
        let tokens = service.send_as(&token, Method::GET, "/tokens/list", None).await;
        let events = service.send_as(&token, Method::GET, "/events?perPage=1000", None).await;
        assert_eq!(events.body, json!([]), "a new workspace has no events");
        Self {
            service,
            workspace: made.workspace,
            limited: text(&limited.body["token"]),
            site: text(&site.body["token"]),
            token,
            token_id: text(&tokens.body[0]["id"]),
            other_token: (text(&second.body["token"]), second.id()),
            first_group: group.clone(),
            histories: HashMap::new(),
            pieces: Vec::new(),
            groups: vec![GroupModel { id: group, name, parent: None }],
            tags: Vec::new(),
            variants: Vec::new(),
            roles: names,
            members,
            webhooks: Vec::new(),
            events: Vec::new(),
            deleted: vec!["cp_0000000000000000000000000000".to_owned(), "nothing".to_owned()],
            trash: Vec::new(),
            made: 0,
            has_long_keys: false,
        }
    }

    /// Sends the following requests with the other token.
    pub(super) fn switch_token(&mut self) {
        let (token, id) = &mut self.other_token;
        std::mem::swap(&mut self.token, token);
        std::mem::swap(&mut self.token_id, id);
    }

    /// Picks an existing id, or sometimes a deleted one.
    fn pick(&self, from: Vec<&str>, pick: Choice) -> String {
        let all: Vec<&str> =
            from.into_iter().chain(self.deleted.last().map(String::as_str)).collect();
        all[usize::from(pick) % all.len()].to_owned()
    }

    pub(super) fn pick_piece(&self, pick: Choice) -> String {
        self.pick(self.pieces.iter().map(|one| one.id.as_str()).collect(), pick)
    }

    pub(super) fn pick_group(&self, pick: Choice) -> String {
        self.pick(self.groups.iter().map(|one| one.id.as_str()).collect(), pick)
    }

    pub(super) fn pick_tag(&self, pick: Choice) -> String {
        self.pick(self.tags.iter().map(|(id, _)| id.as_str()).collect(), pick)
    }

    pub(super) fn pick_variant(&self, pick: Choice) -> String {
        self.pick(self.variants.iter().map(|(id, _)| id.as_str()).collect(), pick)
    }

    pub(super) fn pick_role(&self, pick: Choice) -> String {
        self.pick(self.roles.iter().map(|(id, _)| id.as_str()).collect(), pick)
    }

    pub(super) fn pick_member(&self, pick: Choice) -> String {
        self.pick(self.members.iter().map(|one| one.id.as_str()).collect(), pick)
    }

    pub(super) fn pick_webhook(&self, pick: Choice) -> String {
        self.pick(self.webhooks.iter().map(|one| one.id.as_str()).collect(), pick)
    }

    pub(super) fn pick_tags(&self, picks: &[Choice]) -> Vec<String> {
        let mut picked: Vec<String> = Vec::new();
        for &pick in picks {
            let tag = self.pick_tag(pick);
            if !picked.contains(&tag) {
                picked.push(tag);
            }
        }
        picked
    }

    pub(super) fn has_tags(&self, tags: &[String]) -> bool {
        tags.iter().all(|tag| self.tags.iter().any(|(id, _)| id == tag))
    }

    pub(super) fn group(&self, id: &str) -> Option<&GroupModel> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// Returns the groups from the top down to this one.
    pub(super) fn path(&self, id: &str) -> Vec<String> {
        let mut path = Vec::new();
        let mut next = Some(id.to_owned());
        while let Some(id) = next {
            next = self.group(&id).and_then(|group| group.parent.clone());
            path.push(id);
        }
        path.reverse();
        path
    }

    /// Returns the number of levels of a group's subtree.
    pub(super) fn height(&self, id: &str) -> usize {
        let children = self.groups.iter().filter(|group| group.parent.as_deref() == Some(id));
        1 + children.map(|child| self.height(&child.id)).max().unwrap_or(0)
    }

    pub(super) fn record_event(
        &mut self,
        event: &'static str,
        id: &str,
        before: Option<Vec<String>>,
        after: Option<Vec<String>>,
    ) {
        self.record(ModelEvent { event, id: id.to_owned(), before, after, is_published: false });
    }

    pub(super) fn record(&mut self, new: ModelEvent) {
        let is_of_piece = new.event.starts_with("contentPiece");
        let number = self.events.len() as i64 + 1;
        for webhook in &mut self.webhooks {
            let seen = new.seen(webhook.group.as_deref());
            let seen = seen.filter(|_| !is_of_piece || webhook.is_published == new.is_published);
            // The deletion of its group ends the other events, too.
            let seen = seen.filter(|_| is_of_groups(new.event) || !webhook.lost_group);
            if seen.is_some_and(|seen| webhook.events.contains(&seen)) {
                webhook.gets.push(number);
            }
        }
        self.events.push(new);
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        expected: u16,
    ) -> RequestResult {
        let shown = format!("{method} {path} {}", body.cloned().unwrap_or_default());
        let answer = self.service.send_as(&self.token, method, path, body).await;
        // If both the resource and a reference are missing, the response may report either.
        let status = match (answer.status.as_u16(), expected) {
            (400, 404) if answer.body["reason"] == "unknown_reference" => 404,
            (status, _) => status,
        };
        prop_assert_eq!(status, expected, "{} {:?}", shown, answer.body);
        Ok(answer.body)
    }

    pub(super) async fn get(&self, path: &str) -> RequestResult {
        self.send(Method::GET, path, None, 200).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value, expected: u16) -> RequestResult {
        self.send(Method::POST, path, Some(body), expected).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value, expected: u16) -> RequestResult {
        self.send(Method::PUT, path, Some(body), expected).await
    }

    pub(super) async fn delete(&self, path: &str, expected: u16) -> RequestResult {
        self.send(Method::DELETE, path, None, expected).await
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn column(list: &Value, name: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| text(&one[name])).collect()
}
