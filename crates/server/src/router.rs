//! Every route, in one table, and the OpenAPI document of the routes.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use galley_application::Reason;
use serde_json::Value;

use crate::app::App;
use crate::describe::endpoints;
use crate::middleware::{cors, matched_route};
use crate::problem::Problem;
use crate::resources::openapi_document::OPENAPI_DOCUMENT;
pub use crate::resources::openapi_document::openapi_text;
use crate::routes::{
    assets, audit, console, content_groups, content_pieces, docs, events, home, imports, invites,
    problems, profile, roles, service, sessions, settings, sign_in, tags, tokens, variants,
    webhook_deliveries, webhooks, workspace, workspace_memberships,
};

/// Generates the OpenAPI document from the code.
pub fn generate_openapi() -> Value {
    let (api, facts) = described();
    let api = serde_json::to_value(api).expect("an OpenAPI document is JSON");
    crate::openapi::complete(api, &facts)
}

/// Get the OpenAPI document
///
/// Returns an OpenAPI 3.1 document of this API.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getOpenapi",
    responses((status = 200, body = Object, example = json!({
        "openapi": "3.1.0", "info": {"title": "Galley", "version": "0.1.0"}, "paths": {}
    }))),
)]
async fn get_openapi(headers: HeaderMap) -> Response {
    OPENAPI_DOCUMENT.response(&headers)
}

/// Creates the router of the service.
pub(crate) fn router(app: App) -> Router {
    let origins = app.limits().cors_origins.clone();
    let routes = routes().with_state(app);
    if origins.is_empty() { routes } else { routes.layer(cors::layer(&origins)) }
}

// Every handler. Its `#[utoipa::path]` states its path and method. The macro defines `routed` and
// `described`.
endpoints! {
    App:
    content_pieces::get,
    content_pieces::create::handle,
    content_pieces::create_several::handle,
    content_pieces::convert::handle,
    content_pieces::update::handle,
    content_pieces::delete,
    content_pieces::list::handle,
    content_pieces::search::handle,
    content_pieces::revisions::list,
    content_pieces::revisions::get,
    content_pieces::revisions::update,
    content_pieces::revisions::restore,
    content_pieces::publishing::publish,
    content_pieces::publishing::unpublish,
    content_pieces::publishing::preview,
    content_pieces::revisions::delete,
    content_pieces::diff::handle,
    content_pieces::sources::list,
    content_pieces::sources::update,
    content_pieces::trash::list,
    content_pieces::trash::undelete,
    imports::handle,
    content_groups::get,
    content_groups::create,
    content_groups::update,
    content_groups::delete,
    content_groups::list,
    content_groups::schema::get,
    content_groups::schema::violations,
    tags::get,
    tags::create,
    tags::update,
    tags::delete,
    tags::list,
    variants::get,
    variants::create,
    variants::update,
    variants::delete,
    variants::list,
    assets::get,
    assets::create::handle,
    assets::update,
    assets::delete,
    assets::list,
    assets::used_by,
    assets::uploads::create,
    assets::uploads::get,
    assets::uploads::append,
    assets::uploads::delete,
    assets::uploads::options,
    assets::serve::handle,
    roles::get,
    roles::create,
    roles::update,
    roles::delete,
    roles::list,
    tokens::get,
    tokens::create,
    tokens::update,
    tokens::delete,
    tokens::list,
    profile::get,
    profile::update,
    sessions::list,
    sessions::delete,
    sessions::sign_out,
    sign_in::page,
    sign_in::request,
    sign_in::link,
    sign_in::use_link,
    sign_in::use_code,
    sign_in::provider::start,
    sign_in::provider::complete,
    workspace::get,
    workspace::update,
    settings::list,
    workspace_memberships::list_members,
    workspace_memberships::list_workspaces,
    workspace_memberships::create,
    workspace_memberships::create_invite_link,
    workspace_memberships::resend_invite,
    workspace_memberships::update,
    workspace_memberships::delete,
    invites::accept::handle,
    invites::page::get,
    invites::page::submit,
    webhooks::get,
    webhooks::create,
    webhooks::update,
    webhooks::delete,
    webhooks::list,
    webhooks::test,
    webhooks::rotate_secret,
    webhooks::recover,
    webhook_deliveries::list,
    webhook_deliveries::retry,
    events::list::handle,
    events::position::handle,
    events::ticket::create,
    audit::list,
    home::page,
    service::health,
    service::ready,
    get_openapi,
    console::page,
    console::asset,
    docs::page,
    docs::asset,
    problems::list,
    problems::page,
}

/// Returns the console for the addresses of its views, and 404 for all other paths.
async fn unmatched(State(app): State<App>, method: Method, uri: Uri) -> Response {
    let is_read = matches!(method, Method::GET | Method::HEAD);
    if is_read && uri.path().starts_with("/console/") && !uri.path().starts_with("/console/assets/")
    {
        return console::response(&app);
    }
    Problem::new(Reason::NotFound, "no endpoint has this path").into_response()
}

fn routes() -> Router<App> {
    routed()
        .route_layer(from_fn(matched_route::record))
        .method_not_allowed_fallback(async || {
            Problem::new(Reason::MethodNotAllowed, "the header Allow lists the methods")
        })
        .fallback(unmatched)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::Method;

    use super::*;
    use crate::describe::EndpointFacts;
    use crate::extract::known_parameters;
    use crate::resources::response_cache;

    #[test]
    fn cacheable_routes_exist() {
        let (_, facts) = described();
        for path in response_cache::ROUTES {
            let exists = |fact: &EndpointFacts| fact.path == path && fact.method == Method::GET;
            assert!(facts.iter().any(exists), "{path}");
        }
    }

    #[test]
    fn the_known_query_parameters_are_the_declared_ones() {
        let (api, facts) = described();
        let api = serde_json::to_value(api).unwrap();
        for EndpointFacts { path, method, .. } in facts {
            let operation = &api["paths"][&path][method.as_str().to_lowercase()];
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let of_query = parameters.filter(|parameter| parameter["in"] == "query");
            let declared: BTreeSet<_> =
                of_query.map(|parameter| parameter["name"].as_str().unwrap()).collect();
            let known = known_parameters::known_to(&path, &method);
            let known: BTreeSet<_> = known.iter().map(String::as_str).collect();
            assert_eq!(known, declared, "{method} {path}");
        }
    }
}
