//! The declaration of request bodies.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

/// Adds null to a schema.
pub(super) fn or_null(schema: Schema) -> Schema {
    let with_null = |kind: SchemaType| match kind {
        SchemaType::Type(kind) => SchemaType::Array(vec![kind, Type::Null]),
        other => other,
    };
    match schema {
        Schema::Object(mut object) => {
            object.schema_type = with_null(object.schema_type);
            if let Some(values) = &mut object.enum_values {
                values.push(Value::Null);
            }
            Schema::Object(object)
        }
        Schema::Array(mut list) => {
            list.schema_type = with_null(list.schema_type);
            Schema::Array(list)
        }
        Schema::AnyOf(mut forms) => {
            let null = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Null));
            forms.items.push(null.into());
            Schema::AnyOf(forms)
        }
        other => other,
    }
}

/// Adds a field to the schema of a body. Its docs and its example replace those of its type.
pub(crate) fn add_field(
    body: ObjectBuilder,
    (name, is_required): (&str, bool),
    docs: &[&str],
    example: Option<Value>,
    mut schema: Schema,
) -> ObjectBuilder {
    let (description, examples) = match &mut schema {
        Schema::Object(object) => (&mut object.description, Some(&mut object.examples)),
        Schema::Array(list) => (&mut list.description, None),
        Schema::AnyOf(forms) => (&mut forms.description, Some(&mut forms.examples)),
        _ => (&mut None, None),
    };
    if !docs.is_empty() {
        *description = Some(text_of(docs));
    }
    if let (Some(examples), Some(example)) = (examples, example) {
        *examples = vec![example];
    }
    let body = body.property(name, schema);
    if is_required { body.required(name) } else { body }
}

/// Joins the lines of a doc comment.
pub(crate) fn text_of(docs: &[&str]) -> String {
    docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

/// Returns the name of a field in JSON.
pub(crate) fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + &crate::schemas::capitalized(part))
}

/// The meaning of a field's mode in a new resource and in a change of it.
///
/// | mode | in a new resource | in a change |
/// |---|---|---|
/// | `required` | must be present | replaces the value; null is an error |
/// | `optional` | may be absent or null | null clears the value |
/// | `defaulted` | may be absent or null | replaces the value; null is an error |
/// | `overridable` | must be present | as `required`; in a variant null removes the override |
///
/// In a change, an absent field leaves the value unchanged.
macro_rules! mode {
    (id) => { () };
    (id $id:ident) => { $id };
    (type new required $type:ty) => { $type };
    (type new overridable $type:ty) => { $type };
    (type new $mode:ident $type:ty) => { Option<$type> };
    (type change optional $type:ty) => { Option<Option<$type>> };
    (type change overridable $type:ty) => { Option<Option<$type>> };
    (type change $mode:ident $type:ty) => { Option<$type> };
    (parser new required) => { $crate::request::Fields::required };
    (parser new overridable) => { $crate::request::Fields::required };
    (parser new $mode:ident) => { $crate::request::Fields::optional };
    (parser change optional) => { $crate::request::Fields::clearable };
    (parser change overridable) => { $crate::request::Fields::overridable };
    (parser change $mode:ident) => { $crate::request::Fields::replacement };
    (is_required new required) => { true };
    (is_required new overridable) => { true };
    (is_required $kind:ident $mode:ident) => { false };
    (schema new required $type:ty) => { <$type as $crate::request::FieldValue>::schema() };
    (schema new overridable $type:ty) => { <$type as $crate::request::FieldValue>::schema() };
    (schema new $mode:ident $type:ty) => {
        <$type as $crate::request::FieldValue>::nullable_schema()
    };
    (schema change overridable $type:ty) => {
        <$type as $crate::request::FieldValue>::nullable_schema()
    };
    (schema change optional $type:ty) => {
        <$type as $crate::request::FieldValue>::nullable_schema()
    };
    (schema change $mode:ident $type:ty) => { <$type as $crate::request::FieldValue>::schema() };
}

