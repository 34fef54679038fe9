//! Random requests in sequence, on both engines, compared with an in-memory model. The model
//! predicts each response, the resulting state, and the events that webhooks and limited tokens
//! see.
//!
//! A failing sequence is shrunk to a minimal one and printed.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use galley_domain::WorkspaceId;
use galley_storage::{Tx, order_key_spread};
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rand::RngExt;
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestWorkspace};

/// The most requests of a sequence.
const STEPS_LIMIT: usize = 120;

/// The maximum depth of groups.
const DEPTH_LIMIT: usize = 32;

/// The longest time until events become deliveries.
const FAN_OUT_TIMEOUT: Duration = Duration::from_secs(30);

/// A choice among several resources, resolved when the request is sent. It may also choose a
/// deleted or an unknown id.
type Choice = u8;

/// The new position of a piece.
#[derive(Debug, Clone, Copy)]
enum TargetPosition {
    Stays,
    Front,
    After(Choice),
}

#[derive(Debug, Clone)]
enum ModelStep {
    MakePiece {
        group: Choice,
        tags: Vec<Choice>,
        after: Option<Choice>,
    },
    MakePieces {
        group: Choice,
        count: u8,
    },
    ChangePiece {
        piece: Choice,
        variant: Option<Choice>,
        title: Option<Option<u8>>,
        tags: Option<Option<Vec<Choice>>>,
        group: Option<Choice>,
        place: TargetPosition,
    },
    /// Creates pieces, each between the two created last, until their order keys grow long.
    Crowd {
        piece: Choice,
        count: u8,
    },
    DeletePiece {
        piece: Choice,
    },
    MakeGroup {
        parent: Option<Choice>,
    },
    MoveGroup {
        group: Choice,
        parent: Option<Choice>,
    },
    RenameGroup {
        group: Choice,
        name: u8,
    },
    DeleteGroup {
        group: Choice,
        recursive: bool,
    },
    MakeTag {
        label: u8,
    },
    RenameTag {
        tag: Choice,
        label: u8,
    },
    DeleteTag {
        tag: Choice,
    },
    MakeVariant {
        key: u8,
    },
    DeleteVariant {
        variant: Choice,
    },
    MakeRole {
        name: u8,
    },
    DeleteRole {
        role: Choice,
    },
    Invite {
        who: u8,
        role: Choice,
    },
    ChangeRole {
        member: Choice,
        role: Choice,
    },
    RemoveMember {
        member: Choice,
    },
    MakeWebhook {
        event: u8,
        group: Option<Choice>,
    },
    EnableWebhook {
        webhook: Choice,
        enabled: bool,
    },
    DeleteWebhook {
        webhook: Choice,
    },
}

fn step() -> impl Strategy<Value = ModelStep> {
    let pick = || any::<Choice>();
    let place = prop_oneof![
        3 => Just(TargetPosition::Stays),
        1 => Just(TargetPosition::Front),
        3 => pick().prop_map(TargetPosition::After),
    ];
    let tags = || prop::collection::vec(pick(), 0..3);
    let change = (
        pick(),
        prop::option::weighted(0.3, pick()),
        prop::option::of(prop::option::weighted(0.9, 0..6_u8)),
        prop::option::weighted(0.3, prop::option::weighted(0.9, tags())),
        prop::option::weighted(0.3, pick()),
        place,
    );
    prop_oneof![
        6 => (pick(), tags(), prop::option::of(pick()))
            .prop_map(|(group, tags, after)| ModelStep::MakePiece { group, tags, after }),
        1 => (pick(), 1..5_u8).prop_map(|(group, count)| ModelStep::MakePieces { group, count }),
        8 => change.prop_map(|(piece, variant, title, tags, group, place)| {
            ModelStep::ChangePiece { piece, variant, title, tags, group, place }
        }),
        2 => pick().prop_map(|piece| ModelStep::DeletePiece { piece }),
        1 => prop::option::weighted(0.1, (pick(), 60..120_u8)).prop_map(|crowd| {
            let (piece, count) = crowd.unwrap_or_default();
            ModelStep::Crowd { piece, count }
        }),
        3 => prop::option::weighted(0.7, pick()).prop_map(|parent| ModelStep::MakeGroup { parent }),
        3 => (pick(), prop::option::weighted(0.8, pick()))
            .prop_map(|(group, parent)| ModelStep::MoveGroup { group, parent }),
        1 => (pick(), 0..4_u8).prop_map(|(group, name)| ModelStep::RenameGroup { group, name }),
        1 => (pick(), any::<bool>())
            .prop_map(|(group, recursive)| ModelStep::DeleteGroup { group, recursive }),
        2 => (0..5_u8).prop_map(|label| ModelStep::MakeTag { label }),
        1 => (pick(), 0..5_u8).prop_map(|(tag, label)| ModelStep::RenameTag { tag, label }),
        1 => pick().prop_map(|tag| ModelStep::DeleteTag { tag }),
        1 => (0..4_u8).prop_map(|key| ModelStep::MakeVariant { key }),
        1 => pick().prop_map(|variant| ModelStep::DeleteVariant { variant }),
        1 => (0..4_u8).prop_map(|name| ModelStep::MakeRole { name }),
        1 => pick().prop_map(|role| ModelStep::DeleteRole { role }),
        1 => (0..6_u8, pick()).prop_map(|(who, role)| ModelStep::Invite { who, role }),
        1 => (pick(), pick()).prop_map(|(member, role)| ModelStep::ChangeRole { member, role }),
        1 => pick().prop_map(|member| ModelStep::RemoveMember { member }),
        1 => (0..9_u8, prop::option::weighted(0.9, pick()))
            .prop_map(|(event, group)| ModelStep::MakeWebhook { event, group }),
        1 => (pick(), any::<bool>())
            .prop_map(|(webhook, enabled)| ModelStep::EnableWebhook { webhook, enabled }),
        1 => pick().prop_map(|webhook| ModelStep::DeleteWebhook { webhook }),
    ]
}

