//! The output format of a piece's content and description.

use std::io::{self, Write};

use axum::response::Response;
use galley_api_types::content::ContentFormat;
use galley_api_types::content_piece::{ContentPieceBody, FieldSelection, ReferencedResources};
use galley_application::operations::content_pieces::PieceView;
use galley_application::{Error, Rejection};
use galley_content::{ContentError, ContentLimits, Tree};
use galley_domain::content_piece::{ContentPiece, CustomData, Description};
use galley_domain::{Invalid, WorkspaceId};
use galley_storage::Error as StorageError;
use galley_storage::content_piece_view::{View, size as viewed_size};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::app::App;
use crate::extract::known_parameters::nearest;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::resources::request_memory::WorkspaceReservation;
use crate::respond::{large_response, response};

/// The requested output format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseFormat {
    /// The format of the content, or `None` without the content.
    pub(crate) content: Option<ContentFormat>,
    /// True if the description is returned as plain text.
    description_as_text: bool,
    /// True if the custom data is returned as a value, not as a string.
    custom_data_as_value: bool,
    /// The selected fields; `None` for all.
    fields: Option<FieldSelection>,
}

/// The query parameters that [`ResponseFormat::parse`] reads, and `variant`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct FormatParameters {
    /// Include the content.
    #[param(default = false)]
    content: Option<bool>,
    /// The format of the content. It applies with `content=true` only.
    #[param(inline, default = "json")]
    content_format: Option<ContentFormatSchema>,
    /// The format of the description.
    #[param(inline, default = "html")]
    description: Option<DescriptionFormat>,
    /// The format of the custom data: its JSON as a string, or the value of this JSON.
    #[param(inline, default = "string")]
    custom_data: Option<CustomDataFormat>,
    /// The fields to return, separated by commas: names of fields of a piece. The parameter may be
    /// repeated. `id` is always returned, and `content` includes the content. The schema of the
    /// response is that of a piece with all fields.
    #[param(inline)]
    fields: Option<FieldNames>,
    /// The identifier or key of a variant. Its overrides replace the piece's own values.
    variant: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
enum ContentFormatSchema {
    Json,
    Html,
    Markdown,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
enum DescriptionFormat {
    Html,
    Text,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
enum CustomDataFormat {
    String,
    Object,
}

/// The parameter `fields`. It is never constructed.
struct FieldNames;

impl PartialSchema for FieldNames {
    fn schema() -> RefOr<Schema> {
        let name = FieldSelection::NAMES.join("|");
        let pattern = format!("^({name})(,({name}))*$");
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }
}

impl ToSchema for FieldNames {}

impl ResponseFormat {
    /// Reads `content`, `contentFormat`, `description`, `customData` and `fields`.
    pub(crate) fn parse(query: &mut Query) -> Self {
        let mut content = query.boolean("content");
        let mut fields = read_fields(query);
        if let Some(fields) = &mut fields {
            content |= fields.contains("content");
            if content {
                fields.add("content");
            }
        }
        let formats = ContentFormat::ALL.iter().map(|&format| (format.as_str(), format));
        let formats: Vec<_> = formats.collect();
        let format = query.choice("contentFormat", &formats).unwrap_or(ContentFormat::Json);
        let texts = [("html", false), ("text", true)];
        let values = [("string", false), ("object", true)];
        Self {
            content: content.then_some(format),
            description_as_text: query.choice("description", &texts).unwrap_or(false),
            custom_data_as_value: query.choice("customData", &values).unwrap_or(false),
            fields,
        }
    }

    /// Returns the parts of a piece that are read, without a variant.
    pub(crate) fn view(self) -> View {
        View {
            content: self.content.is_some(),
            skips_custom_data: !self.selects("customData"),
            ..View::default()
        }
    }

    fn selects(self, field: &str) -> bool {
        self.fields.is_none_or(|fields| fields.contains(field))
    }

    /// Converts pieces to this format. Large conversions run on the CPU pool.
    ///
    /// The memory reservation moves into the conversion, which holds it even after the request is
    /// cancelled. If the result exceeds the limit on bytes of a page, the request is rejected with
    /// an issue of the parameter `field`.
    pub(crate) async fn render(
        self,
        app: &App,
        pieces: Vec<(ContentPiece, Option<String>)>,
        reservation: WorkspaceReservation,
        field: &'static str,
    ) -> Result<(Vec<RenderedPiece>, WorkspaceReservation), Problem> {
        let size =
            pieces.iter().map(|(piece, tree)| self.rendering_bytes(piece, tree.as_deref())).sum();
        let size_limit = app.limits().response_size_limit;
        let render_all = move || {
            let mut left = size_limit;
            let render_next = |(piece, tree)| {
                let rendered = self.render_one(piece, tree, left)?;
                let content = rendered.as_ref().and_then(|one| one.content.as_ref());
                let rest = left.checked_sub(content.map_or(0, String::len));
                left = rest.unwrap_or_default();
                rendered
                    .filter(|_| rest.is_some())
                    .ok_or_else(|| Rejection::response_too_large(field, size_limit).into())
            };
            let rendered: Result<Vec<_>, Error> = pieces.into_iter().map(render_next).collect();
            Ok((rendered?, reservation))
        };
        app.run_by_size(size, render_all).await?
    }

