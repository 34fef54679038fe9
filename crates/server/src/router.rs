//! Every route, in one table, and the OpenAPI document of the routes.

use std::sync::LazyLock;

use axum::Router;
use axum::middleware::from_fn;
use galley_application::Reason;
use serde_json::Value;

use crate::app::App;
use crate::describe::{Endpoints, endpoints};
use crate::middleware::cors;
use crate::middleware::request_log::record_route;
use crate::problem::Problem;
use crate::respond::response::StaticFile;
use crate::routes::{
    content_groups, content_pieces, docs, events, home, invites, openapi, problems, profile, roles,
    service, tags, tokens, variants, webhook_deliveries, webhooks, workspace,
    workspace_memberships,
};

/// The OpenAPI document as it is served, built at the first request.
static OPENAPI: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::new("application/json", openapi_text().into_bytes()));

/// Returns the text of the OpenAPI document, as it is committed and served.
pub fn openapi_text() -> String {
    let mut text = serde_json::to_string_pretty(&openapi_document()).expect("a Value is JSON");
    text.push('\n');
    text
}

/// Returns the OpenAPI document.
pub fn openapi_document() -> Value {
    let (api, facts) = table().into_descriptions();
    let api = serde_json::to_value(api).expect("an OpenAPI document is JSON");
    crate::openapi::complete(api, &facts)
}

/// Creates the router of the service.
pub(crate) fn router(app: App) -> Router {
    app.set_openapi_document(&OPENAPI);
    let origins = app.limits().cors_origins.clone();
    let routes = routes().with_state(app);
    if origins.is_empty() { routes } else { routes.layer(cors::layer(&origins)) }
}

/// Returns every handler. Its `#[utoipa::path]` states its path and method.
fn table() -> Endpoints<App> {
    endpoints![
        content_pieces::get::handle,
        content_pieces::create::handle,
        content_pieces::create_several::handle,
        content_pieces::update::handle,
        content_pieces::delete::handle,
        content_pieces::list::handle,
        content_pieces::sources::list::handle,
        content_pieces::sources::update::handle,
        content_groups::get::handle,
        content_groups::create::handle,
        content_groups::update::handle,
        content_groups::delete::handle,
        content_groups::list::handle,
        tags::get::handle,
        tags::create::handle,
        tags::update::handle,
        tags::delete::handle,
        tags::list::handle,
        variants::get::handle,
        variants::create::handle,
        variants::update::handle,
        variants::delete::handle,
        variants::list::handle,
        roles::get::handle,
        roles::create::handle,
        roles::update::handle,
        roles::delete::handle,
        roles::list::handle,
        tokens::get::handle,
        tokens::create::handle,
        tokens::update::handle,
        tokens::delete::handle,
        tokens::list::handle,
        profile::get::handle,
        profile::update::handle,
        workspace::get::handle,
        workspace::update::handle,
        workspace_memberships::list_members::handle,
        workspace_memberships::list_workspaces::handle,
        workspace_memberships::create::handle,
        workspace_memberships::update::handle,
        workspace_memberships::delete::handle,
        invites::accept::handle,
        invites::page::get,
        invites::page::submit,
        webhooks::get::handle,
        webhooks::create::handle,
        webhooks::update::handle,
        webhooks::delete::handle,
        webhooks::list::handle,
        webhooks::test::handle,
        webhooks::recover::handle,
        webhook_deliveries::list::handle,
        webhook_deliveries::retry::handle,
        events::list::handle,
        home::page,
        service::health,
        service::ready,
        openapi::handle,
        docs::page,
        docs::asset,
        problems::list,
        problems::page,
    ]
}

fn routes() -> Router<App> {
    table()
        .into_router()
        .route_layer(from_fn(record_route))
        .method_not_allowed_fallback(async || {
            Problem::new(Reason::MethodNotAllowed, "the header Allow lists the methods")
        })
        .fallback(async || Problem::new(Reason::NotFound, "no endpoint has this path"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::EndpointFacts;
    use crate::resources::response_cache;

    #[test]
    fn cacheable_routes_exist() {
        let (_, facts) = table().into_descriptions();
        for path in response_cache::ROUTES {
            let exists = |fact: &EndpointFacts| fact.path == path && fact.method == "get";
            assert!(facts.iter().any(exists), "{path}");
        }
    }
}
