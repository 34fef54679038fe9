//! `GET /content-groups/schema` and `GET /content-groups/schema/violations`

use galley_api_types::problem::Issue;
use galley_application::operations::content_groups::{self, Violation};
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::{ReadContentGroups, ReadContentPieces};
use crate::extract::pagination;
use crate::respond::page_links;
use crate::routes::prelude::*;

/// The limit on violations on a page.
const PER_PAGE_MAX: i64 = 100;

/// The schema of custom data that applies to a group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EffectiveSchema)]
#[serde(rename_all = "camelCase")]
struct EffectiveSchemaBody<'a> {
    /// The group that has the schema: the group itself, or its nearest ancestor with one. Null if
    /// there is none, or if the token doesn't see it.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<ContentGroupId>,
    /// The JSON Schema (2020-12), or null if there is none.
    #[schema(value_type = Option<Object>, example = json!({"type": "object"}))]
    custom_data_schema: Option<&'a RawValue>,
}

/// A piece whose custom data violates its schema.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SchemaViolation)]
#[serde(rename_all = "camelCase")]
struct ViolationBody<'a> {
    #[schema(value_type = schemas::ContentPieceId)]
    content_piece_id: ContentPieceId,
    /// The key of the variant whose override violates the schema, or null for the piece's own
    /// custom data.
    #[schema(example = "de")]
    variant: Option<&'a str>,
    issues: &'a [Issue],
}

/// The parameters of a page of violations.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct ViolationListParameters {
    /// The limit of items on the page. A piece may have several, which are on one page.
    #[param(minimum = 1, maximum = 100, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The identifier of a piece. The list continues after it, even if the piece was deleted.
    #[param(pattern = "^cp_[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}$")]
    last_id: Option<String>,
    /// The position to continue from, as in the `Link` header of the previous page.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// Get the schema of custom data of a group
///
/// Returns the schema that applies to the pieces of the group: its own, or that of its nearest
/// ancestor with one.
#[utoipa::path(
    get, path = "/content-groups/schema", operation_id = "getContentGroupSchema",
    params(("id" = schemas::ContentGroupId, Query)),
    responses((status = 200, body = EffectiveSchemaBody<'_>)),
)]
pub(crate) async fn get(
    actor: Actor<ReadContentGroups>,
    IdQuery(id): IdQuery<ContentGroupId>,
) -> Result<Response, Problem> {
    let found = content_groups::schema(actor.caller(), id).await?;
    let schema = found.schema.as_ref();
    Ok(response::ok(&EffectiveSchemaBody {
        content_group_id: found.group,
        custom_data_schema: schema.and_then(|schema| serde_json::from_str(schema.as_str()).ok()),
    }))
}

/// List the violations of schemas in a group
///
/// Returns the pieces in the group and its descendants whose custom data violates the schema that
/// applies to them, in the order of their creation. A page may have fewer items than `perPage`,
/// or none, and still a link to the next page.
#[utoipa::path(
    get, path = "/content-groups/schema/violations", operation_id = "listSchemaViolations",
    params(("id" = schemas::ContentGroupId, Query), ViolationListParameters),
    responses((status = 200, body = [ViolationBody<'_>])),
)]
pub(crate) async fn violations(
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentGroupId>();
    let per_page =
        query.integer("perPage", 1, PER_PAGE_MAX).unwrap_or(pagination::DEFAULT_PER_PAGE);
    let after = pagination::after_id::<ContentPieceId>(&mut query);
    query.finish()?;
    let max = usize::try_from(per_page).unwrap_or(usize::MAX);
    let page = content_groups::violations(actor.caller(), id.get()?, after, max).await?;
    let bodies = page.violations.iter().map(|Violation { piece, variant, issues }| ViolationBody {
        content_piece_id: *piece,
        variant: variant.as_ref().map(VariantKey::as_str),
        issues,
    });
    let mut response = response::ok(&bodies.collect::<Vec<_>>());
    let next = page.next.map(pagination::id_cursor);
    page_links::link_next(&mut response, &query, next.as_deref());
    Ok(response)
}
