//! Requests to create, change, list and get resources, as arguments of handlers.

use std::marker::PhantomData;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::response::Response;
use galley_api_types::request::{Fields, Parsed, RequestBody, ResourceId};
use galley_application::operations::content_pieces::missing_references;
use galley_application::{
    Caller, Error, IdPage, IdempotentRequest, Rejection, VersionPrecondition,
};
use serde::Serialize;

use crate::app::App;
use crate::describe::{HandlerArgument, HandlerFacts, arguments};
use crate::extract::body::JsonBody;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::pagination::{self, PageRequest};
use crate::extract::prefer::Prefer;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// Returns the parsed body. If it has issues, rejects it with them, and with an issue for each
/// reference to a missing resource.
pub(crate) async fn finish<B>(
    caller: &Caller,
    fields: Fields,
    body: Parsed<B>,
) -> Result<B, Error> {
    match body {
        Ok(body) if !fields.has_issues() => Ok(body),
        _ => {
            let (mut issues, references) = fields.into_issues_and_references();
            issues.extend(missing_references(caller, references).await?);
            Err(Rejection::of_issues(issues).into())
        }
    }
}

/// Returns the resource's id and the parsed body.
pub(crate) async fn parse<B: RequestBody>(
    caller: &Caller,
    mut fields: Fields,
) -> Result<(B::Id, B), Error> {
    let (id, body) = (B::Id::parse_id(&mut fields), B::parse(&mut fields));
    let both = id.and_then(|id| body.map(|body| (id, body)));
    let (id, body) = finish(caller, fields, both).await?;
    Ok((id.ok_or_else(Error::not_found)?, body))
}

/// A request to create a resource.
#[derive(Debug)]
pub(crate) struct CreateRequest<B> {
    prefer: Prefer,
    action: ActionRequest<B>,
}

impl<B: RequestBody<Id = ()>> CreateRequest<B> {
    /// Returns the fields, of which handlers may parse some themselves.
    pub(crate) fn fields(&mut self) -> &mut Fields {
        &mut self.action.fields
    }

    /// Returns the preferred response, the parsed body, and the idempotency key with the bytes that
    /// it belongs to.
    pub(crate) async fn parse(
        self,
        caller: &Caller,
    ) -> Result<(Prefer, B, IdempotentRequest), Error> {
        let ((), body, request) = self.action.parse(caller).await?;
        Ok((self.prefer, body, request))
    }
}

impl<B: Send> FromRequest<App> for CreateRequest<B> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let prefer = Prefer::of(request.headers());
        Ok(Self { prefer, action: ActionRequest::from_request(request, app).await? })
    }
}

impl<B> HandlerArgument for CreateRequest<B> {
    fn add_facts(facts: &mut HandlerFacts) {
        facts.prefer = true;
        ActionRequest::<B>::add_facts(facts);
    }
}

/// A request for an action that changes a resource, such as the restoration of a revision.
#[derive(Debug)]
pub(crate) struct ChangeActionRequest<B> {
    prefer: Prefer,
    action: ActionRequest<B>,
}

impl<B: RequestBody> ChangeActionRequest<B> {
    /// Returns the preferred response, the resource's id, the parsed body, and the idempotency key
    /// with its bytes.
    pub(crate) async fn parse(
        self,
        caller: &Caller,
    ) -> Result<(Prefer, B::Id, B, IdempotentRequest), Error> {
        let (id, body, request) = self.action.parse(caller).await?;
        Ok((self.prefer, id, body, request))
    }
}

impl<B: Send> FromRequest<App> for ChangeActionRequest<B> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let prefer = Prefer::of(request.headers());
        Ok(Self { prefer, action: ActionRequest::from_request(request, app).await? })
    }
}

arguments! { @B ChangeActionRequest<B>: prefer, changes, idempotent, body; }

/// A request for an action, such as a test of a webhook. Its response represents no resource.
#[derive(Debug)]
pub(crate) struct ActionRequest<B> {
    key: IdempotencyKey,
    fields: Fields,
    bytes: Bytes,
    body: PhantomData<fn() -> B>,
}

