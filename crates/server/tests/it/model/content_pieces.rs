//! Steps that change content pieces.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use galley_storage::{Tx, order_key_spread};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use super::FAN_OUT_TIMEOUT;
use super::steps::{Choice, PieceChange, TargetPosition};
use super::trash::TrashModel;
use super::workspace::{
    CheckResult, ModelOverrides, PieceModel, PieceState, ScheduleModel, WorkspaceModel, text,
};

/// A [`PieceChange`] with ids in place of choices. `after` is the position: null for the front.
struct PieceUpdate {
    id: String,
    variant: Option<String>,
    title: Option<Option<String>>,
    tags: Option<Option<Vec<String>>>,
    group: Option<String>,
    after: Option<Option<String>>,
}

impl PieceUpdate {
    fn body(&self) -> Value {
        let mut body = json!({"id": self.id});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body[name] = value;
            }
        };
        set("variant", self.variant.as_ref().map(|one| json!(one)));
        set("title", self.title.as_ref().map(|one| json!(one)));
        set("tags", self.tags.as_ref().map(|one| json!(one)));
        set("contentGroupId", self.group.as_ref().map(|one| json!(one)));
        set("referenceId", self.after.as_ref().map(|one| json!(one)));
        body
    }

    /// Applies the update to a piece, except for its position.
    fn apply(self, piece: &mut PieceModel) {
        piece.group = self.group.unwrap_or(piece.group.clone());
        let Some(variant) = self.variant else {
            piece.title = self.title.flatten().unwrap_or(piece.title.clone());
            piece.tags = self.tags.flatten().unwrap_or(piece.tags.clone());
            return;
        };
        let (shown_title, shown_tags) = piece.shown(Some(&variant));
        let overrides = piece.overrides.entry(variant.clone()).or_default();
        // A value that the variant shows already is not stored.
        if let Some(title) = self.title.filter(|title| title.as_ref() != Some(&shown_title)) {
            overrides.title = title;
        }
        if let Some(tags) = self.tags.filter(|tags| tags.as_ref() != Some(&shown_tags)) {
            overrides.tags = tags;
        }
        if *overrides == ModelOverrides::default() {
            piece.overrides.remove(&variant);
        }
    }
}

