//! References in a body to other resources. They are checked even if another field is invalid, so
//! that one response lists all issues.

use galley_api_types::problem::Step;
use galley_application::operations::required_references::{self, RequiredReference};
use galley_application::{Caller, Error};
use galley_domain::{ContentGroupId, RoleId};

use crate::extract::fields::{Fields, RequiredValues};

/// The path of a reference in the body: `contentGroupIds[1]`.
pub(crate) type FieldPath = Vec<Step>;

/// Returns the reference of a field to a group, if it has one.
pub(crate) fn group(
    path: &[&str],
    id: Option<ContentGroupId>,
) -> Vec<(FieldPath, RequiredReference)> {
    id.map(|id| (path_of_fields(path), RequiredReference::ContentGroup(id))).into_iter().collect()
}

/// Returns the references of a list to groups. Malformed ones (`None`) are left out.
pub(crate) fn groups(
    field: &str,
    ids: &[Option<ContentGroupId>],
) -> Vec<(FieldPath, RequiredReference)> {
    let indexed = ids.iter().enumerate();
    let named = indexed.filter_map(|(index, id)| {
        let path = vec![Step::Field(field.to_owned()), Step::Item(index)];
        Some((path, RequiredReference::ContentGroup((*id)?)))
    });
    named.collect()
}

/// Returns the reference of a field to a role, if it has one.
pub(crate) fn role(field: &str, id: Option<RoleId>) -> Vec<(FieldPath, RequiredReference)> {
    id.map(|id| (path_of_fields(&[field]), RequiredReference::Role(id))).into_iter().collect()
}

fn path_of_fields(fields: &[&str]) -> FieldPath {
    fields.iter().map(|field| Step::Field((*field).to_owned())).collect()
}

/// Rejects a body that has issues, and adds those of references to missing resources. Otherwise
/// returns the values of the required fields.
pub(crate) async fn finish<V: RequiredValues>(
    caller: &Caller,
    mut fields: Fields,
    named: Vec<(FieldPath, RequiredReference)>,
    required: V,
) -> Result<V::Values, Error> {
    if fields.has_issues() {
        fields.add_issues(required_references::missing(caller, named).await?);
    }
    fields.finish_with(required)
}
