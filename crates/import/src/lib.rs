//! Imports Markdown, HTML, and exports of other systems as content pieces.
//!
//! A piece is identified by its source name: a file's path below the named folder, or a post's id,
//! stored as `filename`. So a second import updates changed pieces and creates no duplicates. Each
//! unreadable source is reported with its line; all others are imported.

mod assets;
mod authors;
mod autop;
mod database;
mod decision;
mod destination;
mod findings;
mod fingerprint;
mod front_matter;
mod ghost;
pub mod group_path;
mod hash;
mod html;
mod language;
mod line_counting;
mod load;
mod markdown;
mod of_request;
mod publication;
mod raw;
mod read;
mod report;
mod root_cause;
mod run;
mod server;
mod sources;
mod wordpress;

pub use assets::{AssetCounts, AssetImporter, PathCheck};
pub use database::DatabaseDestination;
pub use destination::ImportOutcome;
pub use findings::FindingGroup;
pub use markdown::RESERVED_FIELDS;
pub use of_request::{Named, import_files};
pub use report::{DocumentReport, FindingKind, FindingOccurrence, Report};
pub use run::{ImportOptions, ImportPlace, ImportProgress, check_languages, run};
pub use server::ServerDestination;
pub use sources::{FoundSources, find, named};
