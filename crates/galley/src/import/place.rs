//! Where an import keeps its pieces: a database, or a server in front of one.

use galley_domain::content_group::ContentGroupName;
use galley_domain::tag::TagLabel;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceMemberId};

use super::raw::{Document, Form};

/// Why something was not kept.
#[derive(Debug)]
pub(super) enum Failure {
    /// It is at fault itself; all else can be kept.
    Refused(String),
    /// Nothing else would be kept either.
    Broken(anyhow::Error),
}

/// What came of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Updated,
    Unchanged,
    Refused(String),
}

/// A piece that is there.
#[derive(Debug)]
pub(super) struct KnownPiece {
    pub(super) id: ContentPieceId,
    /// The name of the source that it was made of.
    pub(super) source: Option<String>,
}

/// A document with all that was looked up for it.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) document: Document,
    pub(super) known: Option<ContentPieceId>,
    /// Where it goes if it is new.
    pub(super) group: ContentGroupId,
    /// Who made it, if it is new.
    pub(super) members: Vec<WorkspaceMemberId>,
    pub(super) variant: Option<VariantKey>,
    /// Its own tags, and those that every piece gets.
    pub(super) labels: Vec<TagLabel>,
}

impl Prepared {
    pub(super) fn refused(&self, problem: &str) -> Kept {
        let place = &self.document.place;
        Kept { id: None, outcome: Outcome::Refused(format!("{place}: {problem}")) }
    }
}

/// What became of a document.
#[derive(Debug)]
pub(super) struct Kept {
    /// The piece that it is now.
    pub(super) id: Option<ContentPieceId>,
    pub(super) outcome: Outcome,
}

/// What an import asks of the place where its pieces are kept.
pub(super) trait Place {
    /// How many documents are best kept together.
    const BATCH: usize;

    /// How it takes content.
    const FORM: Form;

    /// The content group of an id, or the oldest one at the top of a name.
    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId>;

    /// The pieces directly in a group, or also below it.
    async fn pieces(
        &mut self,
        group: ContentGroupId,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>>;

    /// The members, each by all that sources may call it.
    async fn people(&self) -> anyhow::Result<Vec<(String, WorkspaceMemberId)>>;

    /// The group of a name below another one; made if it isn't there.
    async fn group(
        &self,
        parent: ContentGroupId,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, Failure>;

    /// Makes a variant, if it isn't there.
    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), Failure>;

    /// Keeps documents; says of each, in their order, what became of it.
    async fn keep(&mut self, documents: Vec<Prepared>) -> anyhow::Result<Vec<Kept>>;

    /// Lets go of it.
    async fn close(self);
}
