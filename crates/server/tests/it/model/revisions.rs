//! Steps that restore revisions, and comparisons of earlier states.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use super::steps::Choice;
use super::workspace::{
    CheckResult, ModelOverrides, PieceModel, PieceState, WorkspaceModel, column, text,
};

impl WorkspaceModel<'_> {
    /// Adds the state of a piece after a change to its history.
    pub(super) fn record_revision(&mut self, piece: &PieceModel) {
        let states = self.histories.entry(piece.id.clone()).or_default();
        states.push(PieceState::of(piece));
    }

    /// Returns the state of a piece at a revision, without tags and variants that no longer exist.
    pub(super) fn state_at(&self, piece: &str, index: usize) -> PieceState {
        let mut state = self.histories[piece][index].clone();
        let exists = |tag: &String| self.has_tags(std::slice::from_ref(tag));
        state.tags.retain(exists);
        state.overrides.retain(|id, _| self.variants.iter().any(|(known, _)| known == id));
        for tags in state.overrides.values_mut().filter_map(|one| one.tags.as_mut()) {
            tags.retain(exists);
        }
        state
    }

    /// Returns the ids of the revisions of a piece, the first one first.
    pub(super) async fn revision_ids(&self, piece: &str) -> Result<Vec<String>, TestCaseError> {
        let path = format!("/content-pieces/revisions?perPage=1000&id={piece}");
        let mut ids = column(&self.get(&path).await?, "id");
        ids.reverse();
        Ok(ids)
    }

    pub(super) async fn restore_revision(
        &mut self,
        piece: Choice,
        revision: Choice,
        only_title: bool,
    ) -> CheckResult {
        let id = self.pick_piece(piece);
        let Some(at) = self.pieces.iter().position(|one| one.id == id) else {
            let body = json!({"id": id, "revision": "rev_00000000000000000000000000"});
            return self.post("/content-pieces/restore", &body, 404).await.map(drop);
        };
        let ids = self.revision_ids(&id).await?;
        prop_assert_eq!(ids.len(), self.histories[&id].len());
        let index = usize::from(revision) % ids.len();
        let mut body = json!({"id": id, "revision": ids[index]});
        if only_title {
            body["fields"] = json!(["title"]);
        }
        self.post("/content-pieces/restore", &body, 204).await?;
        let state = self.state_at(&id, index);
        let mut piece = self.pieces[at].clone();
        let path = self.path(&piece.group);
        let variants: Vec<_> = self.variants.iter().map(|(id, _)| id.clone()).collect();
        let parts = [None].into_iter().chain(variants.iter().map(Some));
        for part in parts {
            let before = piece.clone();
            match part {
                None => {
                    piece.title.clone_from(&state.title);
                    if !only_title {
                        piece.tags.clone_from(&state.tags);
                    }
                }
                Some(variant) => {
                    let then = state.overrides.get(variant).cloned().unwrap_or_default();
                    let mut overrides = piece.overrides.remove(variant).unwrap_or_default();
                    overrides.title = then.title;
                    if !only_title {
                        overrides.tags = then.tags;
                    }
                    if overrides != ModelOverrides::default() {
                        piece.overrides.insert(variant.clone(), overrides);
                    }
                }
            }
            if piece != before {
                piece.authors[1] = self.token_id.clone();
                self.record_revision(&piece);
                self.record_event(
                    "contentPieceUpdated",
                    &id,
                    Some(path.clone()),
                    Some(path.clone()),
                );
            }
        }
        self.pieces[at] = piece;
        Ok(())
    }

    /// Compares some pieces as they were at a revision, without a variant and in each.
    pub(super) async fn check_revisions(&self) -> CheckResult {
        for piece in self.pieces.iter().step_by(5) {
            let (id, ids) = (&piece.id, self.revision_ids(&piece.id).await?);
            prop_assert_eq!(ids.len(), self.histories[id].len());
            let index = self.made % ids.len();
            let state = self.state_at(id, index);
            let then = PieceModel {
                title: state.title,
                tags: state.tags,
                overrides: state.overrides,
                ..piece.clone()
            };
            let variants = self.variants.iter().map(|(id, _)| Some(id.as_str()));
            for variant in [None].into_iter().chain(variants) {
                let query = variant.map_or(String::new(), |variant| format!("&variant={variant}"));
                let path =
                    format!("/content-pieces/revision?id={id}&revision={}{query}", ids[index]);
                let found = self.get(&path).await?;
                let shown = (text(&found["title"]), column(&found["tags"], "id"));
                prop_assert_eq!(shown, then.shown(variant));
                let overridden = found["variants"].as_array().unwrap().iter().map(text);
                let expected = then.overrides.keys().map(|id| self.variant_key(id));
                prop_assert_eq!(overridden.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
        }
        Ok(())
    }
}
