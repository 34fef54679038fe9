//! Routes with their OpenAPI operations. A handler without an operation can't be routed.
//!
//! The handler's arguments supply the recurring parts of an operation: an `Actor` the required
//! permission, a `JsonBody` the error responses to a body, and so on. `rules` adds these parts to
//! the document.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method};
use axum::routing::MethodRouter;
use galley_domain::Permission;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::PathItem;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// The properties of an endpoint, from the arguments of its handler.
#[derive(Debug, Default, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct HandlerFacts {
    /// The handler uses the running service, and so its database.
    pub(crate) service: bool,
    /// The handler requires a valid token.
    pub(crate) token: bool,
    /// The handler requires a token with one of these permissions.
    pub(crate) permissions: &'static [Permission],
    /// The handler signs people in.
    pub(crate) signs_in: bool,
    /// The handler reads the query.
    pub(crate) query: bool,
    /// The handler reads a JSON body.
    pub(crate) body: bool,
    /// The handler reads a form.
    pub(crate) form: bool,
    /// The handler supports `Prefer: return`.
    pub(crate) prefer: bool,
    /// The handler supports `Prefer: max-age`.
    pub(crate) allows_stale: bool,
    /// The handler supports `Idempotency-Key`.
    pub(crate) idempotent: bool,
    /// The handler supports `If-Match`.
    pub(crate) if_match: bool,
    /// The handler follows the protocol tus.
    pub(crate) resumable: bool,
    /// The handler of a POST changes a resource.
    pub(crate) changes: bool,
}

impl HandlerFacts {
    /// Returns the method that has the same responses. A POST that changes a resource responds as a
    /// PUT does.
    pub(crate) fn effect<'m>(&self, method: &'m str) -> &'m str {
        if method == "post" && self.changes { "put" } else { method }
    }
}

/// An argument of a handler.
pub(crate) trait HandlerArgument {
    /// Adds the properties that follow from this argument.
    fn add_facts(facts: &mut HandlerFacts);
}

/// Describes arguments of handlers by the facts that they add.
macro_rules! arguments {
    ($($(@$generic:ident)? $argument:ty: $($fact:ident),*;)*) => {$(
        impl$(<$generic>)? $crate::describe::HandlerArgument for $argument {
            #[allow(unused_variables, reason = "an argument may add no facts")]
            fn add_facts(facts: &mut $crate::describe::HandlerFacts) {
                $(facts.$fact = true;)*
            }
        }
    )*};
}
pub(crate) use arguments;

impl<S> HandlerArgument for State<S> {
    fn add_facts(facts: &mut HandlerFacts) {
        facts.service = true;
    }
}

/// A segment of the path. A malformed one is handled like an unknown name.
impl HandlerArgument for Result<Path<String>, PathRejection> {
    fn add_facts(_: &mut HandlerFacts) {}
}

impl HandlerArgument for Result<Path<(String, String)>, PathRejection> {
    fn add_facts(_: &mut HandlerFacts) {}
}

impl HandlerArgument for HeaderMap {
    fn add_facts(_: &mut HandlerFacts) {}
}

/// A handler whose arguments are all an [`HandlerArgument`].
pub(crate) trait DescribedHandler<Arguments> {
    /// Returns the properties from the handler's arguments.
    fn facts(&self) -> HandlerFacts;
}

macro_rules! handlers_of {
    ($(($($argument:ident)*))*) => {$(
        impl<F, R, $($argument,)*> DescribedHandler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> R,
            $($argument: HandlerArgument,)*
        {
            fn facts(&self) -> HandlerFacts {
                #[allow(unused_mut, reason = "a handler may have no arguments")]
                let mut facts = HandlerFacts::default();
                $($argument::add_facts(&mut facts);)*
                facts
            }
        }
    )*};
}

handlers_of! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F1) }

/// The properties of the operation with this path and method.
#[derive(Debug)]
pub(crate) struct EndpointFacts {
    pub(crate) path: String,
    pub(crate) method: Method,
    pub(crate) facts: HandlerFacts,
}

/// Returns the path and the route of a handler.
pub(crate) type HandlerRoute<S> = fn() -> (String, MethodRouter<S>);

/// Returns the OpenAPI operation of a handler, and the properties of its arguments.
pub(crate) type Description<S> = fn() -> (UtoipaMethodRouter<S>, HandlerFacts);

/// Creates the router of these routes. [`endpoints!`] calls this.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(routes: &[HandlerRoute<S>]) -> Router<S> {
    routes.iter().fold(Router::new(), |router, route| {
        let (path, route) = route();
        router.route(&path, route)
    })
}

/// Returns the OpenAPI document of these operations, and their properties. [`endpoints!`] calls
/// this.
pub(crate) fn describe<S: Clone + Send + Sync + 'static>(
    descriptions: &[Description<S>],
) -> (OpenApi, Vec<EndpointFacts>) {
    let (mut router, mut all_facts) = (OpenApiRouter::new(), Vec::new());
    for description in descriptions {
        let (route, facts) = description();
        for (path, item) in &route.1.paths {
            let facts = facts.clone();
            all_facts.push(EndpointFacts { path: path.clone(), method: method(item), facts });
        }
        router = router.routes(route);
    }
    (router.into_openapi(), all_facts)
}

/// Returns the method of a path's only operation.
fn method(item: &PathItem) -> Method {
    let operations = [
        (Method::GET, &item.get),
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::DELETE, &item.delete),
        (Method::PATCH, &item.patch),
        (Method::OPTIONS, &item.options),
    ];
    let found = operations.into_iter().find(|(_, operation)| operation.is_some());
    found.expect("a handler has an operation").0
}

/// Defines two functions of handlers with a `#[utoipa::path]`: `routed` returns the router of their
/// paths and methods, `described` their OpenAPI document and properties. The program calls the
/// first only, so it does not contain the second.
///
/// Each endpoint is a function of its own. One expression of all took 1.6 MB of code, mostly for
/// the removal of the earlier routes if a later one panics.
macro_rules! endpoints {
    ($state:ty: $($handler:path),* $(,)?) => {
        fn routed() -> axum::Router<$state> {
            $crate::describe::router(&[$(|| {
                use utoipa_axum::PathItemExt as _;
                let (path, methods) = {
                    utoipa_axum::paste! {
                        let path = utoipa_axum::routes!(@path [path()] of $handler);
                        let methods = utoipa_axum::routes!(@path [methods()] of $handler);
                        (path, methods)
                    }
                };
                let route = axum::routing::MethodRouter::new();
                let route = methods
                    .iter()
                    .fold(route, |route, method| route.on(method.to_method_filter(), $handler));
                (path, route)
            }),*])
        }

        fn described() -> (utoipa::openapi::OpenApi, Vec<$crate::describe::EndpointFacts>) {
            $crate::describe::describe::<$state>(&[$(|| {
                let facts = $crate::describe::DescribedHandler::facts(&$handler);
                (utoipa_axum::routes!($handler), facts)
            }),*])
        }
    };
}
pub(crate) use endpoints;