/// Declares a request body: `new` for a new resource, `change` for a change. The fields after
/// `also` are in the schema only; handlers parse them.
macro_rules! body {
    (
        $(#[doc = $about:expr])* $kind:ident $name:ident $(as $schema_name:literal)? $(of $id:ident)? {
            $($(#[doc = $doc:expr])* $field:ident: $mode:ident $type:ty $(= $example:expr)?,)*
        } $(also {
            $($(#[doc = $other_doc:expr])* $other:ident: $other_mode:ident $other_type:ty
                $(= $other_example:expr)?,)*
        })?
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone)]
        pub struct $name {$(
            $(#[doc = $doc])*
            pub $field: $crate::request::mode!(type $kind $mode $type),
        )*}

        impl $crate::request::RequestBody for $name {
            type Id = $crate::request::mode!(id $($id)?);

            #[allow(unused_variables, reason = "a body may have no fields")]
            fn parse(fields: &mut $crate::request::Fields) -> $crate::request::Parsed<Self> {
                // All fields are parsed before the first issue ends it.
                $(
                    let name = $crate::request::camel_case(stringify!($field));
                    let $field = $crate::request::mode!(parser $kind $mode)(fields, &name);
                )*
                Ok(Self { $($field: $field?,)* })
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                #[allow(unused_imports, reason = "a body may have no fields")]
                use $crate::request::{add_field, camel_case, mode};
                let about = $crate::request::text_of(&[$($about),*]);
                let body = utoipa::openapi::ObjectBuilder::new().description(Some(about));
                $(
                    let id = $crate::request::schema_of::<$crate::schemas::$id>();
                    let body = add_field(body, ("id", true), &[], None, id);
                )?
                $(
                    let name = (&*camel_case(stringify!($field)), mode!(is_required $kind $mode));
                    let example = [$(serde_json::Value::from($example))?].into_iter().next();
                    let schema = mode!(schema $kind $mode $type);
                    let body = add_field(body, name, &[$($doc),*], example, schema);
                )*
                $($(
                    let name = camel_case(stringify!($other));
                    let name = (&*name, mode!(is_required $kind $other_mode));
                    let example = [$(serde_json::Value::from($other_example))?].into_iter().next();
                    let schema = mode!(schema $kind $other_mode $other_type);
                    let body = add_field(body, name, &[$($other_doc),*], example, schema);
                )*)?
                body.into()
            }
        }

        impl utoipa::ToSchema for $name {
            $(
                fn name() -> std::borrow::Cow<'static, str> {
                    $schema_name.into()
                }
            )?

            #[allow(unused_variables, reason = "a body may have no fields")]
            fn schemas(
                all: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>,
            ) {
                $(<$type as $crate::request::FieldValue>::add_referenced(all);)*
                $($(<$other_type as $crate::request::FieldValue>::add_referenced(all);)*)?
            }
        }
    };
}

/// Declares the bodies of a new resource and of a change of it, which have the same fields. Those
/// after `also_in_change` are in the schema of the change only.
macro_rules! bodies {
    (
        $(#[doc = $new_about:expr])* $new:ident $(as $new_name:literal)?,
        $(#[doc = $change_about:expr])* $change:ident $(as $change_name:literal)? of $id:ident
        { $($fields:tt)* }
        $(also { $($others:tt)* } $(also_in_change { $($of_change:tt)* })?)?
    ) => {
        $crate::request::body! {
            $(#[doc = $new_about])*
            new $new $(as $new_name)? { $($fields)* } $(also { $($others)* })?
        }
        $crate::request::body! {
            $(#[doc = $change_about])*
            change $change $(as $change_name)? of $id { $($fields)* }
            $(also { $($others)* $($($of_change)*)? })?
        }
    };
}

pub(crate) use {bodies, body, mode};
