//! Comparisons of the service's state with the model's.

use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use reqwest::Method;
use serde_json::{Value, json};

use super::FAN_OUT_TIMEOUT;
use super::workspace::{
    CheckResult, GroupModel, PieceModel, ScheduleModel, WorkspaceModel, column, is_of_groups, text,
};

impl WorkspaceModel<'_> {
    /// Checks that the service's state equals the model's.
    pub(super) async fn check(&self) -> CheckResult {
        self.check_pieces().await?;
        self.check_revisions().await?;
        self.check_published().await?;
        self.check_trash().await?;
        self.check_searches().await?;
        self.check_groups().await?;
        self.check_tags().await?;
        self.check_filters().await?;
        self.check_reference_filters().await?;
        let ids =
            |pairs: &[(String, String)]| pairs.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        for (path, known) in
            [("/tags", &self.tags), ("/variants", &self.variants), ("/roles", &self.roles)]
        {
            let list = self.get(&format!("{path}/list?perPage=1000")).await?;
            prop_assert_eq!(column(&list, "id"), ids(known));
        }
        let members = self.list("/workspace-memberships/list-members?perPage=1000").await?;
        let members =
            members.iter().map(|one| ["id", "email", "roleId"].map(|name| text(&one[name])));
        let expected =
            self.members.iter().map(|one| [&one.id, &one.email, &one.role].map(String::clone));
        prop_assert_eq!(members.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        let webhooks = self.list("/webhooks/list?perPage=1000").await?;
        let webhooks =
            webhooks.iter().map(|one| (text(&one["id"]), one["enabled"].as_bool().unwrap()));
        let expected = self.webhooks.iter().map(|one| (one.id.clone(), one.enabled));
        prop_assert_eq!(webhooks.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        self.check_events().await?;
        self.check_deliveries().await
    }

    /// Compares the list of pieces, without a variant and in each.
    async fn check_pieces(&self) -> CheckResult {
        let variants = self.variants.iter().map(|(id, _)| Some(id.as_str()));
        let (member, name) = (&self.members[0].id, self.members[0].email.split('@').next());
        let author = |token: &String| json!({"type": "token", "id": token, "memberId": member, "name": name});
        for variant in [None].into_iter().chain(variants) {
            let query = variant.map_or(String::new(), |variant| format!("&variant={variant}"));
            let path = format!("/content-pieces/list?perPage=7{query}");
            let list = self.walk(&path, "lastOrder", "order").await?;
            let found = list.iter().map(|one| {
                let shown = (text(&one["title"]), column(&one["tags"], "id"));
                let variants = one["variants"].as_array().unwrap().iter().map(text).collect();
                let place = (text(&one["id"]), text(&one["contentGroupId"]));
                let authors = ["createdBy", "updatedBy"].map(|name| one[name].clone());
                let publication = ["state", "publishAt", "unpublishAt"];
                let publication = publication.map(|name| one["publication"][name].clone());
                (place, shown, variants, authors, publication)
            });
            let expected = self.pieces.iter().map(|one| {
                let variants = one.overrides.keys().map(|id| self.variant_key(id));
                let variants = variants.collect::<Vec<_>>();
                let place = (one.id.clone(), one.group.clone());
                let authors = one.authors.each_ref().map(author);
                (place, one.shown(variant), variants, authors, self.expected_publication(one))
            });
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Returns the state of a piece's publication and its scheduled times.
    fn expected_publication(&self, piece: &PieceModel) -> [Value; 3] {
        let latest = self.histories[&piece.id].len() - 1;
        let state = match piece.published {
            None => "draft",
            Some(index) if index == latest => "published",
            Some(_) => "changed",
        };
        let time = |time: Option<Timestamp>| json!(time.map(|time| time.to_string()));
        let ScheduleModel { publish_at, unpublish_at, .. } = piece.schedule;
        [json!(state), time(publish_at), time(unpublish_at)]
    }

    pub(super) fn variant_key(&self, id: &str) -> String {
        let found = self.variants.iter().find(|(known, _)| known == id);
        found.map(|(_, key)| key.clone()).unwrap_or_default()
    }

    /// Returns the ids of the pieces that meet a condition, in list order.
    fn pieces_with(&self, condition: impl Fn(&PieceModel) -> bool) -> Vec<String> {
        let found = self.pieces.iter().filter(|piece| condition(piece));
        found.map(|piece| piece.id.clone()).collect()
    }

    async fn check_groups(&self) -> CheckResult {
        for GroupModel { id, name, .. } in &self.groups {
            let path =
                format!("/content-pieces/list?perPage=1000&subtree=true&contentGroupId={id}");
            let expected = self.pieces_with(|piece| self.path(&piece.group).contains(id));
            prop_assert_eq!(column(&self.get(&path).await?, "id"), expected);
            let shown = self.get(&format!("/content-groups?id={id}")).await?;
            let mut path = self.path(id);
            path.pop();
            let children = self.groups.iter().filter(|one| one.parent.as_ref() == Some(id));
            let children: Vec<_> = children.map(|one| one.id.clone()).collect();
            prop_assert_eq!(&shown["name"], &json!(name));
            prop_assert_eq!(&shown["ancestors"], &json!(path));
            prop_assert_eq!(&shown["descendants"], &json!(children));
        }
        Ok(())
    }

    async fn check_tags(&self) -> CheckResult {
        for (tag, label) in &self.tags {
            let list = self.get(&format!("/content-pieces/list?perPage=1000&tagId={tag}")).await?;
            let expected = self.pieces_with(|piece| piece.tags.contains(tag));
            prop_assert_eq!(column(&list, "id"), expected);
            prop_assert_eq!(&self.get(&format!("/tags?id={tag}")).await?["label"], &json!(label));
        }
        Ok(())
    }

    /// Returns the ids of the pieces in a filtered list, read page by page, and checks their count.
    async fn filtered(&self, filter: &str) -> Result<Vec<String>, TestCaseError> {
        let path = format!("/content-pieces/list?perPage=9&{filter}");
        let ids: Vec<_> = self.walk(&path, "lastOrder", "order").await?;
        let ids: Vec<_> = ids.iter().map(|one| text(&one["id"])).collect();
        let path = format!("/content-pieces/list?perPage=1&total=true&{filter}");
        let counted = self.service.send_as(&self.token, Method::GET, &path, None).await;
        prop_assert_eq!(counted.header("total-count"), ids.len().to_string(), "{}", filter);
        Ok(ids)
    }

    /// Compares lists by several tags, by members and by overridden variants.
    async fn check_reference_filters(&self) -> CheckResult {
        let variants = self.variants.iter().map(|(id, _)| Some(id.as_str())).take(2);
        for variant in [None].into_iter().chain(variants) {
            let query = variant.map_or(String::new(), |variant| format!("&variant={variant}"));
            for pair in self.tags.windows(2) {
                let [(one, _), (other, _)] = pair else { unreachable!("a window of two") };
                let filter = format!("tagId={one},{other}{query}");
                let shown = |piece: &PieceModel| piece.shown(variant).1;
                let any = self.pieces_with(|piece| {
                    shown(piece).contains(one) || shown(piece).contains(other)
                });
                prop_assert_eq!(self.filtered(&filter).await?, any);
                let all = self.pieces_with(|piece| {
                    shown(piece).contains(one) && shown(piece).contains(other)
                });
                prop_assert_eq!(self.filtered(&format!("{filter}&allTags=true")).await?, all);
            }
            for member in &self.members {
                let expected = self.pieces_with(|piece| piece.members.contains(&member.id));
                let filter = format!("memberId={}{query}", member.id);
                prop_assert_eq!(self.filtered(&filter).await?, expected);
            }
            for (id, key) in &self.variants {
                let expected = self.pieces_with(|piece| piece.overrides.contains_key(id));
                let key = key.to_uppercase();
                let found = self.filtered(&format!("hasVariant={key}{query}")).await?;
                prop_assert_eq!(found, expected);
                let expected = self.pieces_with(|piece| !piece.overrides.contains_key(id));
                let found = self.filtered(&format!("withoutVariant={key}{query}")).await?;
                prop_assert_eq!(found, expected);
            }
        }
        let (Some((tag, _)), Some(member)) = (self.tags.first(), self.members.first()) else {
            return Ok(());
        };
        let with_both =
            |piece: &PieceModel| piece.tags.contains(tag) && piece.members.contains(&member.id);
        let filter = format!("tagId={tag}&memberId={}", member.id);
        prop_assert_eq!(self.filtered(&filter).await?, self.pieces_with(with_both));
        Ok(())
    }

    /// Compares lists by identifiers and times.
    async fn check_filters(&self) -> CheckResult {
        let filtered = async |filter: &str| self.filtered(filter).await;
        for (from, to) in [("2026-01-01", "2026-01-01"), ("2026-01-02", "2026-01-09")] {
            let expected = self.pieces_with(|piece| {
                piece.date.as_deref().is_some_and(|date| from <= date && date <= to)
            });
            let found = filtered(&format!("dateFrom={from}&dateTo={to}")).await?;
            prop_assert_eq!(found, expected);
        }
        let some: Vec<_> = self.pieces.iter().step_by(3).take(100).map(|one| &*one.id).collect();
        let expected = self.pieces_with(|piece| some.contains(&&*piece.id));
        if !some.is_empty() {
            prop_assert_eq!(filtered(&format!("ids={}", some.join(","))).await?, expected);
        }
        for state in ["draft", "published", "changed", "scheduled"] {
            let expected = self.pieces_with(|piece| {
                let [shown, publish_at, _] = self.expected_publication(piece);
                if state == "scheduled" { !publish_at.is_null() } else { shown == state }
            });
            prop_assert_eq!(filtered(&format!("state={state}")).await?, expected);
        }
        let all = self.list("/content-pieces/list?perPage=1000&sort=updatedAt").await?;
        if let Some(middle) = all.get(all.len() / 2) {
            let since = text(&middle["updatedAt"]);
            let later = all.iter().filter(|one| text(&one["updatedAt"]) >= since);
            let expected: Vec<_> = later.map(|one| text(&one["id"])).collect();
            let path = format!("perPage=1000&sort=updatedAt&updatedSince={since}");
            let found = self.get(&format!("/content-pieces/list?{path}")).await?;
            prop_assert_eq!(column(&found, "id"), expected);
        }
        Ok(())
    }

    async fn list(&self, path: &str) -> Result<Vec<Value>, TestCaseError> {
        Ok(self.get(path).await?.as_array().unwrap().clone())
    }

    /// Returns a whole list, paged by the last item's field.
    pub(super) async fn walk(
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
            .zip(&self.events)
            .filter(|(_, one)| !one.is_published)
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
            .collect();
        let expected: Vec<_> = (1..)
            .zip(&self.events)
            .filter(|(_, one)| is_of_groups(one.event) && !one.is_published)
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
