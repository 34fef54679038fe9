//! `GET /content-pieces/diff`

use galley_api_types::revision_diff::{FieldDifference, RevisionDiffBody};
use galley_application::operations::content_pieces::{self, ComparedPieces};
use galley_application::{Error, Rejection};
use galley_content::{Tree, TreeDiff};
use galley_domain::{ContentPieceId, RevisionId};
use galley_storage::Error as StorageError;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::ReadContentPieces;
use crate::extract::query::RequestedId;
use crate::respond::large_response;
use crate::routes::prelude::*;

/// The format of the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffFormat {
    Json,
    Html,
    Text,
}

const FORMATS: [(&str, DiffFormat); 3] =
    [("json", DiffFormat::Json), ("html", DiffFormat::Html), ("text", DiffFormat::Text)];

/// The parameters besides the identifiers.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct DiffParameters {
    /// The format of the difference.
    #[param(inline, default = "json")]
    format: Option<DiffFormatSchema>,
    /// The identifier or key of a variant. The piece is compared as it is in this variant.
    variant: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
enum DiffFormatSchema {
    Json,
    Html,
    Text,
}

/// Compare two revisions of a content piece
///
/// Returns the fields that differ, and the difference of the content: blocks are aligned first, and
/// then words. Changes of marks and attributes are changes of their own. `html` has only the
/// elements of content, `ins`, `del` and `span`, and is as safe to show as content.
#[utoipa::path(
    get, path = "/content-pieces/diff", operation_id = "diffRevisions",
    params(
        ("id" = schemas::ContentPieceId, Query),
        ("from" = schemas::RevisionId, Query),
        ("to" = schemas::RevisionId, Query),
        DiffParameters,
    ),
    responses((status = 200, body = RevisionDiffBody<'_>)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    let from = query.named_id::<RevisionId>("from");
    let to = query.named_id::<RevisionId>("to");
    let format = query.choice("format", &FORMATS).unwrap_or(DiffFormat::Json);
    let variant = query.variant();
    query.finish()?;
    let variant = variant.map(RequestedId::get).transpose()?;
    let (id, revisions) = (id.get()?, (from.get()?, to.get()?));
    let ComparedPieces { from, to } =
        content_pieces::compare(actor.caller(), id, revisions, variant).await?;
    let size = from.1.len() + to.1.len();
    let reservation = large_response::reserve(&app, actor.workspace, size)?;
    let fields = FieldDifference::between(&from.0.fields, &to.0.fields);
    let size_limit = app.limits().response_size_limit;
    let compare = move || (written(&from.1, &to.1, format, size_limit), reservation);
    let (diff, reservation) = app.run_by_size(size, compare).await?;
    let too_large = || Rejection::response_too_large("format", size_limit);
    let diff = diff?.ok_or_else(too_large)?;
    let name = FORMATS.iter().find(|(_, known)| *known == format).map_or("json", |(name, _)| name);
    let body = RevisionDiffBody { format: name, fields, diff: &diff };
    let json = large_response::json(&app, reservation, &body)?.ok_or_else(too_large)?;
    Ok(response::reserved_resource(0, json))
}

/// Returns the difference of two trees as JSON. Returns `None` if it exceeds `size_limit` bytes.
fn written(
    from: &str,
    to: &str,
    format: DiffFormat,
    size_limit: usize,
) -> Result<Option<Box<RawValue>>, Error> {
    let parse = |json| {
        Tree::from_json(json).map_err(|_| StorageError::corrupt("a content tree can't be read"))
    };
    let (from, to) = (parse(from)?, parse(to)?);
    let diff = TreeDiff::between(&from, &to);
    let text = |text: String| serde_json::to_string(&text).expect("texts are JSON");
    let json = match format {
        DiffFormat::Json => diff.to_json_within(size_limit),
        DiffFormat::Html => diff.to_html_within(size_limit).map(text),
        DiffFormat::Text => Some(text(diff.to_text())),
    };
    Ok(json.map(|json| RawValue::from_string(json).expect("a diff is JSON")))
}
