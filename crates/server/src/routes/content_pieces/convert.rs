//! `POST /content-pieces/convert`

use galley_api_types::content_piece::ContentConversion;
use galley_api_types::conversion_warning::ConvertedContentBody;
use galley_api_types::request::{Parsed, RequestBody};
use galley_application::content_input::ConvertedContent;
use galley_domain::Invalid;
use serde_json::value::RawValue;

use crate::extract::actor::ReadContentPieces;
use crate::extract::body::JsonBody;
use crate::extract::request;
use crate::respond::large_response;
use crate::routes::content_pieces::input;
use crate::routes::prelude::*;

/// Convert content
///
/// Returns the content as it would be stored in a piece, and the parts that the tree lacks. Nothing
/// is stored.
#[utoipa::path(
    post,
    path = "/content-pieces/convert",
    operation_id = "convertContent",
    request_body = ContentConversion,
    responses(
        (status = 200, body = ConvertedContentBody<'_>),
        (status = 400, description = "content_too_deep, content_too_complex"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    mut body: JsonBody,
) -> Result<Response, Problem> {
    let (size, size_limit) = (body.bytes.len(), app.limits().content_size_limit);
    let convert = move || {
        let content = read(&mut body, size_limit);
        (body.fields, content)
    };
    let (fields, content) = app.run_by_size(size, convert).await?;
    let ConvertedContent { tree, warnings } =
        request::finish(actor.caller(), fields, content).await?;
    let tree = RawValue::from_string(tree).expect("a tree is JSON");
    let body = ConvertedContentBody::new(&tree, &warnings);
    large_response::resource(&app, actor.workspace, 0, &body, "content")
}

fn read(body: &mut JsonBody, size_limit: usize) -> Parsed<ConvertedContent> {
    let content = input::content(body, size_limit)?;
    ContentConversion::parse(&mut body.fields)?;
    content.flatten().map(|content| content.converted).ok_or_else(|| {
        body.fields.add_issue("content", &Invalid::new("required", "is required"));
        galley_api_types::request::IssueRecorded
    })
}
