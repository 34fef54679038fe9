//! Revisions: the recorded changes of a piece and of its variants.

use std::borrow::Cow;

use crate::actor::Actor;
use crate::content_piece::{ContentPieceOverrides, MalformedField, PieceField};
use crate::id::VariantId;
use crate::named_enum;
use crate::text::line_of_text;
use crate::time::Timestamp;

/// The age in milliseconds at which an autosave is no longer replaced by the next one.
pub const AUTOSAVE_REPLACED_MS: i64 = 10 * 60 * 1_000;

/// The time in milliseconds without an edit after which the event of autosaves is raised.
pub const AUTOSAVE_EVENT_DELAY_MS: i64 = 60 * 1_000;

named_enum! {
    /// The entry point of a change.
    #[derive(Default)]
    pub enum Origin {
        /// A request to the JSON API.
        #[default]
        Api = "api",
        /// The web console.
        Console = "console",
        /// An import or a bundle.
        Import = "import",
        /// An agent.
        Agent = "agent",
        /// The restoration of an earlier revision.
        Restore = "restore",
        /// A schedule.
        Schedule = "schedule",
    }
}

line_of_text! {
    /// A note on a revision: 1 to 255 characters without control characters.
    RevisionNote(1..=255)
}

/// A revision: the change of a piece, or of its overrides in one variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The position among the changes of the piece and its variants, from 1 on.
    pub number: i64,
    /// The variant whose overrides it changed; `None` for the piece itself.
    pub variant: Option<VariantId>,
    /// The time of the change.
    pub created_at: Timestamp,
    /// The author, if it is known.
    pub created_by: Option<Actor>,
    /// The entry point.
    pub origin: Origin,
    /// The changed fields, in the order of [`PieceField`]; empty for the first revision.
    pub fields: Vec<PieceField>,
    /// The note.
    pub note: Option<RevisionNote>,
    /// True if the next autosave may replace it.
    pub is_autosave: bool,
}

/// The values of a part of a piece: of the piece itself, or of its overrides in one variant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartState {
    /// The fields. The piece itself has each required one.
    pub fields: ContentPieceOverrides,
    /// The content's tree as JSON. `None` in a variant falls back to the piece.
    pub content: Option<String>,
}

impl PartState {
    /// Returns the value of a field as a text.
    pub fn text(&self, field: PieceField) -> Option<Cow<'_, str>> {
        match field {
            PieceField::Content => self.content.as_deref().map(Cow::Borrowed),
            field => self.fields.text(field),
        }
    }

    /// Sets a field to the value of a text.
    pub fn set_text(
        &mut self,
        field: PieceField,
        text: Option<&str>,
    ) -> Result<(), MalformedField> {
        if field == PieceField::Content {
            self.content = text.map(str::to_owned);
            return Ok(());
        }
        self.fields.set_text(field, text)
    }

    /// Returns the fields that differ from those of `other`.
    pub fn differences(&self, other: &Self) -> Vec<PieceField> {
        let mut fields = Vec::new();
        self.fields.push_differences(&other.fields, &mut fields);
        if self.content != other.content {
            fields.push(PieceField::Content);
        }
        fields
    }
}
