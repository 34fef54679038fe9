//! What a body names, looked for also where something else is wrong with it, so that all of it is
//! told at once.

use galley_api_types::problem::{Issue, Step};
use galley_application::{Error, Scope};
use galley_domain::{ContentGroupId, RoleId};
use galley_storage::{Tx, content_groups, roles};

use crate::app::App;
use crate::extract::fields::Fields;

/// Something that must be there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Named {
    ContentGroup(ContentGroupId),
    Role(RoleId),
}

/// Where it is named: `contentGroupIds[1]`.
pub(crate) type Place = Vec<Step>;

impl Named {
    async fn is_there(self, tx: &Tx<'_>, scope: &Scope) -> Result<bool, Error> {
        Ok(match self {
            Self::ContentGroup(id) => {
                scope.holds(&content_groups::path(tx, scope.workspace, id).await?)
            }
            Self::Role(id) => roles::find(tx, scope.workspace, id).await?.is_some(),
        })
    }

    fn what(self) -> &'static str {
        match self {
            Self::ContentGroup(_) => "content group",
            Self::Role(_) => "role",
        }
    }
}

/// The group that a field names, if it names one.
pub(crate) fn group(place: &[&str], id: Option<ContentGroupId>) -> Vec<(Place, Named)> {
    id.map(|id| (place_of(place), Named::ContentGroup(id))).into_iter().collect()
}

/// The groups that a list names; where it names none the place is left out.
pub(crate) fn groups(field: &str, ids: &[Option<ContentGroupId>]) -> Vec<(Place, Named)> {
    let indexed = ids.iter().enumerate();
    let named = indexed.filter_map(|(index, id)| {
        let place = vec![Step::Field(field.to_owned()), Step::Item(index)];
        Some((place, Named::ContentGroup((*id)?)))
    });
    named.collect()
}

/// The role that a field names, if it names one.
pub(crate) fn role(field: &str, id: Option<RoleId>) -> Vec<(Place, Named)> {
    id.map(|id| (place_of(&[field]), Named::Role(id))).into_iter().collect()
}

fn place_of(fields: &[&str]) -> Place {
    fields.iter().map(|field| Step::Field((*field).to_owned())).collect()
}

/// Refuses what was wrong with a body, together with what it names that isn't there.
pub(crate) async fn refuse_all(
    app: &App,
    scope: Scope,
    mut fields: Fields,
    named: Vec<(Place, Named)>,
) -> Result<(), Error> {
    if fields.has_issues() {
        let read = async move |tx: &Tx<'_>| {
            let mut missing = Vec::new();
            for (place, named) in &named {
                if !named.is_there(tx, &scope).await? {
                    missing.push(Issue::unknown_reference(place.clone(), named.what()));
                }
            }
            Ok::<_, Error>(missing)
        };
        fields.add(app.database().read("missing_references", read).await?);
    }
    fields.finish()
}
