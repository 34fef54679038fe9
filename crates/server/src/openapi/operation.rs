//! An operation to complete: its parameters and its body.

use serde_json::{Value, json};

use super::{examples, shape};
use crate::describe::HandlerFacts;
use crate::extract::known_parameters::UNDESCRIBED_PARAMETER;

pub(super) const JSON: &str = "application/json";

const FORM: &str = "application/x-www-form-urlencoded";

/// The media type of a form with a file.
const UPLOAD_FORM: &str = "multipart/form-data";

/// The media type of a part of a resumable upload.
const UPLOAD_PART: &str = "application/offset+octet-stream";

/// An operation to complete.
pub(super) struct OperationContext<'a> {
    pub(super) path: &'a str,
    pub(super) method: &'a str,
    pub(super) facts: &'a HandlerFacts,
    /// True if its path has a GET as well.
    pub(super) has_get: bool,
    pub(super) schemas: &'a Value,
}

impl OperationContext<'_> {
    pub(super) fn complete_parameters(&self, operation: &mut Value) {
        let mut parameters: Vec<Value> = Vec::new();
        let given = operation["parameters"].as_array().into_iter().flatten();
        for parameter in given.filter(|given| given["name"] != UNDESCRIBED_PARAMETER) {
            // A route's own parameter overrides the shared one of the same name.
            match parameters.iter_mut().find(|known| known["name"] == parameter["name"]) {
                Some(known) => *known = parameter.clone(),
                None => parameters.push(parameter.clone()),
            }
        }
        for parameter in &mut parameters {
            if parameter["in"] == "query" && parameter["required"] != true {
                parameter["allowEmptyValue"] = true.into();
            }
            if parameter["name"] == "lastId" && parameter["schema"].get("pattern").is_none() {
                let pattern = self.pattern_of_items(operation);
                assert!(pattern.is_string(), "{}: lastId has no pattern", self.path);
                parameter["schema"]["pattern"] = pattern;
            }
            if let (None, Some(about)) =
                (parameter.get("description"), parameter["schema"].get("description").cloned())
            {
                parameter["description"] = about;
            }
            let schema = &mut parameter["schema"];
            schema.as_object_mut().map(|schema| schema.shift_remove("description"));
            // A parameter is present or absent, never null.
            if let Some(types) = schema["type"].as_array() {
                schema["type"] = types.first().cloned().unwrap_or_default();
            }
            if let Some([_, named]) = schema["anyOf"].as_array().map(Vec::as_slice) {
                *schema = named.clone();
            }
        }
        let mut common = Vec::new();
        if self.facts.token {
            common.push("GalleyWorkspace");
        }
        if self.method == "get" {
            common.push("IfNoneMatch");
        }
        if self.facts.if_match {
            common.push("IfMatch");
        }
        if self.facts.resumable {
            common.push("TusResumable");
        }
        if self.facts.prefer {
            common.push("Prefer");
        }
        if self.facts.allows_stale {
            common.push("PreferMaxAge");
        }
        if self.facts.idempotent {
            common.push("IdempotencyKey");
        }
        let refer = |name| json!({"$ref": format!("#/components/parameters/{name}")});
        parameters.extend(common.into_iter().map(refer));
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
    }

    /// Returns the pattern of the identifiers in the list of the response.
    fn pattern_of_items(&self, operation: &Value) -> Value {
        let list = &operation["responses"]["200"]["content"][JSON]["schema"];
        self.resource(&list["items"])["properties"]["id"]["pattern"].clone()
    }

    pub(super) fn complete_body(&self, operation: &mut Value) {
        let content = &mut operation["requestBody"]["content"];
        let has_form =
            [FORM, UPLOAD_FORM, UPLOAD_PART].iter().any(|form| content.get(*form).is_some());
        match content.get_mut(JSON) {
            Some(body) => self.add_example(body),
            None if has_form => {}
            None => {
                operation.as_object_mut().map(|operation| operation.shift_remove("requestBody"));
            }
        }
    }

    /// Adds an example to a body, unless it has some.
    pub(super) fn add_example(&self, body: &mut Value) {
        if ["example", "examples"].iter().all(|key| body.get(key).is_none())
            && let Some(example) = examples::example_of(&body["schema"], self.schemas)
        {
            body["example"] = example;
        }
    }

    pub(super) fn resource(&self, schema: &Value) -> &Value {
        &self.schemas[shape::reference(schema).unwrap_or_default()]
    }
}