impl WorkspaceModel<'_> {
    fn position_of(&self, piece: &str) -> Option<usize> {
        self.pieces.iter().position(|one| one.id == piece)
    }

    pub(super) async fn make_piece(
        &mut self,
        group: Choice,
        tags: &[Choice],
        after: Option<Choice>,
    ) -> CheckResult {
        let (group, tags) = (self.pick_group(group), self.pick_tags(tags));
        let after = after.map(|pick| self.pick_piece(pick));
        let place = after.as_ref().map(|id| self.position_of(id));
        let in_group = |at: usize| self.pieces[at].group == group;
        let fits = place.is_none_or(|found| found.is_some_and(in_group));
        let right = self.group(&group).is_some() && self.has_tags(&tags) && fits;
        let body = self.piece_body(&group, &tags, after.as_deref());
        let expected = if right { 201 } else { 400 };
        let made = self.post("/content-pieces", &body, expected).await?;
        if right {
            let at = place.flatten().map_or(self.pieces.len(), |at| at + 1);
            self.add_piece(at, &made, &body);
        }
        Ok(())
    }

    pub(super) async fn make_pieces(&mut self, group: Choice, count: u8) -> CheckResult {
        let group = self.pick_group(group);
        let right = self.group(&group).is_some();
        let body = |number| {
            let mut body = self.piece_body(&group, &[], None);
            body["title"] = json!(format!("{number} of several"));
            body
        };
        let bodies: Vec<Value> = (0..count).map(body).collect();
        let expected = if right { 201 } else { 400 };
        let body = json!({"pieces": bodies});
        let made = self.post("/content-pieces/batch", &body, expected).await?;
        if right {
            for (made, body) in made["pieces"].as_array().unwrap().iter().zip(&bodies) {
                self.add_piece(self.pieces.len(), made, body);
            }
        }
        Ok(())
    }

    /// Creates pieces, each between the two created last, until their order keys grow long.
    pub(super) async fn insert_between(&mut self, piece: Choice, count: u8) -> CheckResult {
        let mut before = self.pick_piece(piece);
        let Some(at) = self.position_of(&before) else { return Ok(()) };
        let group = self.pieces[at].group.clone();
        self.has_long_keys = true;
        for number in 0..count {
            let body = self.piece_body(&group, &[], Some(&before));
            let made = self.post("/content-pieces", &body, 201).await?;
            let at = self.position_of(&before).unwrap();
            self.add_piece(at + 1, &made, &body);
            if number % 2 == 0 {
                before = text(&made["id"]);
            }
            self.follow_spreads().await?;
        }
        Ok(())
    }

    pub(super) async fn delete_piece(&mut self, piece: Choice) -> CheckResult {
        let id = self.pick_piece(piece);
        let at = self.position_of(&id);
        let expected = if at.is_some() { 204 } else { 404 };
        let keys = self.order_keys().await?;
        self.delete(&format!("/content-pieces?id={id}"), expected).await?;
        if let Some(at) = at {
            let piece = self.pieces.remove(at);
            let path = self.path(&piece.group);
            if piece.published.is_some() {
                let path = Some(path.clone());
                self.record_published_event("contentPieceRemoved", &piece.id, path, None);
            }
            self.trash.push(TrashModel {
                id: piece.id.clone(),
                title: piece.title.clone(),
                group: Some(piece.group.clone()),
                groups: Vec::new(),
                pieces: vec![(keys[&piece.id].clone(), piece.clone())],
            });
            self.record_event("contentPieceRemoved", &piece.id, Some(path), None);
            self.deleted.push(piece.id);
        }
        Ok(())
    }

    fn piece_body(&mut self, group: &str, tags: &[String], after: Option<&str>) -> Value {
        self.made += 1;
        let (title, slug) = (format!("title {}", self.made % 6), format!("s{}", self.made));
        let members: Vec<_> = self.members.iter().skip(self.made % 3).map(|one| &one.id).collect();
        let mut body = json!({"title": title, "slug": slug, "tags": tags, "members": members,
            "contentGroupId": group});
        if let day @ 1.. = self.made % 4 {
            body["date"] = json!(format!("2026-01-0{day}"));
        }
        if let Some(after) = after {
            body["referenceId"] = json!(after);
        }
        body
    }

    fn add_piece(&mut self, at: usize, made: &Value, body: &Value) {
        let piece = PieceModel {
            id: text(&made["id"]),
            title: text(&body["title"]),
            date: body["date"].as_str().map(str::to_owned),
            tags: body["tags"].as_array().unwrap().iter().map(text).collect(),
            members: body["members"].as_array().unwrap().iter().map(text).collect(),
            group: text(&body["contentGroupId"]),
            overrides: BTreeMap::new(),
            authors: [self.token_id.clone(), self.token_id.clone()],
            published: None,
            schedule: ScheduleModel::default(),
        };
        let (id, path) = (piece.id.clone(), self.path(&piece.group));
        self.record_revision(&piece);
        self.pieces.insert(at, piece);
        self.record_event("contentPieceAdded", &id, None, Some(path));
    }

    /// Waits until long order keys are spread out, and adds the resulting events to the model. Each
    /// of these pieces must then match its last event.
    pub(super) async fn follow_spreads(&mut self) -> CheckResult {
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
        let mut last = HashMap::new();
        for (is_published, event) in self.new_events().await? {
            let id = text(&event["data"]["id"]);
            prop_assert_eq!(&event["type"], "contentPieceUpdated");
            let Some(piece) = self.pieces.iter().find(|one| one.id == id) else {
                return Err(TestCaseError::fail(format!("unexpected event: {event}")));
            };
            let path = Some(self.path(&piece.group));
            if is_published {
                self.record_published_event("contentPieceUpdated", &id, path.clone(), path);
            } else {
                self.record_event("contentPieceUpdated", &id, path.clone(), path);
            }
            last.insert((is_published, id), event["data"].clone());
        }
        for ((is_published, id), data) in last {
            let seen = self.seen_in_view(is_published, &id).await?;
            prop_assert_eq!(data, seen);
        }
        Ok(())
    }

    pub(super) async fn change_piece(&mut self, change: &PieceChange) -> CheckResult {
        let PieceChange { piece, variant, title, tags, group, position } = change;
        let update = PieceUpdate {
            id: self.pick_piece(*piece),
            variant: variant.map(|pick| self.pick_variant(pick)),
            title: title.map(|title| title.map(|number| format!("title {number}"))),
            tags: tags.as_ref().map(|tags| tags.as_ref().map(|picks| self.pick_tags(picks))),
            group: group.map(|pick| self.pick_group(pick)),
            after: match position {
                TargetPosition::Stays => None,
                TargetPosition::Front => Some(None),
                TargetPosition::After(pick) => Some(Some(self.pick_piece(*pick))),
            },
        };
        let at = self.position_of(&update.id);
        let expected = self.expected_status(at, &update);
        self.put("/content-pieces", &update.body(), expected).await?;
        let (Some(at), 204) = (at, expected) else { return Ok(()) };
        let before = self.pieces[at].clone();
        let mut piece = before.clone();
        let after = update.after.clone();
        update.apply(&mut piece);
        let new_place = self.new_place(at, &piece.group, after.as_ref());
        let changed = piece != before || new_place.is_some();
        let is_recorded = PieceState::of(&piece) != PieceState::of(&before);
        let (id, paths) = (before.id, [self.path(&before.group), self.path(&piece.group)]);
        if changed {
            piece.authors[1] = self.token_id.clone();
        }
        if is_recorded {
            self.record_revision(&piece);
        }
        self.pieces[at] = piece;
        if let Some(target) = new_place {
            let [before, after] = paths.clone().map(Some);
            if self.pieces[at].published.is_some() {
                self.record_published_event("contentPieceUpdated", &id, before, after);
            }
            let piece = self.pieces.remove(at);
            let target = if target > at { target - 1 } else { target };
            self.pieces.insert(target, piece);
        }
        if changed {
            let [before, after] = paths.map(Some);
            self.record_event("contentPieceUpdated", &id, before, after);
        }
        Ok(())
    }

    /// Returns the status of an update of the piece at `at`.
    fn expected_status(&self, at: Option<usize>, update: &PieceUpdate) -> u16 {
        // A null without a fallback is rejected before any look-up.
        let clears = update.title == Some(None) || update.tags == Some(None);
        if update.variant.is_none() && clears {
            return 400;
        }
        let known = |variant: &String| self.variants.iter().any(|(id, _)| id == variant);
        let Some(at) = at.filter(|_| update.variant.as_ref().is_none_or(known)) else { return 404 };
        let target = update.group.as_ref().unwrap_or(&self.pieces[at].group);
        let is_reference = |id: &String| {
            *id != update.id && self.pieces.iter().any(|one| one.id == *id && one.group == *target)
        };
        let right = self.group(target).is_some()
            && update.tags.iter().flatten().all(|tags| self.has_tags(tags))
            && update.after.iter().flatten().all(is_reference);
        if right { 204 } else { 400 }
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
}
