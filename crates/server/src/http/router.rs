//! Every route, in one table.

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};

use crate::http::app::App;
use crate::http::cors;
use crate::http::edge::remember_route;
use crate::http::problem::{Problem, Reason};
use crate::routes::{
    content_groups, content_pieces, profile, roles, service, tags, tokens, variants, webhooks,
    workspace, workspace_memberships,
};

/// The service's routes.
pub fn router(app: App) -> Router {
    let origins = app.limits().cors_origins.clone();
    let routes = routes().with_state(app);
    if origins.is_empty() { routes } else { routes.layer(cors::layer(&origins)) }
}

fn routes() -> Router<App> {
    Router::new()
        .route(
            "/content-pieces",
            get(content_pieces::get::handle)
                .post(content_pieces::create::handle)
                .put(content_pieces::update::handle)
                .delete(content_pieces::delete::handle),
        )
        .route("/content-pieces/list", get(content_pieces::list::handle))
        .route(
            "/content-groups",
            get(content_groups::get::handle)
                .post(content_groups::create::handle)
                .put(content_groups::update::handle)
                .delete(content_groups::delete::handle),
        )
        .route("/content-groups/list", get(content_groups::list::handle))
        .route(
            "/tags",
            get(tags::get::handle)
                .post(tags::create::handle)
                .put(tags::update::handle)
                .delete(tags::delete::handle),
        )
        .route("/tags/list", get(tags::list::handle))
        .route(
            "/roles",
            get(roles::get::handle)
                .post(roles::create::handle)
                .put(roles::update::handle)
                .delete(roles::delete::handle),
        )
        .route("/roles/list", get(roles::list::handle))
        .route(
            "/tokens",
            get(tokens::get::handle)
                .post(tokens::create::handle)
                .put(tokens::update::handle)
                .delete(tokens::delete::handle),
        )
        .route("/tokens/list", get(tokens::list::handle))
        .route(
            "/webhooks",
            get(webhooks::get::handle)
                .post(webhooks::create::handle)
                .put(webhooks::update::handle)
                .delete(webhooks::delete::handle),
        )
        .route("/webhooks/list", get(webhooks::list::handle))
        .route("/profile", get(profile::get::handle).put(profile::update::handle))
        .route("/workspace", get(workspace::get::handle).put(workspace::update::handle))
        .route(
            "/workspace-memberships",
            post(workspace_memberships::create::handle)
                .put(workspace_memberships::update::handle)
                .delete(workspace_memberships::delete::handle),
        )
        .route(
            "/workspace-memberships/list-members",
            get(workspace_memberships::list_members::handle),
        )
        .route(
            "/workspace-memberships/list-workspaces",
            get(workspace_memberships::list_workspaces::handle),
        )
        .route(
            "/variants",
            get(variants::get::handle)
                .post(variants::create::handle)
                .put(variants::update::handle)
                .delete(variants::delete::handle),
        )
        .route("/variants/list", get(variants::list::handle))
        .route("/healthz", get(service::health))
        .route("/readyz", get(service::ready))
        .route_layer(from_fn(remember_route))
        .method_not_allowed_fallback(async || {
            Problem::new(Reason::MethodNotAllowed, "the header Allow names the methods")
        })
        .fallback(async || Problem::new(Reason::NotFound, "there is nothing under this path"))
}
