//! The JSON representation of an asset.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_domain::asset::{self, Asset, AssetFilename};
use galley_domain::content_piece::Title;
use galley_domain::publication::ContentView;
use galley_domain::text::ShortText;
use galley_domain::{AssetId, ContentGroupId, ContentPieceId, Timestamp, VariantId};
use galley_storage::asset_usage::{AssetUse, ReferringPiece};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::body;
use crate::schemas;

/// An asset.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Asset)]
pub struct AssetBody<'a> {
    #[schema(value_type = schemas::AssetId)]
    id: AssetId,
    /// The public address. Anyone with it can read the file.
    #[schema(example = "https://galley.example.org/a/01kah3v9k8d4x7w2m5n6p8q9rs/photo.jpg")]
    url: String,
    /// The name of the file.
    #[schema(example = "photo.jpg")]
    filename: &'a str,
    /// The media type, detected from the bytes of the file.
    #[schema(example = "image/jpeg")]
    content_type: &'a str,
    /// The size in bytes.
    #[schema(minimum = 0, example = 345_678)]
    size: i64,
    /// The width of an image in pixels, after its orientation is applied.
    #[schema(minimum = 1, example = 4032)]
    width: Option<i64>,
    /// The height of an image in pixels.
    #[schema(minimum = 1, example = 3024)]
    height: Option<i64>,
    /// The SHA-256 of the file, in hexadecimal digits.
    #[schema(
        pattern = "^[0-9a-f]{64}$",
        example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    )]
    hash: String,
    /// The ThumbHash of an image in base 64, which is shown while the image is loading.
    #[schema(example = "1QcSHQRnh493V4dIh4eXh1h4kJUI")]
    placeholder: Option<String>,
    /// The text in place of an image.
    #[schema(example = "A harbour at night")]
    alt: Option<&'a str>,
    /// The group to which the asset belongs; null for the whole workspace.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<ContentGroupId>,
    #[schema(value_type = schemas::Time)]
    created_at: Timestamp,
    /// The reason why browsers don't show the image. Present only in the response to an upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        value_type = String, required = false,
        example = "browsers don't show image/heif, and it has no renditions: upload a JPEG instead"
    )]
    warning: Option<&'a str>,
}

impl<'a> AssetBody<'a> {
    /// Creates the representation of an asset below this address of the service.
    pub fn new(asset: &'a Asset, base_url: &str) -> Self {
        let Asset { id, key, filename, alt, content_group_id, created_at, file, .. } = asset;
        Self {
            id: *id,
            url: format!("{}{}", base_url.trim_end_matches('/'), asset::path(*key, filename)),
            filename: filename.as_str(),
            content_type: &file.media_type,
            size: file.size,
            width: file.dimensions.map(|(width, _)| width),
            height: file.dimensions.map(|(_, height)| height),
            hash: file.hash(),
            placeholder: file.placeholder.as_ref().map(|hash| BASE64_STANDARD.encode(hash)),
            alt: alt.as_ref().map(ShortText::as_str),
            content_group_id: *content_group_id,
            created_at: *created_at,
            warning: None,
        }
    }

    /// Adds the warning of an upload.
    pub fn with_warning(self, warning: Option<&'a str>) -> Self {
        Self { warning, ..self }
    }

    /// Returns the public address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A resumable upload.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AssetUpload)]
pub struct AssetUploadBody {
    /// The identifier of the asset, which exists once all bytes have arrived.
    #[schema(value_type = schemas::AssetId)]
    pub id: AssetId,
    /// The size of the file in bytes.
    #[schema(minimum = 0, example = 345_678)]
    pub size: i64,
    /// The number of bytes that are stored.
    #[schema(minimum = 0, example = 100_000)]
    pub received: i64,
    /// The time from which on the upload can't be continued; null if it is complete.
    #[schema(value_type = Option<schemas::Time>)]
    pub expires_at: Option<Timestamp>,
}

body! {
    /// A change of an asset. Its file can't be changed: upload another one.
    change AssetChange of AssetId {
        /// The name of the file. Earlier addresses with another name stay valid.
        filename: required AssetFilename = "photo.jpg",
        /// The text in place of an image.
        alt: optional ShortText = "A harbour at night",
        /// The group to which the asset belongs; null for the whole workspace.
        content_group_id: optional ContentGroupId,
    }
}

/// A place in which an asset is used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AssetUse)]
pub struct AssetUseBody<'a> {
    /// The piece that refers to the asset.
    #[schema(value_type = schemas::ContentPieceId)]
    content_piece_id: ContentPieceId,
    /// Its title. For a piece in the trash, that of its entry.
    #[schema(example = "Harbours")]
    title: &'a str,
    /// The variant whose overrides refer to it; null for the piece itself.
    #[schema(value_type = Option<schemas::VariantId>)]
    variant_id: Option<VariantId>,
    /// The place: a view, or the trash.
    #[schema(value_type = String, example = "current")]
    place: &'static str,
}

impl<'a> From<&'a ReferringPiece> for AssetUseBody<'a> {
    fn from(piece: &'a ReferringPiece) -> Self {
        Self {
            content_piece_id: piece.id,
            title: Title::as_str(&piece.title),
            variant_id: piece.variant,
            place: match piece.place {
                AssetUse::View(view) => ContentView::as_str(view),
                AssetUse::Trash => "trash",
            },
        }
    }
}
