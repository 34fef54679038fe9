//! The place where an import keeps its pieces: a database, or a server in front of one.

use galley_domain::content_group::ContentGroupName;
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::tag::TagLabel;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceMemberId};

use super::raw::{Document, Form};

/// The reason for which a document was not kept.
#[derive(Debug)]
pub(super) enum Failure {
    /// It is at fault itself; all else can be kept.
    Refused(String),
    /// Its piece was changed since it was read.
    Stale,
    /// Nothing else would be kept either.
    Broken(anyhow::Error),
}

/// The result of importing one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Updated,
    Unchanged,
    /// The source and the piece were both changed since the last import.
    Conflict,
    Refused(String),
}

/// A piece that is there.
#[derive(Debug)]
pub(super) struct KnownPiece {
    pub(super) id: ContentPieceId,
    /// The name of the source that it was imported from.
    pub(super) source: Option<String>,
    /// The sources that earlier imports noted, by variant.
    pub(super) sources: Vec<(Option<VariantKey>, ImportSource)>,
}

/// The present state of a piece, or of a piece in a variant.
#[derive(Debug)]
pub(super) struct CurrentPiece {
    /// The hash of what an import writes.
    pub(super) hash: SourceHash,
    pub(super) cover_width: Option<String>,
    /// Opaque; another one after each change.
    pub(super) version: String,
    /// In a variant: nothing that an import writes differs from the piece itself.
    pub(super) is_as_piece: bool,
}

/// The work on a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Creates a piece in this group, by these members.
    Create { group: ContentGroupId, members: Vec<WorkspaceMemberId> },
    /// Updates a piece, if it still has the version, and moves it into another group.
    Update { id: ContentPieceId, version: Option<String>, group: Option<ContentGroupId> },
    /// Notes the source alone, as the piece already is what it says.
    Note { id: ContentPieceId },
}

/// A document with all that was looked up for it.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) document: Document,
    pub(super) task: Task,
    pub(super) variant: Option<VariantKey>,
    /// Its own tags, and those that every piece gets.
    pub(super) labels: Vec<TagLabel>,
    pub(super) source: ImportSource,
}

impl Prepared {
    pub(super) fn refused(&self, problem: &str) -> Kept {
        let place = &self.document.place;
        Kept { id: None, outcome: Outcome::Refused(format!("{place}: {problem}")) }
    }
}

/// The result of keeping a document.
#[derive(Debug)]
pub(super) struct Kept {
    /// The piece that it is now.
    pub(super) id: Option<ContentPieceId>,
    pub(super) outcome: Outcome,
}

/// The operations of an import on the place where its pieces are kept.
pub(super) trait Place {
    /// The number of documents that are best kept together.
    const BATCH: usize;

    /// The form in which it takes content.
    const FORM: Form;

    /// Finds a content group by its id or path.
    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId>;

    /// Finds a content group by its path, if there is one.
    async fn find_path(&self, path: &str) -> anyhow::Result<Option<ContentGroupId>>;

    /// Lists the pieces directly in a group, or also those below it, or all there are.
    async fn pieces(
        &mut self,
        group: Option<ContentGroupId>,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>>;

    /// Lists the members, each by all the names that sources may have for it.
    async fn people(&self) -> anyhow::Result<Vec<(String, WorkspaceMemberId)>>;

    /// Lists the keys of the variants.
    async fn variants(&self) -> anyhow::Result<Vec<VariantKey>>;

    /// Reads the present states of pieces; `None` of one that is gone.
    async fn current(
        &self,
        wanted: &[(ContentPieceId, Option<VariantKey>)],
    ) -> anyhow::Result<Vec<Option<CurrentPiece>>>;

    /// Finds the group of a name below another one or at the top, or creates it.
    async fn group(
        &self,
        parent: Option<ContentGroupId>,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, Failure>;

    /// Creates a variant, if it isn't there.
    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), Failure>;

    /// Keeps documents; returns the result of each, in their order.
    async fn keep(&mut self, documents: Vec<Prepared>) -> anyhow::Result<Vec<Kept>>;

    /// Closes it.
    async fn close(self);
}
