//! The destination of an import: a database, or a server in front of one.

use galley_domain::content_group::ContentGroupName;
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::tag::TagLabel;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceMemberId};

use crate::authors::KnownMember;
use crate::publication::{PiecePublication, PublicationChange};
use crate::raw::{ContentForm, Document};

/// The reason why a document was not written.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    /// The document itself is invalid. Other documents can still be written.
    Rejected(String),
    /// The piece changed after it was read.
    Conflict,
    /// No further document could be written either.
    Failed(anyhow::Error),
}

/// The result of importing one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// A new piece.
    Created,
    /// A piece that was changed.
    Updated,
    /// A piece that equals the source.
    Unchanged,
    /// The source and the piece were both changed since the last import.
    Conflict,
    /// The problem of the document, without its place.
    Rejected(String),
}

/// An existing piece.
#[derive(Debug)]
pub(crate) struct KnownPiece {
    pub(crate) id: ContentPieceId,
    /// The name of the source that it was imported from.
    pub(crate) source: Option<String>,
    /// The sources that earlier imports recorded, by variant.
    pub(crate) sources: Vec<(Option<VariantKey>, ImportSource)>,
}

/// The current state of a piece, or of a piece in a variant.
#[derive(Debug)]
pub(crate) struct CurrentPiece {
    /// The hash of the fields that an import writes.
    pub(crate) hash: SourceHash,
    pub(crate) cover_width: Option<String>,
    /// An opaque version that differs after each change.
    pub(crate) version: String,
    pub(crate) publication: PiecePublication,
    /// In a variant: true if all fields that an import writes equal those of the piece itself.
    pub(crate) equals_piece: bool,
}

/// The action for a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Creates a piece in this group, by these members.
    Create { group: ContentGroupId, members: Vec<WorkspaceMemberId> },
    /// Updates a piece if it still has this version.
    Update { id: ContentPieceId, version: Option<String> },
    /// Notes only the source, as the piece equals it already. A change of the publication requires
    /// this version.
    Record { id: ContentPieceId, version: String },
    /// Changes only the publication, as the piece was edited in Galley.
    Withdraw { id: ContentPieceId },
}

/// A document with its resolved references.
#[derive(Debug, Clone)]
pub(crate) struct PreparedDocument {
    pub(crate) document: Document,
    pub(crate) task: Task,
    pub(crate) publication: PublicationChange,
    pub(crate) variant: Option<VariantKey>,
    /// Its own tags, and the tags that every piece gets.
    pub(crate) labels: Vec<TagLabel>,
    pub(crate) source: ImportSource,
    /// The source to note before the update of a published piece, so that the next import completes
    /// an interrupted publication. A destination with transactions needs none.
    pub(crate) pending: Option<ImportSource>,
}

impl PreparedDocument {
    /// Returns true if only the publication of the piece ends.
    pub(crate) fn is_withdrawn(&self) -> bool {
        matches!(self.task, Task::Withdraw { .. })
    }
}

/// The result of writing a document.
#[derive(Debug)]
pub(crate) struct WriteResult {
    /// The piece that was created or updated.
    pub(crate) id: Option<ContentPieceId>,
    pub(crate) outcome: ImportOutcome,
}

impl WriteResult {
    pub(crate) fn rejected(problem: String) -> Self {
        Self { id: None, outcome: ImportOutcome::Rejected(problem) }
    }
}

/// The operations of an import on its destination.
pub(crate) trait Destination {
    /// The best number of documents in a batch.
    const BATCH: usize;

    /// The form in which the destination accepts content.
    const FORM: ContentForm;

    /// Finds a content group by its id or path.
    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId>;

    /// Lists the pieces directly in a group, in its subtree, or in the whole workspace.
    async fn pieces(
        &mut self,
        group: Option<ContentGroupId>,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>>;

    /// Lists the members.
    async fn members(&self) -> anyhow::Result<Vec<KnownMember>>;

    /// Lists the keys of the variants.
    async fn variants(&self) -> anyhow::Result<Vec<VariantKey>>;

    /// Reads the current states of pieces; `None` for deleted ones.
    async fn current(
        &self,
        wanted: &[(ContentPieceId, Option<VariantKey>)],
    ) -> anyhow::Result<Vec<Option<CurrentPiece>>>;

    /// Finds a group by its name below another one, or creates it.
    async fn group(
        &self,
        parent: ContentGroupId,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, WriteFailure>;

    /// Creates a variant, unless it exists.
    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), WriteFailure>;

    /// Writes documents. Returns their results in the same order.
    async fn write(&mut self, documents: Vec<PreparedDocument>)
    -> anyhow::Result<Vec<WriteResult>>;
}