const EVENTS: [&str; 9] = [
    "contentPieceAdded",
    "contentPieceUpdated",
    "contentPieceRemoved",
    "contentGroupAdded",
    "contentGroupMoved",
    "contentGroupRemoved",
    "memberInvited",
    "memberAdded",
    "memberRemoved",
];

/// The overrides of a piece in a variant.
#[derive(Debug, Clone, Default, PartialEq)]
struct ModelOverrides {
    title: Option<String>,
    tags: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
struct PieceModel {
    id: String,
    title: String,
    tags: Vec<String>,
    group: String,
    said: BTreeMap<String, ModelOverrides>,
}

impl PieceModel {
    /// Returns the title and the tags, in a variant or without one.
    fn shown(&self, variant: Option<&str>) -> (String, Vec<String>) {
        let said = variant.and_then(|variant| self.said.get(variant)).cloned().unwrap_or_default();
        (said.title.unwrap_or(self.title.clone()), said.tags.unwrap_or(self.tags.clone()))
    }
}

#[derive(Debug, Clone)]
struct GroupModel {
    id: String,
    name: String,
    parent: Option<String>,
}

#[derive(Debug, Clone)]
struct MemberModel {
    id: String,
    email: String,
    role: String,
}

#[derive(Debug, Clone)]
struct WebhookModel {
    id: String,
    event: &'static str,
    group: Option<String>,
    enabled: bool,
    /// The sequence numbers of the events that it receives.
    gets: Vec<i64>,
}

/// An event in the model.
#[derive(Debug, Clone)]
struct ModelEvent {
    /// The type for the whole workspace.
    event: &'static str,
    id: String,
    before: Option<Vec<String>>,
    after: Option<Vec<String>>,
}

impl ModelEvent {
    /// Returns the event's type as seen in the scope of a group and its subtree, or of the whole
    /// workspace for `None`.
    fn seen(&self, group: Option<&str>) -> Option<&'static str> {
        let Some(group) = group.filter(|_| !self.event.starts_with("member")) else {
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
struct WorkspaceModel<'s> {
    service: &'s Service,
    workspace: WorkspaceId,
    token: String,
    limited: String,
    first_group: String,
    /// The pieces in list order.
    pieces: Vec<PieceModel>,
    groups: Vec<GroupModel>,
    tags: Vec<(String, String)>,
    variants: Vec<(String, String)>,
    roles: Vec<(String, String)>,
    members: Vec<MemberModel>,
    webhooks: Vec<WebhookModel>,
    happened: Vec<ModelEvent>,
    /// The ids of deleted resources.
    gone: Vec<String>,
    made: usize,
    /// True once order keys have grown long, as any later step may then change them.
    has_long_keys: bool,
}

type CheckResult = Result<(), TestCaseError>;

impl<'s> WorkspaceModel<'s> {
    async fn new(service: &'s Service) -> Self {
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
        let happened = service.send_as(&token, Method::GET, "/events?perPage=1000", None).await;
        assert_eq!(happened.body, json!([]), "nothing has happened yet");
        Self {
            service,
            workspace: made.workspace,
            limited: text(&limited.body["token"]),
            token,
            first_group: group.clone(),
            pieces: Vec::new(),
            groups: vec![GroupModel { id: group, name, parent: None }],
            tags: Vec::new(),
            variants: Vec::new(),
            roles: names,
            members,
            webhooks: Vec::new(),
            happened: Vec::new(),
            gone: vec!["cp_0000000000000000000000000000".to_owned(), "nothing".to_owned()],
            made: 0,
            has_long_keys: false,
        }
    }

    /// Picks an existing id, or sometimes a deleted one.
    fn pick(&self, from: Vec<&str>, pick: Choice) -> String {
        let all: Vec<&str> = from.into_iter().chain(self.gone.last().map(String::as_str)).collect();
        all[usize::from(pick) % all.len()].to_owned()
    }

    fn pick_piece(&self, pick: Choice) -> String {
        self.pick(self.pieces.iter().map(|one| one.id.as_str()).collect(), pick)
    }

    fn pick_group(&self, pick: Choice) -> String {
        self.pick(self.groups.iter().map(|one| one.id.as_str()).collect(), pick)
    }

    fn pick_tags(&self, picks: &[Choice]) -> Vec<String> {
        let tags = || self.tags.iter().map(|(id, _)| id.as_str()).collect();
        let mut picked: Vec<String> = Vec::new();
        for &pick in picks {
            let tag = self.pick(tags(), pick);
            if !picked.contains(&tag) {
                picked.push(tag);
            }
        }
        picked
    }

    fn has_tags(&self, tags: &[String]) -> bool {
        tags.iter().all(|tag| self.tags.iter().any(|(id, _)| id == tag))
    }

