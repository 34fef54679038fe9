//! Links from the responses to creations.

use serde_json::{Map, Value, json};

/// Adds links to the responses to creations: the operations that read and delete the new resource.
pub(super) fn link_created_resources(paths: &mut Value) {
    let items = paths.as_object_mut().into_iter().flatten();
    for item in items.map(|(_, item)| item) {
        let links: Map<String, Value> = ["get", "delete"]
            .into_iter()
            .filter_map(|method| Some((method, item.get(method)?)))
            .filter(|(_, operation)| has_parameter(operation, "id"))
            .map(|(method, operation)| {
                let operation = &operation["operationId"];
                let parameters = json!({"id": "$response.body#/id"});
                let link = json!({"operationId": operation, "parameters": parameters});
                (method.to_owned(), link)
            })
            .collect();
        let made = item.pointer_mut("/post/responses/201");
        if let Some(made) = made.filter(|_| !links.is_empty()) {
            made["links"] = Value::Object(links);
        }
    }
}

pub(super) fn has_parameter(operation: &Value, name: &str) -> bool {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.into_iter().any(|parameter| parameter["name"] == name)
}
