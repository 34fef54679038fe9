//! The JSON representation of an import.

use galley_domain::ContentGroupId;
use galley_domain::asset::FileHash;
use galley_domain::import_source::SourcePath;
use galley_domain::tag::TagLabel;
use galley_domain::variant::VariantKey;
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::{Objects, Texts, body};

body! {
    /// A file to import.
    new ImportFile {
        /// The path of the file, with `/` between its parts. It identifies the piece in later
        /// imports.
        name: required SourcePath = "posts/hello.md",
        /// The text of the file: Markdown, HTML, or an export of WordPress or Ghost.
        content: required String = "# Hello",
    }
}

body! {
    /// A file to which documents may refer, such as an image.
    new ImportAsset {
        /// The path of the file, as that of a document.
        name: required SourcePath = "posts/harbour.jpg",
        /// The SHA-256 of the file, in hexadecimal digits.
        hash: required FileHash =
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    }
}

/// The limit on files to which documents may refer.
pub const ASSETS_LIMIT: usize = 10_000;

body! {
    /// Files to import, and the choices of the import.
    new NewImport {
        /// The group of the new pieces.
        content_group_id: required ContentGroupId,
        files: required Objects<ImportFile>,
        /// The files to which documents may refer. Their addresses become those of assets with the
        /// same bytes. The report lists those that are to be uploaded before.
        assets: optional Objects<ImportAsset, ASSETS_LIMIT>,
        /// Create groups from the folders in the names of the files. By default false.
        groups: optional bool = false,
        /// The labels of tags for every piece. Missing tags are created.
        tag_labels: optional Texts<TagLabel> = ["News"],
        /// The languages of the files. The first is that of the pieces, and the others are
        /// variants. Duplicates are dropped.
        variants: optional Texts<VariantKey> = ["en", "de"],
        /// Import drafts and other unpublished sources. By default true.
        drafts: optional bool = true,
        /// Publish, schedule and unpublish pieces as their sources are. By default true.
        publish: optional bool = true,
        /// Update pieces that were edited in Galley since the last import. By default false.
        overwrite: optional bool = false,
        /// Read and compare everything, and change nothing. By default false.
        dry_run: optional bool = true,
    }
}

/// The report of an import.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImportReport)]
pub struct ImportReportBody<'a> {
    /// True if nothing was changed.
    pub dry_run: bool,
    /// The number of created pieces.
    pub created: usize,
    /// The number of updated pieces.
    pub updated: usize,
    /// The number of unchanged pieces.
    pub unchanged: usize,
    /// The number of published pieces.
    pub published: usize,
    /// The number of scheduled pieces.
    pub scheduled: usize,
    /// The number of unpublished pieces.
    pub unpublished: usize,
    /// The documents in the files, each with its result.
    pub documents: Vec<ImportedDocumentBody<'a>>,
    /// The messages about sources that can't be imported.
    pub problems: &'a [String],
    /// The findings, by kind: parts that were left out, assumed, missing or lost.
    pub findings: Vec<ImportFindingBody<'a>>,
    /// The files among `assets` to which documents refer.
    pub assets: Vec<ReferredFileBody<'a>>,
}

/// A file to which documents refer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReferredFile)]
pub struct ReferredFileBody<'a> {
    /// The path of the file.
    #[schema(example = "posts/harbour.jpg")]
    pub name: &'a str,
    /// True if no asset of the group, or of no group, has these bytes. Its addresses were kept.
    pub is_missing: bool,
}

/// The result of a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImportedDocument)]
pub struct ImportedDocumentBody<'a> {
    /// The name of the file, and of the post in an export.
    #[schema(example = "posts/hello.md")]
    pub source: &'a str,
    /// The result. `conflict`: the source and the piece were both changed since the last import.
    #[schema(schema_with = outcome)]
    pub outcome: &'static str,
    /// The reason of a rejection.
    #[schema(example = "slug must not be empty")]
    pub problem: Option<&'a str>,
}

/// A kind of findings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImportFinding)]
pub struct ImportFindingBody<'a> {
    /// The group of the kind.
    #[schema(schema_with = group)]
    pub group: &'static str,
    /// The kind, as a plural that follows a count.
    #[schema(example = "images at relative addresses")]
    pub what: &'a str,
    /// The number of occurrences.
    pub count: u64,
    /// The sources with occurrences, up to 100.
    #[schema(example = json!(["posts/hello.md"]))]
    pub sources: Vec<&'a str>,
}

/// The results of documents.
pub const OUTCOMES: [&str; 5] = ["created", "updated", "unchanged", "conflict", "rejected"];

/// The groups of findings.
pub const FINDING_GROUPS: [&str; 6] =
    ["leftOut", "unpublished", "assumed", "missing", "lost", "dangling"];

fn outcome() -> utoipa::openapi::schema::Object {
    text_of(&OUTCOMES)
}

fn group() -> utoipa::openapi::schema::Object {
    text_of(&FINDING_GROUPS)
}

fn text_of(values: &[&'static str]) -> utoipa::openapi::schema::Object {
    let text = utoipa::openapi::schema::SchemaType::Type(utoipa::openapi::schema::Type::String);
    let values = values.iter().copied();
    utoipa::openapi::ObjectBuilder::new().schema_type(text).enum_values(Some(values)).build()
}
