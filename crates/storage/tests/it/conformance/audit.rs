//! The audit log, and the numbers of rejected credentials.

use galley_domain::audit::{AuditAction, AuditEntry};
use galley_domain::{Actor, AuditEntryId, Timestamp, TokenId, WorkspaceId, WorkspaceMemberId};
use galley_storage::audit::{self, AuditActor, AuditQuery};
use galley_storage::rejected_credentials::{self, RejectedCredentials};
use galley_storage::{Error, WriteTx};

use crate::store::{NOW, id};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(NOW.ms() + ms)
}

fn entry(ms: i64, actor: Actor, action: AuditAction, target: &str) -> AuditEntry {
    AuditEntry {
        id: AuditEntryId::first_at(at(ms)),
        actor,
        action,
        target: target.to_owned(),
        revision: Some(ms),
        request_id: Some("request".to_owned()),
        remote_address: Some("203.0.113.7".to_owned()),
        changes: Some("[]".to_owned()),
    }
}

/// Exercises the audit log, and leaves it empty.
pub(super) async fn audit_log(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    let (token, member) = (TokenId::new(id()), WorkspaceMemberId::new(id()));
    let entries = [
        entry(1, Actor::System, AuditAction::TagCreate, "tag_1"),
        entry(2, Actor::Token { token, member }, AuditAction::TagDelete, "tag_1"),
        entry(3, Actor::Token { token, member }, AuditAction::TagCreate, "tag_2"),
    ];
    audit::insert_missing(tx, workspace, &entries[1..]).await?;
    audit::insert_missing(tx, workspace, &entries).await?;
    let [first, second, third] = entries.clone();
    let all = AuditQuery { limit: 9, ..AuditQuery::default() };
    let list = async |query: AuditQuery| audit::list(tx, workspace, &query).await;
    assert_eq!(list(all.clone()).await?, [third.clone(), second.clone(), first.clone()]);
    let query = AuditQuery { limit: 1, offset: 1, ..all.clone() };
    assert_eq!(list(query).await?, [second.clone()]);
    let query = AuditQuery { before: Some(third.id), since: Some(at(2)), ..all.clone() };
    assert_eq!(list(query).await?, [second.clone()]);
    let query = AuditQuery { until: Some(at(2)), ..all.clone() };
    assert_eq!(list(query).await?, [first.clone()]);
    let query = AuditQuery { action: Some(AuditAction::TagCreate), ..all.clone() };
    assert_eq!(list(query).await?, [third.clone(), first.clone()]);
    let query = AuditQuery { target: Some("tag_1".to_owned()), ..all.clone() };
    assert_eq!(list(query).await?, [second.clone(), first.clone()]);
    for (actor, found) in [
        (AuditActor::System, vec![first.clone()]),
        (AuditActor::Token(token), vec![third.clone(), second.clone()]),
        (AuditActor::Member(member), vec![third.clone(), second.clone()]),
        (AuditActor::Member(WorkspaceMemberId::new(id())), vec![]),
    ] {
        assert_eq!(list(AuditQuery { actor: Some(actor), ..all.clone() }).await?, found);
    }
    assert_eq!(audit::list_after(tx, workspace, None, 2).await?, [first.clone(), second.clone()]);
    let after = audit::list_after(tx, workspace, Some(first.id), 9).await?;
    assert_eq!(after, [second.clone(), third.clone()]);
    let with_address = audit::with_address(tx, workspace, at(1), at(3), 9).await?;
    assert_eq!(with_address, [first.id, second.id]);
    audit::remove_addresses(tx, workspace, &with_address).await?;
    assert_eq!(audit::with_address(tx, workspace, at(0), at(9), 9).await?, [third.id]);
    assert_eq!(audit::delete_expired(tx, workspace, at(3), 1).await?, 1);
    assert_eq!(audit::delete_expired(tx, workspace, at(3), 9).await?, 1);
    assert_eq!(list(all).await?, [third]);
    assert_eq!(audit::delete_expired(tx, workspace, at(9), 9).await?, 1);
    let rejected = |ms, remote_address: &str, requests| RejectedCredentials {
        minute: at(ms),
        remote_address: remote_address.to_owned(),
        requests,
    };
    rejected_credentials::add(tx, &[rejected(0, "", 2), rejected(1, "::1", 3)]).await?;
    rejected_credentials::add(tx, &[rejected(1, "::1", 4)]).await?;
    assert_eq!(rejected_credentials::count_since(tx, at(1)).await?, 1);
    let listed = rejected_credentials::list(tx, at(0), at(9)).await?;
    assert_eq!(listed, [rejected(0, "", 2), rejected(1, "::1", 7)]);
    rejected_credentials::delete_expired(tx, at(1)).await?;
    assert_eq!(rejected_credentials::list(tx, at(0), at(9)).await?, [rejected(1, "::1", 7)]);
    assert_eq!(rejected_credentials::list(tx, at(0), at(1)).await?, []);
    Ok(())
}
