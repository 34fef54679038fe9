//! Comparisons of searches with the model.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use reqwest::Method;

use super::FAN_OUT_TIMEOUT;
use super::workspace::{CheckResult, PieceModel, WorkspaceModel, text};

/// The limit on hits of a page.
const PAGE: usize = 100;

impl WorkspaceModel<'_> {
    /// Compares searches for some titles and tags in each view, scope and variant.
    ///
    /// Until the index has all changes, searches may lack pieces. They never find one that no
    /// longer exists in the view and scope.
    pub(super) async fn check_searches(&self) -> CheckResult {
        let is_limited = |piece: &&PieceModel| self.path(&piece.group).contains(&self.first_group);
        let limited = self.pieces.iter().filter(is_limited).cloned().collect();
        let published = self.published();
        for (token, visible) in
            [(&self.token, self.pieces.clone()), (&self.limited, limited), (&self.site, published)]
        {
            let variants = self.variants.iter().map(|(id, _)| Some(id.as_str()));
            for variant in [None].into_iter().chain(variants) {
                let title = format!("title {}", self.made % 6);
                // A renamed tag may leave any of its earlier labels in the index.
                let labels = (0..6).map(|number| format!("tag {number}"));
                for words in labels.chain([title]) {
                    self.check_search(token, &visible, variant, &words).await?;
                }
            }
        }
        Ok(())
    }

    async fn check_search(
        &self,
        token: &str,
        visible: &[PieceModel],
        variant: Option<&str>,
        words: &str,
    ) -> CheckResult {
        let has_words = |piece: &&PieceModel| {
            let (title, tags) = piece.shown(variant);
            let has_label = |(id, label): &(String, String)| label == words && tags.contains(id);
            title == words || self.tags.iter().any(has_label)
        };
        let id = |piece: &PieceModel| piece.id.clone();
        let expected: BTreeSet<String> = visible.iter().filter(has_words).map(id).collect();
        if expected.len() > PAGE {
            return Ok(());
        }
        let existing: BTreeSet<String> = visible.iter().map(id).collect();
        let query = words.replace(' ', "%20");
        let variant = variant.map_or(String::new(), |variant| format!("&variant={variant}"));
        let path =
            format!("/content-pieces/search?query=%22{query}%22&fields=id&perPage={PAGE}{variant}");
        let started = Instant::now();
        loop {
            let response = self.service.send_as(token, Method::GET, &path, None).await;
            prop_assert_eq!(response.status.as_u16(), 200, "{} {:?}", path, response.body);
            let hits = response.body.as_array().unwrap().iter();
            let found: BTreeSet<String> = hits.map(|hit| text(&hit["piece"]["id"])).collect();
            prop_assert!(found.is_subset(&existing), "{} finds {:?}", path, found);
            if found == expected {
                return Ok(());
            }
            let waits = started.elapsed() < FAN_OUT_TIMEOUT;
            prop_assert!(waits, "{} finds {:?}, not {:?}", path, found, expected);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
