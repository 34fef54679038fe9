//! Steps that change tags and variants.

use serde_json::json;

use super::steps::Choice;
use super::workspace::{CheckResult, WorkspaceModel, text};

impl WorkspaceModel<'_> {
    pub(super) async fn make_tag(&mut self, label: u8) -> CheckResult {
        let label = format!("tag {label}");
        let made = self.post("/tags", &json!({"label": label}), 201).await?;
        let id = text(&made["id"]);
        self.record_event("tagChanged", &id, None, None);
        self.tags.push((id, label));
        Ok(())
    }

    pub(super) async fn rename_tag(&mut self, tag: Choice, label: u8) -> CheckResult {
        let (id, label) = (self.pick_tag(tag), format!("tag {label}"));
        let expected = if self.has_tags(std::slice::from_ref(&id)) { 204 } else { 404 };
        self.put("/tags", &json!({"id": id, "label": label}), expected).await?;
        if let Some((_, known)) = self.tags.iter_mut().find(|(known, _)| *known == id)
            && *known != label
        {
            *known = label;
            self.record_event("tagChanged", &id, None, None);
        }
        Ok(())
    }

    pub(super) async fn delete_tag(&mut self, tag: Choice) -> CheckResult {
        let id = self.pick_tag(tag);
        let exists = self.has_tags(std::slice::from_ref(&id));
        self.delete(&format!("/tags?id={id}"), if exists { 204 } else { 404 }).await?;
        if exists {
            self.tags.retain(|(known, _)| *known != id);
            for piece in &mut self.pieces {
                piece.tags.retain(|tag| *tag != id);
                for tags in piece.overrides.values_mut().filter_map(|one| one.tags.as_mut()) {
                    tags.retain(|tag| *tag != id);
                }
            }
            self.record_event("tagChanged", &id, None, None);
            self.deleted.push(id);
        }
        Ok(())
    }

    pub(super) async fn make_variant(&mut self, key: u8) -> CheckResult {
        let key =
            if self.made.is_multiple_of(2) { format!("de-{key}") } else { format!("DE-{key}") };
        let taken = self.variants.iter().any(|(_, known)| known.eq_ignore_ascii_case(&key));
        let body = json!({"key": key, "label": "a variant"});
        let made = self.post("/variants", &body, if taken { 409 } else { 201 }).await?;
        if !taken {
            let id = text(&made["id"]);
            self.record_event("variantChanged", &id, None, None);
            self.variants.push((id, key));
        }
        Ok(())
    }

    pub(super) async fn delete_variant(&mut self, variant: Choice) -> CheckResult {
        let id = self.pick_variant(variant);
        let exists = self.variants.iter().any(|(known, _)| *known == id);
        self.delete(&format!("/variants?id={id}"), if exists { 204 } else { 404 }).await?;
        if exists {
            self.variants.retain(|(known, _)| *known != id);
            for piece in &mut self.pieces {
                piece.overrides.remove(&id);
            }
            self.record_event("variantChanged", &id, None, None);
            self.deleted.push(id);
        }
        Ok(())
    }
}