    fn group(&self, id: &str) -> Option<&GroupModel> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// Returns the groups from the top down to this one.
    fn path(&self, id: &str) -> Vec<String> {
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
    fn height(&self, id: &str) -> usize {
        let children = self.groups.iter().filter(|group| group.parent.as_deref() == Some(id));
        1 + children.map(|child| self.height(&child.id)).max().unwrap_or(0)
    }

    fn record_event(
        &mut self,
        event: &'static str,
        id: &str,
        before: Option<Vec<String>>,
        after: Option<Vec<String>>,
    ) {
        let happened = ModelEvent { event, id: id.to_owned(), before, after };
        let number = self.happened.len() as i64 + 1;
        for webhook in &mut self.webhooks {
            if happened.seen(webhook.group.as_deref()) == Some(webhook.event) {
                webhook.gets.push(number);
            }
        }
        self.happened.push(happened);
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        expected: u16,
    ) -> Result<Value, TestCaseError> {
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

    async fn get(&self, path: &str) -> Result<Value, TestCaseError> {
        self.send(Method::GET, path, None, 200).await
    }

    #[expect(clippy::too_many_lines, reason = "a step after another")]
    async fn take(&mut self, step: &ModelStep) -> CheckResult {
        match step {
            ModelStep::MakePiece { group, tags, after } => {
                let (group, tags) = (self.pick_group(*group), self.pick_tags(tags));
                let after = after.map(|pick| self.pick_piece(pick));
                let place =
                    after.as_ref().map(|id| self.pieces.iter().position(|one| one.id == *id));
                let in_group = |at: usize| self.pieces[at].group == group;
                let fits = match place {
                    None => true,
                    Some(found) => found.is_some_and(in_group),
                };
                let right = self.group(&group).is_some() && self.has_tags(&tags) && fits;
                let body = self.piece_body(&group, &tags, after.as_deref());
                let made = self.send(
                    Method::POST,
                    "/content-pieces",
                    Some(&body),
                    if right { 201 } else { 400 },
                );
                let made = made.await?;
                if right {
                    let at = place.flatten().map_or(self.pieces.len(), |at| at + 1);
                    self.made(at, &made, &body);
                }
            }
            ModelStep::MakePieces { group, count } => {
                let group = self.pick_group(*group);
                let right = self.group(&group).is_some();
                let bodies: Vec<Value> = (0..*count)
                    .map(|number| {
                        let mut body = self.piece_body(&group, &[], None);
                        body["title"] = json!(format!("{number} of several"));
                        body
                    })
                    .collect();
                let body = json!({"pieces": bodies});
                let path = "/content-pieces/batch";
                let made = self
                    .send(Method::POST, path, Some(&body), if right { 201 } else { 400 })
                    .await?;
                if right {
                    for (made, body) in made["pieces"].as_array().unwrap().iter().zip(&bodies) {
                        self.made(self.pieces.len(), made, body);
                    }
                }
            }
            ModelStep::ChangePiece { piece, variant, title, tags, group, place } => {
                let id = self.pick_piece(*piece);
                let variant = variant.map(|pick| {
                    self.pick(self.variants.iter().map(|(id, _)| id.as_str()).collect(), pick)
                });
                let tags =
                    tags.as_ref().map(|tags| tags.as_ref().map(|picks| self.pick_tags(picks)));
                let group = group.map(|pick| self.pick_group(pick));
                let reference = match place {
                    TargetPosition::Stays => None,
                    TargetPosition::Front => Some(None),
                    TargetPosition::After(pick) => Some(Some(self.pick_piece(*pick))),
                };
                let title = title.map(|title| title.map(|number| format!("title {number}")));
                self.change(&id, variant, title, tags, group, reference).await?;
            }
            ModelStep::Crowd { piece, count } => {
                let mut before = self.pick_piece(*piece);
                let Some(at) = self.pieces.iter().position(|one| one.id == before) else {
                    return Ok(());
                };
                let group = self.pieces[at].group.clone();
                self.has_long_keys = true;
                for number in 0..*count {
                    let body = self.piece_body(&group, &[], Some(&before));
                    let made = self.send(Method::POST, "/content-pieces", Some(&body), 201).await?;
                    let at = self.pieces.iter().position(|one| one.id == before).unwrap();
                    self.made(at + 1, &made, &body);
                    if number % 2 == 0 {
                        before = text(&made["id"]);
                    }
                    self.follow_spreads().await?;
                }
            }
            ModelStep::DeletePiece { piece } => {
                let id = self.pick_piece(*piece);
                let at = self.pieces.iter().position(|one| one.id == id);
                let path = format!("/content-pieces?id={id}");
                self.send(Method::DELETE, &path, None, if at.is_some() { 204 } else { 404 })
                    .await?;
                if let Some(at) = at {
                    self.remove_piece(at);
                }
            }
            ModelStep::MakeGroup { parent } => {
                let parent = parent.map(|pick| self.pick_group(pick));
                let right = parent.as_ref().is_none_or(|parent| {
                    self.group(parent).is_some() && self.path(parent).len() < DEPTH_LIMIT
                });
                let body = json!({"name": "a group", "ancestor": parent});
                let path = "/content-groups";
                let made = self
                    .send(Method::POST, path, Some(&body), if right { 201 } else { 400 })
                    .await?;
                if right {
                    let id = text(&made["id"]);
                    self.groups.push(GroupModel {
                        id: id.clone(),
                        name: "a group".to_owned(),
                        parent,
                    });
                    let path = self.path(&id);
                    self.record_event("contentGroupAdded", &id, None, Some(path));
                }
            }
            ModelStep::MoveGroup { group, parent } => {
                let id = self.pick_group(*group);
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
                let body = json!({"id": id, "ancestor": parent});
                self.send(Method::PUT, "/content-groups", Some(&body), expected).await?;
                if expected == 204 && !stays {
                    let before = self.path(&id);
                    self.groups.iter_mut().find(|one| one.id == id).unwrap().parent = parent;
                    let after = self.path(&id);
                    self.record_event("contentGroupMoved", &id, Some(before), Some(after));
                }
            }
            ModelStep::RenameGroup { group, name } => {
                let (id, name) = (self.pick_group(*group), format!("group {name}"));
                let there = self.group(&id).is_some();
                let body = json!({"id": id, "name": name});
                let expected = if there { 204 } else { 404 };
                self.send(Method::PUT, "/content-groups", Some(&body), expected).await?;
                if let Some(group) = self.groups.iter_mut().find(|one| one.id == id) {
                    group.name = name;
                }
            }
            ModelStep::DeleteGroup { group, recursive } => {
                let id = self.pick_group(*group);
                let holds = self.pieces.iter().any(|piece| piece.group == id)
                    || self.groups.iter().any(|group| group.parent.as_deref() == Some(&id));
                let expected = match (self.group(&id).is_some(), holds && !recursive) {
                    (false, _) => 404,
                    (true, true) => 409,
                    (true, false) => 204,
                };
                let path = format!("/content-groups?id={id}&recursive={recursive}");
                self.send(Method::DELETE, &path, None, expected).await?;
                if expected == 204 {
                    self.follow_deletion(&id).await?;
                }
            }
            ModelStep::MakeTag { label } => {
                let body = json!({"label": format!("tag {label}")});
                let made = self.send(Method::POST, "/tags", Some(&body), 201).await?;
                self.tags.push((text(&made["id"]), text(&body["label"])));
            }
            ModelStep::RenameTag { tag, label } => {
                let id = self.pick(self.tags.iter().map(|(id, _)| id.as_str()).collect(), *tag);
                let found = self.tags.iter_mut().find(|(known, _)| *known == id);
                let expected = if found.is_some() { 204 } else { 404 };
                let label = format!("tag {label}");
                let body = json!({"id": id, "label": label});
                if let Some((_, known)) = found {
                    *known = label;
                }
                self.send(Method::PUT, "/tags", Some(&body), expected).await?;
            }
            ModelStep::DeleteTag { tag } => {
                let id = self.pick(self.tags.iter().map(|(id, _)| id.as_str()).collect(), *tag);
                let there = self.has_tags(std::slice::from_ref(&id));
                let path = format!("/tags?id={id}");
                self.send(Method::DELETE, &path, None, if there { 204 } else { 404 }).await?;
                if there {
                    self.tags.retain(|(known, _)| *known != id);
                    for piece in &mut self.pieces {
                        piece.tags.retain(|tag| *tag != id);
                        for tags in piece.said.values_mut().filter_map(|said| said.tags.as_mut()) {
                            tags.retain(|tag| *tag != id);
                        }
                    }
                    self.gone.push(id);
                }
            }
            ModelStep::MakeVariant { key } => {
                let key = format!("key_{key}");
                let taken = self.variants.iter().any(|(_, known)| *known == key);
                let body = json!({"key": key, "label": "a variant"});
                let made = self.send(
                    Method::POST,
                    "/variants",
                    Some(&body),
                    if taken { 409 } else { 201 },
                );
                let made = made.await?;
                if !taken {
                    self.variants.push((text(&made["id"]), key));
                }
            }
            ModelStep::DeleteVariant { variant } => {
                let id =
                    self.pick(self.variants.iter().map(|(id, _)| id.as_str()).collect(), *variant);
                let there = self.variants.iter().any(|(known, _)| *known == id);
                let path = format!("/variants?id={id}");
                self.send(Method::DELETE, &path, None, if there { 204 } else { 404 }).await?;
                if there {
                    self.variants.retain(|(known, _)| *known != id);
                    for piece in &mut self.pieces {
                        piece.said.remove(&id);
                    }
                    self.gone.push(id);
                }
            }
            ModelStep::MakeRole { name } => {
                let name = format!("role {name}");
                let taken = self.roles.iter().any(|(_, known)| *known == name);
                let body = json!({"name": name, "permissions": ["contentPieces:read"]});
                let made =
                    self.send(Method::POST, "/roles", Some(&body), if taken { 409 } else { 201 });
                let made = made.await?;
                if !taken {
                    self.roles.push((text(&made["id"]), name));
                }
            }
            ModelStep::DeleteRole { role } => {
                let id = self.pick(self.roles.iter().map(|(id, _)| id.as_str()).collect(), *role);
                let name = self.roles.iter().find(|(known, _)| *known == id).map(|(_, name)| name);
                let expected = match name.map(String::as_str) {
                    None => 404,
                    Some("Admin") => 409,
                    Some(_) if self.members.iter().any(|member| member.role == id) => 409,
                    Some(_) => 204,
                };
                self.send(Method::DELETE, &format!("/roles?id={id}"), None, expected).await?;
                if expected == 204 {
                    self.roles.retain(|(known, _)| *known != id);
                    self.gone.push(id);
                }
            }
            ModelStep::Invite { who, role } => {
                let email = format!("p{who}@example.org");
                let role = self.pick(self.roles.iter().map(|(id, _)| id.as_str()).collect(), *role);
                let known = self.roles.iter().any(|(id, _)| *id == role);
                let taken = self.members.iter().any(|member| member.email == email);
                let expected = if !known {
                    400
                } else if taken {
                    409
                } else {
                    201
                };
                let body = json!({"email": email, "name": "Somebody", "roleId": role});
                let path = "/workspace-memberships";
                let made = self.send(Method::POST, path, Some(&body), expected).await?;
                if expected == 201 {
                    let id = text(&made["id"]);
                    self.members.push(MemberModel { id: id.clone(), email, role });
                    self.record_event("memberInvited", &id, None, None);
                }
            }
            ModelStep::ChangeRole { member, role } => {
                let id =
                    self.pick(self.members.iter().map(|one| one.id.as_str()).collect(), *member);
                let role = self.pick(self.roles.iter().map(|(id, _)| id.as_str()).collect(), *role);
                let found = self.members.iter().position(|one| one.id == id);
                let known = self.roles.iter().any(|(id, _)| *id == role);
                let admin = self.members[0].role.clone();
                let expected = match found {
                    None => 404,
                    Some(_) if !known => 400,
                    // This member owns the token and is the last Admin, as all others are only
                    // invited.
                    Some(0) if role != admin => 409,
                    _ => 204,
                };
                let body = json!({"id": id, "roleId": role});
                self.send(Method::PUT, "/workspace-memberships", Some(&body), expected).await?;
                if expected == 204 {
                    self.members[found.unwrap()].role = role;
                }
            }
            ModelStep::RemoveMember { member } => {
                let id =
                    self.pick(self.members.iter().map(|one| one.id.as_str()).collect(), *member);
                let expected = match self.members.iter().position(|one| one.id == id) {
                    None => 404,
                    Some(0) => 409,
                    Some(_) => 204,
                };
                let path = format!("/workspace-memberships?id={id}");
                self.send(Method::DELETE, &path, None, expected).await?;
                if expected == 204 {
                    self.members.retain(|one| one.id != id);
                    self.record_event("memberRemoved", &id, None, None);
                    self.gone.push(id);
                }
            }
            ModelStep::MakeWebhook { event, group } => {
                let event = EVENTS[usize::from(*event) % EVENTS.len()];
                let group = group.map(|pick| self.pick_group(pick));
                let known = group.as_ref().is_none_or(|group| self.group(group).is_some());
                let right = known && (group.is_some() || !event.starts_with("contentPiece"));
                let metadata = group.as_ref().map(|group| json!({"contentGroupId": group}));
                let mut body = json!({"url": "http://127.0.0.1:9/", "name": "w", "event": event});
                if let Some(metadata) = metadata {
                    body["metadata"] = metadata;
                }
                let made = self.send(
                    Method::POST,
                    "/webhooks",
                    Some(&body),
                    if right { 201 } else { 400 },
                );
                let made = made.await?;
                if right {
                    let id = text(&made["id"]);
                    let group = group.filter(|_| !event.starts_with("member"));
                    self.webhooks.push(WebhookModel {
                        id,
                        event,
                        group,
                        enabled: true,
                        gets: Vec::new(),
                    });
                }
            }
            ModelStep::EnableWebhook { webhook, enabled } => {
                let id =
                    self.pick(self.webhooks.iter().map(|one| one.id.as_str()).collect(), *webhook);
                let found = self.webhooks.iter().position(|one| one.id == id);
                // Webhooks of deleted groups are skipped, as they cannot be enabled.
                let groups = &self.groups;
                let watches = |at: usize| {
                    let group = self.webhooks[at].group.as_ref();
                    group.is_none_or(|group| groups.iter().any(|one| one.id == *group))
                };
                if found.is_none_or(watches) {
                    let body = json!({"id": id, "enabled": enabled});
                    let expected = if found.is_some() { 204 } else { 404 };
                    self.send(Method::PUT, "/webhooks", Some(&body), expected).await?;
                    if let Some(at) = found {
                        self.webhooks[at].enabled = *enabled;
                    }
                }
            }
            ModelStep::DeleteWebhook { webhook } => {
                let id =
                    self.pick(self.webhooks.iter().map(|one| one.id.as_str()).collect(), *webhook);
                let there = self.webhooks.iter().any(|one| one.id == id);
                let path = format!("/webhooks?id={id}");
                self.send(Method::DELETE, &path, None, if there { 204 } else { 404 }).await?;
                self.webhooks.retain(|one| one.id != id);
                if there {
                    self.gone.push(id);
                }
            }
        }
        Ok(())
    }

    fn piece_body(&mut self, group: &str, tags: &[String], after: Option<&str>) -> Value {
        self.made += 1;
        let mut body = json!({"title": format!("title {}", self.made % 6), "slug": format!("s{}", self.made),
            "tags": tags, "members": [], "contentGroupId": group});
        if let Some(after) = after {
            body["referenceId"] = json!(after);
        }
        body
    }

    fn made(&mut self, at: usize, made: &Value, body: &Value) {
        let piece = PieceModel {
            id: text(&made["id"]),
            title: text(&body["title"]),
            tags: body["tags"].as_array().unwrap().iter().map(text).collect(),
            group: text(&body["contentGroupId"]),
            said: BTreeMap::new(),
        };
        let (id, path) = (piece.id.clone(), self.path(&piece.group));
        self.pieces.insert(at, piece);
        self.record_event("contentPieceAdded", &id, None, Some(path));
    }

    /// Waits until long order keys are spread out, and adds the resulting events to the model. Each
    /// of these pieces must then match its last event.
    async fn follow_spreads(&mut self) -> CheckResult {
        let started = Instant::now();
        let workspace = self.workspace;
        let is_pending = async move |tx: &Tx<'_>| {
            let pending = order_key_spread::pending_spreads(tx, None).await?;
            Ok(pending.iter().any(|one| one.workspace == workspace))
        };
        while self.service.read(is_pending).await {
            let late = started.elapsed() > FAN_OUT_TIMEOUT;
            prop_assert!(!late, "order keys are not spread out");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let path = format!("/events?perPage=1000&after={}", self.happened.len());
        let told = self.get(&path).await?;
        let mut last = HashMap::new();
        for event in told.as_array().unwrap() {
            let id = text(&event["data"]["id"]);
            prop_assert_eq!(&event["type"], "contentPieceUpdated");
            let Some(piece) = self.pieces.iter().find(|one| one.id == id) else {
                return Err(TestCaseError::fail(format!("nobody expects {event}")));
            };
            let path = self.path(&piece.group);
            self.record_event("contentPieceUpdated", &id, Some(path.clone()), Some(path));
            last.insert(id, event["data"].clone());
        }
        for (id, data) in last {
            prop_assert_eq!(data, self.get(&format!("/content-pieces?id={id}")).await?);
        }
        Ok(())
    }

    fn remove_piece(&mut self, at: usize) {
        let piece = self.pieces.remove(at);
        let path = self.path(&piece.group);
        self.record_event("contentPieceRemoved", &piece.id, Some(path), None);
        self.gone.push(piece.id);
    }

    async fn change(
        &mut self,
        id: &str,
        variant: Option<String>,
        title: Option<Option<String>>,
        tags: Option<Option<Vec<String>>>,
        group: Option<String>,
        reference: Option<Option<String>>,
    ) -> CheckResult {
        let mut body = json!({"id": id});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body[name] = value;
            }
        };
        set("variant", variant.as_ref().map(|one| json!(one)));
        set("title", title.as_ref().map(|one| json!(one)));
        set("tags", tags.as_ref().map(|one| json!(one)));
        set("contentGroupId", group.as_ref().map(|one| json!(one)));
        set("referenceId", reference.as_ref().map(|one| json!(one)));
        let at = self.pieces.iter().position(|one| one.id == id);
        // A null without a fallback is rejected before any look-up.
        let clears = title == Some(None) || tags == Some(None);
        let is_malformed = variant.is_none() && clears;
        let known = |variant: &String| self.variants.iter().any(|(id, _)| id == variant);
        let expected = match at {
            _ if is_malformed => 400,
            None => 404,
            Some(_) if !variant.as_ref().is_none_or(known) => 404,
            Some(at) => {
                let target = group.as_ref().unwrap_or(&self.pieces[at].group);
                let stands = |id: &String| {
                    *id != self.pieces[at].id
                        && self.pieces.iter().any(|one| one.id == *id && one.group == *target)
                };
                let right = self.group(target).is_some()
                    && tags
                        .as_ref()
                        .is_none_or(|tags| tags.as_ref().is_none_or(|tags| self.has_tags(tags)))
                    && reference.as_ref().is_none_or(|one| one.as_ref().is_none_or(stands));
                if right { 204 } else { 400 }
            }
        };
        self.send(Method::PUT, "/content-pieces", Some(&body), expected).await?;
        let (Some(at), 204) = (at, expected) else { return Ok(()) };
        let before = self.pieces[at].clone();
        let mut piece = before.clone();
        match &variant {
            None => {
                piece.title = title.flatten().unwrap_or(piece.title);
                piece.tags = tags.flatten().unwrap_or(piece.tags);
            }
            Some(variant) => {
                let (shown_title, shown_tags) = piece.shown(Some(variant));
                let said = piece.said.entry(variant.clone()).or_default();
                match title {
                    Some(Some(new)) if new == shown_title => {}
                    Some(new) => said.title = new,
                    None => {}
                }
                match tags {
                    Some(Some(new)) if new == shown_tags => {}
                    Some(new) => said.tags = new,
                    None => {}
                }
                if *said == ModelOverrides::default() {
                    piece.said.remove(variant);
                }
            }
        }
        piece.group = group.unwrap_or(piece.group);
        let new_place = self.new_place(at, &piece.group, reference.as_ref());
        let changed = piece != before || new_place.is_some();
        self.pieces[at] = piece.clone();
        if let Some(target) = new_place {
            let piece = self.pieces.remove(at);
            let target = if target > at { target - 1 } else { target };
            self.pieces.insert(target, piece);
        }
        if changed {
            let (before, after) = (self.path(&before.group), self.path(&piece.group));
            self.record_event("contentPieceUpdated", id, Some(before), Some(after));
        }
        Ok(())
    }

