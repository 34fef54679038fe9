//! Publication: the revision of a piece that readers of the published view see.

use crate::actor::Actor;
use crate::named_enum;
use crate::time::Timestamp;

named_enum! {
    /// A view of the content of a workspace.
    #[derive(Default)]
    pub enum ContentView {
        /// All pieces, each with its latest change.
        #[default]
        Current = "current",
        /// Published pieces only, each at its published revision.
        Published = "published",
    }
}

named_enum! {
    /// The state of a piece's publication.
    pub enum PublicationState {
        /// It is not published.
        Draft = "draft",
        /// Its latest revision is published.
        Published = "published",
        /// An earlier revision is published.
        Changed = "changed",
    }
}

/// The publication of a piece, and its schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Publication {
    /// The published revision and its publication.
    pub published: Option<PublishedRevision>,
    /// The time at which a revision is published.
    pub publish_at: Option<Timestamp>,
    /// The revision that is published then; `None` for the latest one.
    pub publish_revision: Option<i64>,
    /// The time at which the piece is unpublished.
    pub unpublish_at: Option<Timestamp>,
}

/// A published revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedRevision {
    /// The number of the revision.
    pub number: i64,
    /// The time of its publication.
    pub at: Timestamp,
    /// The author of its publication.
    pub by: Actor,
}

impl Publication {
    /// Returns the state of a piece whose latest revision is `latest`.
    pub fn state(&self, latest: i64) -> PublicationState {
        match self.published {
            None => PublicationState::Draft,
            Some(published) if published.number == latest => PublicationState::Published,
            Some(_) => PublicationState::Changed,
        }
    }
}
