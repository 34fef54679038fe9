//! `/assets`.

pub(crate) mod create;
pub(crate) mod serve;
pub(crate) mod uploads;

use galley_api_types::asset::{AssetBody, AssetChange, AssetUseBody};
use galley_application::operations::assets::{self, AssetFilter};
use galley_domain::asset::FileHash;
use galley_domain::{AssetId, Invalid};
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::{ReadAssets, WriteAssets};
use crate::extract::pagination::PER_PAGE_MAX;
use crate::routes::prelude::*;

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct FileBytes(Vec<u8>);

/// Get an asset
#[utoipa::path(
    get, path = "/assets", operation_id = "getAsset", params(("id" = schemas::AssetId, Query)),
    responses((status = 200, body = AssetBody<'_>)),
)]
pub(crate) async fn get(
    State(app): State<App>,
    actor: Actor<ReadAssets>,
    staleness: StalenessBound,
    IdQuery(id): IdQuery<AssetId>,
) -> Result<Response, Problem> {
    let asset = assets::get(&actor.stale_caller(staleness), id).await?;
    Ok(response::resource(asset.version, &AssetBody::new(&asset, app.asset_base_url())))
}

/// The filters of the list of assets.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct AssetListParameters {
    #[param(inline, default = "createdAt")]
    sort: Option<AssetSortSchema>,
    /// List the assets of a media type, such as `image/png`, or of those that begin with a text
    /// that ends with a slash, such as `image/`.
    #[param(example = "image/", max_length = 255)]
    content_type: Option<String>,
    /// List the assets whose filename contains this text. ASCII letters match in both cases.
    #[param(example = "photo", max_length = 255)]
    filename: Option<String>,
    /// List the assets whose file has this SHA-256, in hexadecimal digits.
    #[param(pattern = "^[0-9a-f]{64}$")]
    hash: Option<String>,
    /// List the assets to which no piece refers, or with `false` those to which pieces refer.
    unused: Option<bool>,
}

/// The sort key of the list. A leading `-` reverses the order.
#[derive(ToSchema)]
#[schema(as = AssetSort)]
#[expect(dead_code, reason = "only its description is used")]
enum AssetSortSchema {
    #[schema(rename = "createdAt")]
    CreatedAt,
    #[schema(rename = "-createdAt")]
    CreatedAtDown,
}

/// List the assets
///
/// Returns the assets in the order of their creation.
#[utoipa::path(
    get, path = "/assets/list", operation_id = "listAssets",
    params(AssetListParameters, IdPageParams),
    responses((status = 200, body = [AssetBody<'_>])),
)]
pub(crate) async fn list(
    State(app): State<App>,
    actor: Actor<ReadAssets>,
    staleness: StalenessBound,
    query: Query,
) -> Result<Response, Problem> {
    let mut list = IdListQuery::<AssetId>::parse(query, PER_PAGE_MAX);
    let query = list.query();
    let sorts = [("createdAt", false), ("-createdAt", true)];
    let filter = AssetFilter {
        is_descending: query.choice("sort", &sorts).unwrap_or_default(),
        media_type: short_text(query, "contentType").map(|text| text.to_ascii_lowercase()),
        filename: short_text(query, "filename"),
        sha256: query.parsed::<FileHash>("hash").map(|hash| hash.0),
        is_used: query.optional_boolean("unused").map(|unused| !unused),
    };
    query.finish()?;
    let mut assets = assets::list(&actor.stale_caller(staleness), filter, list.page()).await?;
    let base_url = app.asset_base_url();
    Ok(list.respond(&mut assets, |asset| asset.id, |asset| AssetBody::new(asset, base_url)))
}

/// Parses a filter by a text. Names and media types have at most 255 characters.
fn short_text(query: &mut Query, name: &str) -> Option<String> {
    let text = query.text(name)?;
    if text.chars().count() > 255 {
        query.add_issue(name, &Invalid::new("too_long", "must have at most 255 characters"));
    }
    Some(text)
}

/// List the uses of an asset
///
/// Returns the pieces that refer to the address of the asset: in their content, cover, description
/// or custom data, in a variant, in their published revision, or in the trash. Only pieces that the
/// token sees are listed, and at most 1,000 places.
#[utoipa::path(
    get, path = "/assets/used-by", operation_id = "listAssetUses",
    params(("id" = schemas::AssetId, Query)),
    responses((status = 200, body = [AssetUseBody<'_>])),
)]
pub(crate) async fn used_by(
    actor: Actor<ReadAssets>,
    IdQuery(id): IdQuery<AssetId>,
) -> Result<Response, Problem> {
    let uses = assets::used_by(actor.caller(), id).await?;
    Ok(response::ok(&uses.iter().map(AssetUseBody::from).collect::<Vec<_>>()))
}

/// Change an asset
///
/// Absent fields stay unchanged.
#[utoipa::path(
    put, path = "/assets", operation_id = "updateAsset", request_body = AssetChange,
    responses(
        (status = 200, body = AssetBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn update(
    State(app): State<App>,
    actor: Actor<WriteAssets>,
    request: ChangeRequest<AssetChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let asset = assets::update(actor.caller(), id, change, expected).await?;
    let body = AssetBody::new(&asset, app.asset_base_url());
    Ok(response::updated(prefer, asset.version, &body))
}

/// Delete an asset
///
/// Its address and those of its renditions are 404 from then on; another node may serve it for a
/// second, and caches for longer. An asset that a piece refers to is kept, unless `force` is true.
#[utoipa::path(
    delete, path = "/assets", operation_id = "deleteAsset",
    params(
        ("id" = schemas::AssetId, Query),
        ("force" = Option<bool>, Query, description = "Delete an asset in use, too. Its pieces keep \
            the address, which is 404 then."),
    ),
    responses(
        (status = 403, description = "outside_group_limit"),
        (status = 409, description = "asset_in_use"),
    ),
)]
pub(crate) async fn delete(
    actor: Actor<WriteAssets>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let (id, is_forced) = (query.id::<AssetId>(), query.boolean("force"));
    query.finish()?;
    assets::delete(actor.caller(), id.get()?, is_forced, expected).await?;
    Ok(response::no_content())
}
