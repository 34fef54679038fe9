//! `/audit`.

use galley_api_types::audit::AuditEntryBody;
use galley_application::operations::audit::{self, AuditList};
use galley_domain::audit::AuditAction;
use galley_domain::{AuditEntryId, Timestamp};
use galley_storage::audit::{AuditActor, AuditQuery};
use utoipa::IntoParams;

use crate::extract::actor::ReadAudit;
use crate::extract::pagination::PER_PAGE_MAX;
use crate::resources::overload;
use crate::routes::prelude::*;

/// The query parameters of the list, besides those of paging.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct AuditListParameters {
    /// List only changes of this kind.
    #[param(value_type = Option<schemas::AuditAction>)]
    action: Option<String>,
    /// List only changes by this token or member, or by `system`.
    #[param(example = "system")]
    actor: Option<String>,
    /// List only changes of the resource with this identifier.
    #[param(example = "cp_01kah3v9k8d4x7w2m5n6p8q9rs")]
    target: Option<String>,
    /// List only changes at this time or later (RFC 3339).
    #[param(value_type = Option<schemas::Time>)]
    since: Option<String>,
    /// List only changes before this time (RFC 3339).
    #[param(value_type = Option<schemas::Time>)]
    until: Option<String>,
}

/// List the audit log
///
/// Returns the changes of all resources in the workspace, newest first. Each entry is stored in the
/// transaction of its change, and kept for 400 days.
#[utoipa::path(
    get, path = "/audit", operation_id = "listAuditEntries",
    params(IdPageParams, AuditListParameters),
    responses(
        (status = 200, body = [AuditEntryBody<'_>]),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn list(actor: Actor<ReadAudit>, query: Query) -> Result<Response, Problem> {
    let mut list = IdListQuery::<AuditEntryId>::parse(query, PER_PAGE_MAX);
    let query = list.query();
    let actions: Vec<_> =
        AuditAction::ALL.iter().map(|&action| (action.as_str(), action)).collect();
    let action = query.choice("action", &actions);
    let author = query.text("actor").map(|text| parse_actor(&text));
    let target = query.text("target");
    let since = query.time("since", Timestamp::parse_iso8601);
    let until = query.time("until", Timestamp::parse_iso8601);
    query.finish()?;
    let page = list.page();
    let request = AuditQuery {
        action,
        actor: author.flatten(),
        target,
        since,
        until,
        before: page.after.as_deref().and_then(|after| after.parse().ok()),
        limit: page.limit,
        offset: page.offset,
    };
    // A malformed identifier matches no author.
    let is_unknown = author == Some(None);
    let request = if is_unknown { AuditQuery { limit: 0, ..request } } else { request };
    let found = overload::uncounted(audit::list(actor.caller(), request)).await?;
    let AuditList { mut entries, referenced } = found;
    Ok(list.respond(
        &mut entries,
        |entry| entry.id,
        |entry| AuditEntryBody::new(entry, &referenced),
    ))
}

fn parse_actor(text: &str) -> Option<AuditActor> {
    if text == "system" {
        return Some(AuditActor::System);
    }
    let token = text.parse().map(AuditActor::Token);
    token.or_else(|_| text.parse().map(AuditActor::Member)).ok()
}
