//! Lists in request bodies.

use std::hash::Hash;
use std::marker::PhantomData;

use galley_domain::access_token::GROUPS_MAX;
use galley_domain::content_piece::{REFERENCES_MAX, without_repeats};
use galley_domain::event::{EventType, EventTypes};
use galley_domain::permission::{Permission, PermissionSet, Resource};
use galley_domain::{ContentGroupId, Invalid, TagId, WorkspaceMemberId};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::fields::{FieldContext, FieldValue, Parsed, RequestBody, all};
use crate::schemas;

/// Identifiers of resources that must exist, each once. An object with an `id` counts as its
/// identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References<T>(pub Vec<T>);

/// A type of identifier that lists in bodies may contain.
pub trait ListedId: FieldValue + Copy + Eq + Hash {
    /// The schema of an item, which has a name.
    type Item: ToSchema;
}

impl ListedId for TagId {
    type Item = schemas::TagReference;
}

impl ListedId for WorkspaceMemberId {
    type Item = schemas::WorkspaceMemberReference;
}

impl ListedId for ContentGroupId {
    type Item = schemas::ContentGroupReference;
}

impl<T: ListedId> FieldValue for References<T> {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let items = context.items(value, REFERENCES_MAX, "items")?;
        let items = items.into_iter().enumerate().map(|(index, item)| {
            let id = match item {
                Value::Object(mut object) => object.remove("id").unwrap_or_default(),
                other => other,
            };
            T::parse(id, &mut context.item(index))
        });
        all(items).map(|items| Self(without_repeats(items)))
    }

    fn schema() -> Schema {
        let item = Ref::from_schema_name(T::Item::name());
        ArrayBuilder::new().items(item).max_items(Some(REFERENCES_MAX)).into()
    }

    fn add_referenced(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::Item::name().into_owned(), T::Item::schema()));
        T::Item::schemas(schemas);
    }
}

/// The groups that limit a token. At least one is required, as an empty list could be mistaken for
/// no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLimit(pub Vec<ContentGroupId>);

impl FieldValue for GroupLimit {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        const { assert!(GROUPS_MAX == REFERENCES_MAX) };
        let References(groups) = References::parse(value, context)?;
        if groups.is_empty() {
            let message = "must name a group, or be null for access to all groups";
            return context.reject(&Invalid::new("too_short", message));
        }
        Ok(Self(groups))
    }

    fn schema() -> Schema {
        match References::<ContentGroupId>::schema() {
            Schema::Array(list) => ArrayBuilder::from(list).min_items(Some(1)).into(),
            other => other,
        }
    }

    fn add_referenced(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        References::<ContentGroupId>::add_referenced(schemas);
    }
}

/// The limit of permissions in a list. It exceeds their number, as repeats are accepted.
const PERMISSIONS_LIMIT: usize = 100;

impl FieldValue for PermissionSet {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let items = context.items(value, PERMISSIONS_LIMIT, "permissions")?;
        let parse = |(index, item)| {
            let mut context = context.item(index);
            context.text(item)?.parse::<Permission>().or_else(|_| {
                let names = Resource::ALL.iter().map(|what| what.as_str()).collect::<Vec<_>>();
                let message = format!(
                    "must be <resource>:read or <resource>:write; the resources are {}",
                    names.join(", ")
                );
                context.reject(&Invalid::new("invalid_enum_value", message))
            })
        };
        Ok(all(items.into_iter().enumerate().map(parse))?.into_iter().collect())
    }

    fn schema() -> Schema {
        let permission = schemas::Permission::schema();
        ArrayBuilder::new().items(permission).max_items(Some(PERMISSIONS_LIMIT)).into()
    }
}

/// The limit on events in a list. It exceeds their number, as repeats are accepted.
const EVENTS_LIMIT: usize = 100;

impl FieldValue for EventTypes {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let items = context.items(value, EVENTS_LIMIT, "events")?;
        if items.is_empty() {
            return context.reject(&Invalid::new("too_short", "must name an event"));
        }
        let parse = |(index, item)| EventType::parse(item, &mut context.item(index));
        Ok(Self::new(all(items.into_iter().enumerate().map(parse))?))
    }

    fn schema() -> Schema {
        let event = schemas::Event::schema();
        ArrayBuilder::new().items(event).min_items(Some(1)).max_items(Some(EVENTS_LIMIT)).into()
    }
}

/// Texts, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts<T>(pub Vec<T>);

impl<T: FieldValue> FieldValue for Texts<T> {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let items = context.items(value, REFERENCES_MAX, "items")?;
        let parse = |(index, item)| T::parse(item, &mut context.item(index));
        all(items.into_iter().enumerate().map(parse)).map(Self)
    }

    fn schema() -> Schema {
        ArrayBuilder::new().items(RefOr::T(T::schema())).max_items(Some(REFERENCES_MAX)).into()
    }
}

/// The limit on objects in a list.
const OBJECTS_LIMIT: usize = 100;

/// Objects that the handler parses, each as a body of type `B`. Their issues get the path of the
/// item.
#[derive(Debug, Clone)]
pub struct Objects<B, const LIMIT: usize = OBJECTS_LIMIT>(
    pub Vec<Map<String, Value>>,
    PhantomData<B>,
);

impl<B: RequestBody + ToSchema, const LIMIT: usize> FieldValue for Objects<B, LIMIT> {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let items = context.items(value, LIMIT, "items")?;
        if items.is_empty() {
            return context.reject(&Invalid::new("too_short", "must have an item"));
        }
        let parse = |(index, item)| match item {
            Value::Object(object) => Ok(object),
            other => context.item(index).wrong_type("an object", &other),
        };
        Ok(Self(all(items.into_iter().enumerate().map(parse))?, PhantomData))
    }

    fn schema() -> Schema {
        let body = Ref::from_schema_name(B::name());
        ArrayBuilder::new().items(body).min_items(Some(1)).max_items(Some(LIMIT)).into()
    }

    fn add_referenced(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((B::name().into_owned(), B::schema()));
        B::schemas(schemas);
    }
}
