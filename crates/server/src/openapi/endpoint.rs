//! Routes with what they say of themselves: a handler without a description can't be routed.
//!
//! What a description would repeat is taken from the handler's arguments: an `Actor` says which
//! permission is needed, a `JsonBody` which refusals a body brings, and so on. `rules` makes the
//! description of it.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use galley_domain::Permission;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::PathItem;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::http::app::App;

/// What a handler's arguments say of its endpoint.
#[derive(Debug, Default, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Facts {
    /// It works on the running service, and so on its database.
    pub(crate) service: bool,
    /// It needs a valid token.
    pub(crate) token: bool,
    /// It needs a token with this permission.
    pub(crate) permission: Option<Permission>,
    /// It reads the query.
    pub(crate) query: bool,
    /// It reads a JSON body.
    pub(crate) body: bool,
    /// It reads a form.
    pub(crate) form: bool,
    /// It heeds `Prefer: return`.
    pub(crate) prefer: bool,
    /// It heeds `Prefer: max-age`.
    pub(crate) may_be_old: bool,
    /// It heeds `Idempotency-Key`.
    pub(crate) idempotent: bool,
    /// It heeds `If-Match`.
    pub(crate) if_match: bool,
}

/// What a handler takes.
pub(crate) trait Argument {
    /// Notes what this says of the endpoint.
    fn tell(facts: &mut Facts);
}

impl Argument for State<App> {
    fn tell(facts: &mut Facts) {
        facts.service = true;
    }
}

/// A part of the path; what can't be read is the name of nothing.
impl Argument for Result<Path<String>, PathRejection> {
    fn tell(_: &mut Facts) {}
}

/// A handler, all of whose arguments are known.
pub(crate) trait Endpoint<Arguments> {
    /// What its arguments say.
    fn facts(&self) -> Facts;
}

macro_rules! handlers_of {
    ($(($($argument:ident)*))*) => {$(
        impl<F, R, $($argument,)*> Endpoint<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> R,
            $($argument: Argument,)*
        {
            fn facts(&self) -> Facts {
                #[allow(unused_mut, reason = "a handler may have no arguments")]
                let mut facts = Facts::default();
                $($argument::tell(&mut facts);)*
                facts
            }
        }
    )*};
}

handlers_of! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F1) }

/// The facts of the operation with this path and method.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) path: String,
    pub(crate) method: &'static str,
    pub(crate) facts: Facts,
}

/// The routes, and what each says of itself.
#[derive(Default)]
pub(crate) struct Endpoints {
    router: OpenApiRouter<App>,
    facts: Vec<Fact>,
}

impl Endpoints {
    /// Adds a handler; [`endpoints!`] calls this.
    pub(crate) fn with<A>(
        mut self,
        route: UtoipaMethodRouter<App>,
        handler: impl Endpoint<A>,
    ) -> Self {
        for (path, item) in &route.1.paths {
            let (path, method, facts) = (path.clone(), method(item), handler.facts());
            self.facts.push(Fact { path, method, facts });
        }
        Self { router: self.router.routes(route), facts: self.facts }
    }

    /// The router alone.
    pub(crate) fn into_router(self) -> Router<App> {
        self.router.into()
    }

    /// What the handlers say of themselves, and what their arguments do.
    pub(crate) fn into_descriptions(self) -> (OpenApi, Vec<Fact>) {
        (self.router.into_openapi(), self.facts)
    }
}

/// The method of a path's only operation.
fn method(item: &PathItem) -> &'static str {
    if item.get.is_some() {
        "get"
    } else if item.post.is_some() {
        "post"
    } else if item.put.is_some() {
        "put"
    } else {
        "delete"
    }
}

/// Routes handlers, each by the path and method of its `#[utoipa::path]`.
macro_rules! endpoints {
    ($($handler:path),* $(,)?) => {
        $crate::openapi::endpoint::Endpoints::default()
            $(.with(utoipa_axum::routes!($handler), $handler))*
    };
}
pub(crate) use endpoints;