    /// Returns 200 with one piece in this format. `member` is the name and the JSON of one more
    /// member of the response.
    pub(crate) async fn respond(
        self,
        app: &App,
        workspace: WorkspaceId,
        view: PieceView,
        member: Option<(&str, String)>,
    ) -> Result<Response, Problem> {
        let PieceView { piece: viewed, referenced } = view;
        let size = viewed_size(&viewed);
        let reservation = large_response::reserve(app, workspace, size)?;
        let (shown, reservation) =
            self.render(app, vec![viewed], reservation, "contentFormat").await?;
        let [one] = &shown[..] else { unreachable!("one piece is shown as one") };
        let json = large_response::written(app, reservation, |out| match &member {
            None => one.write_json(&referenced, out),
            Some((name, value)) => {
                let mut json = Vec::with_capacity(size);
                one.write_json(&referenced, &mut json)?;
                json.pop();
                out.write_all(&json)?;
                write!(out, ",\"{name}\":{value}}}")
            }
        })?;
        let json = json.ok_or_else(|| {
            Rejection::response_too_large("contentFormat", app.limits().response_size_limit)
        })?;
        Ok(response::reserved_resource(one.piece.version, json))
    }

    /// Returns the number of bytes that the conversion of a piece parses.
    fn rendering_bytes(self, piece: &ContentPiece, tree: Option<&str>) -> usize {
        let description = piece.fields.description.as_ref().map_or(0, |text| text.as_str().len());
        let rendered = matches!(self.content, Some(ContentFormat::Html | ContentFormat::Markdown));
        let custom_data = piece.fields.custom_data.as_ref().map_or(0, |data| data.as_str().len());
        (if self.description_as_text { description } else { 0 })
            + (if self.custom_data_as_value { custom_data } else { 0 })
            + (if rendered { tree.map_or(0, str::len) } else { 0 })
    }

    /// Converts a piece. Returns `None` if its Markdown exceeds `left` bytes.
    fn render_one(
        self,
        piece: ContentPiece,
        tree: Option<String>,
        left: usize,
    ) -> Result<Option<RenderedPiece>, Error> {
        let description = self.description(&piece);
        let content = match (self.content, tree) {
            // Written by `Tree::to_json`, and not parsed again. This detects a damaged database.
            (Some(ContentFormat::Json), Some(json)) if is_enclosed(&json) => Some(json),
            (Some(ContentFormat::Json), Some(_)) => return Err(corrupt_tree_error()),
            (Some(ContentFormat::Html), Some(json)) => {
                Some(as_json_text(&parse_tree(&json)?.to_html()))
            }
            (Some(ContentFormat::Markdown), Some(json)) => {
                let Some(markdown) = parse_tree(&json)?.to_markdown_within(left) else {
                    return Ok(None);
                };
                Some(as_json_text(&markdown))
            }
            _ => None,
        };
        let custom_data = piece.fields.custom_data.as_ref().filter(|_| self.custom_data_as_value);
        let custom_data = custom_data.map(custom_data_value).transpose()?;
        Ok(Some(RenderedPiece { piece, description, custom_data, content, fields: self.fields }))
    }

    /// Returns the description in this format.
    fn description(self, piece: &ContentPiece) -> Option<String> {
        let selected = piece.fields.description.as_ref().filter(|_| self.selects("description"));
        let html = selected.map(Description::as_str)?;
        if !self.description_as_text {
            return Some(html.to_owned());
        }
        // HTML that exceeds the parser's limits is returned unchanged.
        let text = Tree::from_html(html, &ContentLimits::default());
        Some(text.map_or_else(|_| html.to_owned(), |tree| tree.to_text().trim_end().to_owned()))
    }
}

/// A piece in the requested format.
#[derive(Debug)]
pub(crate) struct RenderedPiece {
    pub(crate) piece: ContentPiece,
    description: Option<String>,
    /// The value of the custom data, if it is returned as a value.
    custom_data: Option<Box<RawValue>>,
    /// The content as JSON.
    content: Option<String>,
    fields: Option<FieldSelection>,
}

impl RenderedPiece {
    /// Writes the JSON representation of the piece.
    pub(crate) fn write_json(
        &self,
        referenced: &ReferencedResources,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut body = ContentPieceBody::new(&self.piece, referenced, self.description.as_deref());
        if let Some(value) = &self.custom_data {
            body = body.with_custom_data_value(value);
        }
        let content = self.content.as_deref();
        match self.fields {
            Some(fields) => body.write_selected_json(fields, content, out),
            None => body.write_json(content, out),
        }
    }
}

/// Reads the selected fields. A misspelt name is reported with the nearest known one.
fn read_fields(query: &mut Query) -> Option<FieldSelection> {
    let given: Vec<String> = query.all("fields").iter().map(|&value| value.to_owned()).collect();
    if given.is_empty() {
        return None;
    }
    let mut selection = FieldSelection::default();
    let names = given.iter().flat_map(|value| value.split(','));
    for name in names.map(str::trim).filter(|name| !name.is_empty()) {
        if !selection.add(name) {
            let message = match nearest(name, FieldSelection::NAMES) {
                Some(nearest) => format!("has an unknown field; did you mean {nearest}?"),
                None => format!("may have only {}", FieldSelection::NAMES.join(", ")),
            };
            query.add_issue("fields", &Invalid::new("invalid_enum_value", message));
        }
    }
    Some(selection)
}

fn parse_tree(json: &str) -> Result<Tree, Error> {
    Tree::from_json(json).map_err(|_: ContentError| corrupt_tree_error())
}

/// Returns the value of custom data as JSON, without parsing it into a tree.
fn custom_data_value(text: &CustomData) -> Result<Box<RawValue>, Error> {
    let value = RawValue::from_string(text.as_str().to_owned());
    value.map_err(|_| StorageError::corrupt("custom data can't be read").into())
}

fn is_enclosed(json: &str) -> bool {
    json.starts_with('{') && json.ends_with('}')
}

fn as_json_text(text: &str) -> String {
    serde_json::to_string(text).expect("texts are JSON")
}

fn corrupt_tree_error() -> Error {
    StorageError::corrupt("a content tree can't be read").into()
}