impl<B: RequestBody> ActionRequest<B> {
    /// Returns the resource's id, the parsed body, and the idempotency key with its bytes.
    pub(crate) async fn parse(
        self,
        caller: &Caller,
    ) -> Result<(B::Id, B, IdempotentRequest), Error> {
        let (id, body) = parse(caller, self.fields).await?;
        Ok((id, body, self.key.for_body(&self.bytes)))
    }
}

impl<B: Send> FromRequest<App> for ActionRequest<B> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let key = IdempotencyKey::from_request_parts(&mut parts, app).await?;
        let request = Request::from_parts(parts, body);
        let JsonBody { fields, bytes } = JsonBody::from_request(request, app).await?;
        Ok(Self { key, fields, bytes, body: PhantomData })
    }
}

arguments! { @B ActionRequest<B>: idempotent, body; }

/// A request to change a resource.
#[derive(Debug)]
pub(crate) struct ChangeRequest<B> {
    prefer: Prefer,
    expected: VersionPrecondition,
    /// The fields, of which handlers may parse some themselves.
    pub(crate) fields: Fields,
    body: PhantomData<fn() -> B>,
}

/// A parsed request to change a resource.
pub(crate) struct ParsedChange<B: RequestBody> {
    pub(crate) prefer: Prefer,
    pub(crate) expected: VersionPrecondition,
    pub(crate) id: B::Id,
    pub(crate) change: B,
}

impl<B: RequestBody> ChangeRequest<B> {
    pub(crate) async fn parse(self, caller: &Caller) -> Result<ParsedChange<B>, Error> {
        let (id, change) = parse(caller, self.fields).await?;
        Ok(ParsedChange { prefer: self.prefer, expected: self.expected, id, change })
    }
}

impl<B: Send> FromRequest<App> for ChangeRequest<B> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let prefer = Prefer::of(&parts.headers);
        let expected = VersionPrecondition::from_request_parts(&mut parts, app).await?;
        let request = Request::from_parts(parts, body);
        let JsonBody { fields, .. } = JsonBody::from_request(request, app).await?;
        Ok(Self { prefer, expected, fields, body: PhantomData })
    }
}

arguments! { @B ChangeRequest<B>: prefer, if_match, body; }

/// A query with the parameter `id` alone.
#[derive(Debug)]
pub(crate) struct IdQuery<T>(pub(crate) T);

impl<T: FromStr + Send> FromRequestParts<App> for IdQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let mut query = Query::from_request_parts(parts, app).await?;
        let id = query.id();
        query.finish()?;
        Ok(Self(id.get()?))
    }
}

arguments! { @T IdQuery<T>: query; }

/// A query for a page of a list that is sorted by id.
#[derive(Debug)]
pub(crate) struct IdListQuery<T> {
    query: Query,
    page: PageRequest,
    after: Option<String>,
    id: PhantomData<fn() -> T>,
}

impl<T: FromStr> IdListQuery<T> {
    /// Parses the parameters of the page. The caller parses the others and calls `Query::finish`.
    pub(crate) fn parse(mut query: Query, per_page_max: i64) -> Self {
        let page = PageRequest::from_query(&mut query, per_page_max);
        let after = pagination::after_id::<T>(&mut query);
        Self { query, page, after, id: PhantomData }
    }

    /// Returns the query, for further parameters.
    pub(crate) fn query(&mut self) -> &mut Query {
        &mut self.query
    }

    /// Returns the page.
    pub(crate) fn page(&self) -> IdPage {
        self.page.after(self.after.clone())
    }

    /// Returns the page of these items, with the link to the next page.
    pub(crate) fn respond<'i, I, Id: ToString, B: Serialize>(
        &self,
        items: &'i mut Vec<I>,
        id: impl FnOnce(&I) -> Id,
        body: impl FnMut(&'i I) -> B,
    ) -> Response {
        page_links::list_by_id(self.page, &self.query, items, id, body)
    }
}

impl<T: FromStr> FromRequestParts<App> for IdListQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, app).await?;
        let mut list = Self::parse(query, pagination::PER_PAGE_MAX);
        list.query.finish()?;
        Ok(list)
    }
}

arguments! { @T IdListQuery<T>: query; }