    /// Returns the position before which a piece is inserted, if it moves.
    fn new_place(
        &self,
        at: usize,
        group: &str,
        reference: Option<&Option<String>>,
    ) -> Option<usize> {
        let in_group = |from: usize| {
            let others = self.pieces.iter().enumerate().skip(from);
            others.filter(|(_, one)| one.group == group).map(|(place, _)| place)
        };
        let moves_group = self.pieces[at].group != group;
        match reference {
            Some(Some(id)) => {
                let place = self.pieces.iter().position(|one| one.id == *id).unwrap();
                (in_group(place + 1).next() != Some(at)).then_some(place + 1)
            }
            None => moves_group.then_some(self.pieces.len()),
            Some(None) => match in_group(0).next() {
                Some(first) => (first != at).then_some(first),
                None => Some(self.pieces.len()),
            },
        }
    }

    /// Applies a group's deletion with its contents to the model. Events must report contents
    /// before their group.
    async fn follow_deletion(&mut self, id: &str) -> CheckResult {
        let under: Vec<String> = self
            .groups
            .iter()
            .filter(|group| self.path(&group.id).iter().any(|one| one == id))
            .map(|group| group.id.clone())
            .collect();
        let mut left: HashMap<String, (&'static str, Vec<String>)> = HashMap::new();
        for piece in self.pieces.iter().filter(|piece| under.contains(&piece.group)) {
            left.insert(piece.id.clone(), ("contentPieceRemoved", self.path(&piece.group)));
        }
        for group in &under {
            left.insert(group.clone(), ("contentGroupRemoved", self.path(group)));
        }
        let path = format!("/events?perPage=1000&after={}", self.happened.len());
        let told = self.get(&path).await?;
        for event in told.as_array().unwrap() {
            let id = text(&event["data"]["id"]);
            let Some((kind, path)) = left.remove(&id) else {
                return Err(TestCaseError::fail(format!("nobody expects {event}")));
            };
            let holds_more = left.values().any(|(_, other)| other.contains(&id));
            prop_assert!(!holds_more, "{} is told of before what it held", id);
            self.record_event(kind, &id, Some(path), None);
        }
        prop_assert!(left.is_empty(), "{:?} went unnoticed", left);
        self.pieces.retain(|piece| !under.contains(&piece.group));
        self.groups.retain(|group| !under.contains(&group.id));
        for webhook in &mut self.webhooks {
            webhook.enabled &= !webhook.group.as_ref().is_some_and(|group| under.contains(group));
        }
        self.gone.push(id.to_owned());
        Ok(())
    }

    /// Checks that the service's state equals the model's.
    async fn check(&self) -> CheckResult {
        for variant in
            [None].into_iter().chain(self.variants.iter().map(|(id, _)| Some(id.as_str())))
        {
            let asked = variant.map_or(String::new(), |variant| format!("&variant={variant}"));
            let list = self
                .walk(&format!("/content-pieces/list?perPage=7{asked}"), "lastOrder", "order")
                .await?;
            let found: Vec<_> = list
                .iter()
                .map(|one| {
                    let tags: Vec<String> = one["tags"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|tag| text(&tag["id"]))
                        .collect();
                    (text(&one["id"]), text(&one["contentGroupId"]), (text(&one["title"]), tags))
                })
                .collect();
            let expected: Vec<_> = self
                .pieces
                .iter()
                .map(|one| (one.id.clone(), one.group.clone(), one.shown(variant)))
                .collect();
            prop_assert_eq!(found, expected);
        }
        for group in &self.groups {
            let path = format!(
                "/content-pieces/list?perPage=1000&subtree=true&contentGroupId={}",
                group.id
            );
            let expected: Vec<_> = self
                .pieces
                .iter()
                .filter(|piece| self.path(&piece.group).contains(&group.id))
                .map(|piece| piece.id.clone())
                .collect();
            prop_assert_eq!(column(&self.get(&path).await?, "id"), expected);
            let shown = self.get(&format!("/content-groups?id={}", group.id)).await?;
            let mut path = self.path(&group.id);
            path.pop();
            let children: Vec<_> = self
                .groups
                .iter()
                .filter(|one| one.parent.as_deref() == Some(&group.id))
                .map(|one| one.id.clone())
                .collect();
            prop_assert_eq!(&shown["name"], &json!(group.name));
            prop_assert_eq!(&shown["ancestors"], &json!(path));
            prop_assert_eq!(&shown["descendants"], &json!(children));
        }
        for (tag, label) in &self.tags {
            let list = self.get(&format!("/content-pieces/list?perPage=1000&tagId={tag}")).await?;
            let expected: Vec<_> = self
                .pieces
                .iter()
                .filter(|piece| piece.tags.contains(tag))
                .map(|piece| piece.id.clone())
                .collect();
            prop_assert_eq!(column(&list, "id"), expected);
            prop_assert_eq!(&self.get(&format!("/tags?id={tag}")).await?["label"], &json!(label));
        }
        let ids =
            |pairs: &[(String, String)]| pairs.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        prop_assert_eq!(column(&self.get("/tags/list?perPage=1000").await?, "id"), ids(&self.tags));
        prop_assert_eq!(
            column(&self.get("/variants/list?perPage=1000").await?, "id"),
            ids(&self.variants)
        );
        prop_assert_eq!(
            column(&self.get("/roles/list?perPage=1000").await?, "id"),
            ids(&self.roles)
        );
        let members = self.get("/workspace-memberships/list-members?perPage=1000").await?;
        let members: Vec<_> = members
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (text(&one["id"]), text(&one["email"]), text(&one["roleId"])))
            .collect();
        let expected: Vec<_> = self
            .members
            .iter()
            .map(|one| (one.id.clone(), one.email.clone(), one.role.clone()))
            .collect();
        prop_assert_eq!(members, expected);
        let webhooks = self.get("/webhooks/list?perPage=1000").await?;
        let webhooks: Vec<_> = webhooks
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (text(&one["id"]), one["enabled"].as_bool().unwrap()))
            .collect();
        let expected: Vec<_> =
            self.webhooks.iter().map(|one| (one.id.clone(), one.enabled)).collect();
        prop_assert_eq!(webhooks, expected);
        self.check_events().await?;
        self.check_deliveries().await
    }

