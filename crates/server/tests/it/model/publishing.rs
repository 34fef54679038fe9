//! Steps that publish pieces, and comparisons of the published view.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use reqwest::Method;
use serde_json::{Value, json};

use super::SCHEDULES_TIMEOUT;
use super::steps::Choice;
use super::workspace::{
    CheckResult, ModelEvent, PieceModel, ScheduleModel, WorkspaceModel, column, text,
};

impl WorkspaceModel<'_> {
    /// Records an event of the published view for a piece at `path`.
    pub(super) fn record_published_event(
        &mut self,
        event: &'static str,
        id: &str,
        before: Option<Vec<String>>,
        after: Option<Vec<String>>,
    ) {
        let is_published = true;
        self.record(ModelEvent { event, id: id.to_owned(), before, after, is_published });
    }

    pub(super) async fn publish(&mut self, piece: Choice, revision: Option<Choice>) -> CheckResult {
        let id = self.pick_piece(piece);
        let Some(at) = self.pieces.iter().position(|one| one.id == id) else {
            return self.post("/content-pieces/publish", &json!({"id": id}), 404).await.map(drop);
        };
        let mut body = json!({"id": id});
        let mut index = self.histories[&id].len() - 1;
        if let Some(revision) = revision {
            let ids = self.revision_ids(&id).await?;
            index = usize::from(revision) % ids.len();
            body["revision"] = json!(ids[index]);
        }
        self.post("/content-pieces/publish", &body, 204).await?;
        self.set_published(at, index);
        Ok(())
    }

    /// Publishes a revision of a piece, unless it is published already.
    fn set_published(&mut self, at: usize, index: usize) {
        let before = self.pieces[at].published.replace(index);
        if before == Some(index) {
            return;
        }
        let id = self.pieces[at].id.clone();
        let path = Some(self.path(&self.pieces[at].group));
        self.record_event("contentPiecePublished", &id, None, path.clone());
        match before {
            None => self.record_published_event("contentPieceAdded", &id, None, path),
            Some(_) => {
                self.record_published_event("contentPieceUpdated", &id, path.clone(), path);
            }
        }
    }

    pub(super) async fn publish_group(&mut self, group: Choice, subtree: bool) -> CheckResult {
        let id = self.pick_group(group);
        let exists = self.group(&id).is_some();
        let body = json!({"contentGroupId": id, "subtree": subtree});
        let expected = if exists { 204 } else { 400 };
        self.post("/content-pieces/publish", &body, expected).await?;
        if !exists {
            return Ok(());
        }
        let is_in = |piece: &&PieceModel| {
            piece.group == id || (subtree && self.path(&piece.group).contains(&id))
        };
        let mut ids: Vec<_> =
            self.pieces.iter().filter(is_in).map(|piece| piece.id.clone()).collect();
        // They are published in the order of their ids.
        ids.sort();
        for id in ids {
            let at = self.pieces.iter().position(|one| one.id == id).unwrap();
            self.set_published(at, self.histories[&id].len() - 1);
        }
        Ok(())
    }

    pub(super) async fn unpublish(&mut self, piece: Choice) -> CheckResult {
        let id = self.pick_piece(piece);
        let at = self.pieces.iter().position(|one| one.id == id);
        let expected = if at.is_some() { 204 } else { 404 };
        self.post("/content-pieces/unpublish", &json!({"id": id}), expected).await?;
        if let Some(at) = at {
            self.set_unpublished(at);
        }
        Ok(())
    }

    fn set_unpublished(&mut self, at: usize) {
        if self.pieces[at].published.take().is_none() {
            return;
        }
        let id = self.pieces[at].id.clone();
        let path = Some(self.path(&self.pieces[at].group));
        self.record_published_event("contentPieceRemoved", &id, path.clone(), None);
        self.record_event("contentPieceUnpublished", &id, None, path);
    }

    /// Schedules the publication of a piece after some minutes or cancels it, and schedules its
    /// end.
    pub(super) async fn schedule(
        &mut self,
        piece: Choice,
        revision: Option<Choice>,
        minutes: [Option<u8>; 2],
    ) -> CheckResult {
        let id = self.pick_piece(piece);
        let now = self.service.environment.now().ms();
        let time = |minutes: u8| Timestamp::from_ms(now + i64::from(minutes) * 60_000);
        let [publish_at, unpublish_at] = minutes.map(|minutes| minutes.map(time));
        // One request can't end a publication before it begins, but two can.
        let unpublish_at = unpublish_at.filter(|end| publish_at.is_none_or(|at| at < *end));
        let mut body = json!({"id": id, "at": publish_at.map(|at| at.to_string())});
        if let Some(at) = unpublish_at {
            body["unpublishAt"] = json!(at.to_string());
        }
        let Some(at) = self.pieces.iter().position(|one| one.id == id) else {
            return self.post("/content-pieces/publish", &body, 404).await.map(drop);
        };
        let mut publish_index = None;
        if let Some(revision) = revision.filter(|_| publish_at.is_some()) {
            let ids = self.revision_ids(&id).await?;
            let index = usize::from(revision) % ids.len();
            body["revision"] = json!(ids[index]);
            publish_index = Some(index);
        }
        self.post("/content-pieces/publish", &body, 204).await?;
        let unpublish_at = unpublish_at.or(self.pieces[at].schedule.unpublish_at);
        self.pieces[at].schedule = ScheduleModel { publish_at, publish_index, unpublish_at };
        Ok(())
    }

    /// Advances the clock past all scheduled times, and waits until the schedules have run.
    pub(super) async fn run_schedules(&mut self) -> CheckResult {
        let first = |piece: &PieceModel| {
            let ScheduleModel { publish_at, unpublish_at, .. } = piece.schedule;
            publish_at.into_iter().chain(unpublish_at).min()
        };
        let due = self.pieces.iter().filter_map(|piece| Some((first(piece)?, piece.id.clone())));
        let mut due: Vec<_> = due.collect();
        if due.is_empty() {
            return Ok(());
        }
        due.sort();
        self.service.advance_clock(Duration::from_hours(1));
        let started = Instant::now();
        loop {
            let list = self.get("/content-pieces/list?perPage=1000").await?;
            let is_scheduled = |piece: &Value| {
                let publication = &piece["publication"];
                !publication["publishAt"].is_null() || !publication["unpublishAt"].is_null()
            };
            if !list.as_array().unwrap().iter().any(is_scheduled) {
                break;
            }
            prop_assert!(started.elapsed() < SCHEDULES_TIMEOUT, "due schedules do not run: {list}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for (_, id) in due {
            let at = self.pieces.iter().position(|one| one.id == id).unwrap();
            let schedule = std::mem::take(&mut self.pieces[at].schedule);
            let index = schedule.publish_index.unwrap_or(self.histories[&id].len() - 1);
            match (schedule.publish_at, schedule.unpublish_at) {
                (Some(publish), Some(unpublish)) if unpublish < publish => {
                    self.set_unpublished(at);
                    self.set_published(at, index);
                }
                (publish, unpublish) => {
                    if publish.is_some() {
                        self.set_published(at, index);
                    }
                    if unpublish.is_some() {
                        self.set_unpublished(at);
                    }
                }
            }
        }
        Ok(())
    }

    async fn get_as_site(&self, path: &str) -> Result<Value, TestCaseError> {
        let response = self.service.send_as(&self.site, Method::GET, path, None).await;
        prop_assert_eq!(response.status, 200, "{} {:?}", path, response.body);
        Ok(response.body)
    }

    /// Returns the events that the model does not have yet, each with true if the published view
    /// alone shows it.
    pub(super) async fn new_events(&self) -> Result<Vec<(bool, Value)>, TestCaseError> {
        let path = format!("/events?perPage=1000&after={}", self.events.len());
        let mut all = BTreeMap::new();
        for (is_published, list) in
            [(false, self.get(&path).await?), (true, self.get_as_site(&path).await?)]
        {
            for event in list.as_array().unwrap() {
                let sequence = event["sequence"].as_u64().unwrap();
                all.entry(sequence).or_insert_with(|| (is_published, event.clone()));
            }
        }
        Ok(all.into_values().collect())
    }

    /// Returns a piece as an event's view shows it.
    pub(super) async fn seen_in_view(
        &self,
        is_published: bool,
        id: &str,
    ) -> Result<Value, TestCaseError> {
        let path = format!("/content-pieces?id={id}");
        if is_published { self.get_as_site(&path).await } else { self.get(&path).await }
    }

    /// Compares the lists and the feed of the published view.
    pub(super) async fn check_published(&self) -> CheckResult {
        let variants = self.variants.iter().map(|(id, _)| Some(id.as_str()));
        for variant in [None].into_iter().chain(variants) {
            let query = variant.map_or(String::new(), |variant| format!("&variant={variant}"));
            let path = format!("/content-pieces/list?perPage=1000{query}");
            let list = self.get_as_site(&path).await?;
            let found = list.as_array().unwrap().iter().map(|one| {
                let shown = (text(&one["title"]), column(&one["tags"], "id"));
                let variants = one["variants"].as_array().unwrap().iter().map(text);
                let place = (text(&one["id"]), text(&one["contentGroupId"]));
                (place, shown, variants.collect::<Vec<_>>())
            });
            let published = self.published();
            let expected = published.iter().map(|one| {
                let variants = one.overrides.keys().map(|id| self.variant_key(id));
                let place = (one.id.clone(), one.group.clone());
                (place, one.shown(variant), variants.collect::<Vec<_>>())
            });
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
        for (tag, _) in &self.tags {
            let path = format!("/content-pieces/list?perPage=1000&tagId={tag}");
            let list = self.get_as_site(&path).await?;
            let tagged = self.published().into_iter().filter(|piece| piece.tags.contains(tag));
            let expected: Vec<_> = tagged.map(|piece| piece.id).collect();
            prop_assert_eq!(column(&list, "id"), expected);
        }
        let feed = self.get_as_site("/events?perPage=1000").await?;
        let found: Vec<_> = feed
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                (one["sequence"].as_i64().unwrap(), text(&one["type"]), text(&one["data"]["id"]))
            })
            .collect();
        let is_seen = |one: &ModelEvent| match one.event {
            "tagChanged" => false,
            event if event.starts_with("contentPiece") => one.is_published,
            event => event.starts_with("contentGroup") || event == "variantChanged",
        };
        let expected: Vec<_> = (1..)
            .zip(&self.events)
            .filter(|(_, one)| is_seen(one))
            .map(|(number, one)| (number, one.event.to_owned(), one.id.clone()))
            .collect();
        // Only the first page is compared.
        prop_assert_eq!(&found, &expected[..expected.len().min(found.len())]);
        Ok(())
    }

    /// Returns the published pieces as they are at their published revisions.
    pub(super) fn published(&self) -> Vec<PieceModel> {
        let at_revision = |piece: &PieceModel| {
            let state = self.state_at(&piece.id, piece.published?);
            let (title, tags, overrides) = (state.title, state.tags, state.overrides);
            Some(PieceModel { title, tags, overrides, ..piece.clone() })
        };
        self.pieces.iter().filter_map(at_revision).collect()
    }
}
