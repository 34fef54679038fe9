//! References in a body to other resources. They are checked even if another field is invalid, so
//! that one response lists all issues.

use galley_api_types::problem::{Issue, Step};
use galley_application::{Error, Scope};
use galley_domain::{ContentGroupId, RoleId};
use galley_storage::{Tx, content_groups, roles};

use crate::app::App;
use crate::extract::fields::Fields;

/// A reference to a resource that must exist.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequiredReference {
    ContentGroup(ContentGroupId),
    Role(RoleId),
}

/// The path of a reference in the body: `contentGroupIds[1]`.
pub(crate) type RequestRegistration = Vec<Step>;

impl RequiredReference {
    async fn exists(self, tx: &Tx<'_>, scope: &Scope) -> Result<bool, Error> {
        Ok(match self {
            Self::ContentGroup(id) => {
                scope.contains(&content_groups::path(tx, scope.workspace, id).await?)
            }
            Self::Role(id) => roles::find(tx, scope.workspace, id).await?.is_some(),
        })
    }

    fn resource_name(self) -> &'static str {
        match self {
            Self::ContentGroup(_) => "content group",
            Self::Role(_) => "role",
        }
    }
}

/// Returns the reference of a field to a group, if it has one.
pub(crate) fn group(
    place: &[&str],
    id: Option<ContentGroupId>,
) -> Vec<(RequestRegistration, RequiredReference)> {
    id.map(|id| (path_of_fields(place), RequiredReference::ContentGroup(id))).into_iter().collect()
}

/// Returns the references of a list to groups. Malformed ones (`None`) are left out.
pub(crate) fn groups(
    field: &str,
    ids: &[Option<ContentGroupId>],
) -> Vec<(RequestRegistration, RequiredReference)> {
    let indexed = ids.iter().enumerate();
    let named = indexed.filter_map(|(index, id)| {
        let path = vec![Step::Field(field.to_owned()), Step::Item(index)];
        Some((path, RequiredReference::ContentGroup((*id)?)))
    });
    named.collect()
}

/// Returns the reference of a field to a role, if it has one.
pub(crate) fn role(
    field: &str,
    id: Option<RoleId>,
) -> Vec<(RequestRegistration, RequiredReference)> {
    id.map(|id| (path_of_fields(&[field]), RequiredReference::Role(id))).into_iter().collect()
}

fn path_of_fields(fields: &[&str]) -> RequestRegistration {
    fields.iter().map(|field| Step::Field((*field).to_owned())).collect()
}

/// Rejects a body that has issues, and adds those of references to missing resources.
pub(crate) async fn refuse_all(
    app: &App,
    scope: Scope,
    mut fields: Fields,
    named: Vec<(RequestRegistration, RequiredReference)>,
) -> Result<(), Error> {
    if fields.has_issues() {
        let read = async move |tx: &Tx<'_>| {
            let mut missing = Vec::new();
            for (place, named) in &named {
                if !named.exists(tx, &scope).await? {
                    missing.push(Issue::unknown_reference(place.clone(), named.resource_name()));
                }
            }
            Ok::<_, Error>(missing)
        };
        fields.add_issues(app.database().read("missing_references", read).await?);
    }
    fields.finish()
}