    /// Returns a whole list, paged by the last item's field.
    async fn walk(
        &self,
        path: &str,
        cursor: &str,
        field: &str,
    ) -> Result<Vec<Value>, TestCaseError> {
        let (mut all, mut last) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}&{cursor}={last}")).await?;
            let Some(item) = page.as_array().unwrap().last() else { return Ok(all) };
            last = item[field].as_str().map_or_else(|| item[field].to_string(), str::to_owned);
            all.extend(page.as_array().unwrap().iter().cloned());
        }
    }

    async fn check_events(&self) -> CheckResult {
        let told = self.walk("/events?perPage=100", "after", "sequence").await?;
        let told: Vec<_> = told
            .iter()
            .map(|one| {
                (one["sequence"].as_i64().unwrap(), text(&one["type"]), text(&one["data"]["id"]))
            })
            .collect();
        let expected: Vec<_> = (1..)
            .zip(&self.happened)
            .map(|(number, one)| (number, one.event.to_owned(), one.id.clone()))
            .collect();
        prop_assert_eq!(told, expected);
        if self.group(&self.first_group).is_none() {
            return Ok(());
        }
        let path = "/events?perPage=1000";
        let seen = self.service.send_as(&self.limited, Method::GET, path, None).await;
        prop_assert_eq!(seen.status, 200);
        let seen: Vec<_> = seen
            .body
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["sequence"].as_i64().unwrap(), text(&one["type"])))
            .filter(|(_, event)| !event.starts_with("member"))
            .collect();
        let expected: Vec<_> = (1..)
            .zip(&self.happened)
            .filter(|(_, one)| !one.event.starts_with("member"))
            .filter_map(|(number, one)| {
                Some((number, one.seen(Some(&self.first_group))?.to_owned()))
            })
            .collect();
        // Only the first page is compared.
        prop_assert_eq!(&seen, &expected[..expected.len().min(seen.len())]);
        Ok(())
    }

    async fn check_deliveries(&self) -> CheckResult {
        for webhook in &self.webhooks {
            let started = Instant::now();
            loop {
                let path = format!("/webhooks/deliveries?perPage=100&webhookId={}", webhook.id);
                let made = self.walk(&path, "lastId", "id").await?;
                let mut made: Vec<_> =
                    made.iter().map(|one| one["sequence"].as_i64().unwrap()).collect();
                made.sort_unstable();
                if made == webhook.gets {
                    break;
                }
                let late = started.elapsed() > FAN_OUT_TIMEOUT;
                prop_assert!(!late, "{:?} has deliveries of {:?}", webhook, made);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn column(list: &Value, name: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| text(&one[name])).collect()
}

async fn run(service: &Service, steps: &[ModelStep]) -> CheckResult {
    let mut world = WorkspaceModel::new(service).await;
    for (number, step) in steps.iter().enumerate() {
        world.take(step).await?;
        if world.has_long_keys {
            world.follow_spreads().await?;
        }
        if number % 40 == 39 {
            world.check().await?;
        }
    }
    world.check().await
}

#[on_both_engines]
async fn random_requests_match_the_model(store: TestStore) {
    let engine = store.engine();
    let limits = galley_server::ServerLimits { invites_per_hour: 1_000_000, ..Default::default() };
    let service = Service::start_with(store, limits).await;
    let wanted: usize = size(600, 3_000, 1_000_000);
    let number: u64 = std::env::var("GALLEY_TEST_SEED")
        .map_or_else(|_| rand::rng().random(), |text| text.parse().unwrap());
    eprintln!("{engine}: GALLEY_TEST_SEED={number}");
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let config = Config { failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = prop::collection::vec(step(), 1..=STEPS_LIMIT);
    let handle = tokio::runtime::Handle::current();
    let attempt = |sequence: Vec<ModelStep>| {
        tokio::task::block_in_place(|| handle.block_on(run(&service, &sequence)))
    };
    let (mut steps, mut sequences) = (0, 0);
    while steps < wanted {
        let tree = strategy.new_tree(&mut runner).unwrap();
        steps += tree.current().len();
        sequences += 1;
        if let Err(error) = runner.run_one(tree, attempt) {
            panic!("GALLEY_TEST_SEED={number}: {error:#}");
        }
    }
    let found = format!("{steps} steps in {sequences} sequences as the model says, seed {number}");
    eprintln!("{engine}: {found}");
    let condition = format!("{engine}: random requests compared with a model");
    report_figure(&condition, found, "0 differences");
}
