//! The functions for sessions and sign-ins, called by `conformance.rs`.

use galley_domain::people::EmailAddress;
use galley_domain::session::SignInMethod;
use galley_domain::{Credential, SessionId, Timestamp, UserId, WorkspaceId};
use galley_storage::authentication;
use galley_storage::members::Member;
use galley_storage::sessions::{self, Session};
use galley_storage::sign_ins::{self, RecentSignIns, SignIn};
use galley_storage::{Error, IdPage, WriteTx, members, users};

use crate::store::{NOW, id};

const LATER: Timestamp = Timestamp::from_ms(NOW.ms() + 1_000);
const LAST: Timestamp = Timestamp::from_ms(NOW.ms() + 2_000);

/// Calls every function for sessions and sign-ins of a member's user.
pub(crate) async fn exercise(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: &Member,
) -> Result<(), Error> {
    let user = member.user.as_ref().expect("the member has a user").id;
    the_sessions(tx, workspace, member, user).await?;
    the_sign_ins(tx, user).await?;
    users::verify_email(tx, user, NOW).await?;
    users::verify_email(tx, user, LATER).await?;
    let verified = users::find(tx, user).await?.and_then(|user| user.email_verified_at);
    assert_eq!(verified, Some(NOW), "the first proof counts");
    Ok(())
}

async fn the_sessions(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: &Member,
    user: UserId,
) -> Result<(), Error> {
    let mut session = Session {
        id: SessionId::new(id()),
        user,
        workspace: None,
        method: SignInMethod::Mail,
        user_agent: Some("Firefox".to_owned()),
        remote_address: Some("192.0.2.7".to_owned()),
        created_at: NOW,
        last_used_at: NOW,
        expires_at: LATER,
    };
    sessions::insert(tx, &session, &[1; 32]).await?;
    assert_eq!(sessions::find_by_hash(tx, &[1; 32]).await?.as_ref(), Some(&session));
    assert_eq!(sessions::find_by_hash(tx, &[2; 32]).await?, None);
    assert_eq!(sessions::find(tx, user, session.id).await?.as_ref(), Some(&session));
    assert_eq!(sessions::find(tx, UserId::new(id()), session.id).await?, None);
    let page = IdPage::default();
    assert_eq!(sessions::list(tx, user, NOW, &page).await?, [session.clone()]);
    assert_eq!(sessions::list(tx, user, LATER, &page).await?, [], "it has expired");
    sessions::record_use(tx, session.id, NOW, LAST).await?;
    sessions::record_use(tx, session.id, Timestamp::from_ms(NOW.ms() + 1), LAST).await?;
    (session.last_used_at, session.expires_at) = (Timestamp::from_ms(NOW.ms() + 1), LAST);
    assert_eq!(sessions::find(tx, user, session.id).await?.as_ref(), Some(&session));

    assert_eq!(members::first_workspace(tx, user).await?, Some(workspace));
    assert_eq!(members::first_workspace(tx, UserId::new(id())).await?, None);
    let credential = Credential::Session(session.id);
    let found = authentication::find(tx, workspace, credential).await?.expect("it is open");
    assert_eq!((found.credential, found.member, found.user), (credential, member.id, user));
    assert_eq!((found.expires_at, found.grant_limit()), (Some(LAST), None));
    assert!(found.is_unlimited());
    for named in [Some(workspace), None] {
        let session = authentication::find_by_session_hash(tx, &[1; 32], named).await?.unwrap();
        assert_eq!((session.expires_at, session.authentication.as_ref()), (LAST, Some(&found)));
    }
    let other = WorkspaceId::new(1);
    let outside = authentication::find_by_session_hash(tx, &[1; 32], Some(other)).await?;
    assert_eq!(outside.unwrap().authentication, None, "the user is no member there");
    assert_eq!(authentication::find_by_session_hash(tx, &[2; 32], None).await?, None);
    let with_generation =
        authentication::find_by_session_hash_with_generation(tx, &[1; 32], workspace).await?;
    let (session_there, generation) = with_generation.unwrap();
    assert_eq!(session_there.authentication.as_ref(), Some(&found));
    assert!(generation.is_some());
    let outside = authentication::find_by_session_hash_with_generation(tx, &[1; 32], other).await?;
    assert!(outside.is_some_and(|(there, generation)| {
        there.authentication.is_none() && generation.is_none()
    }));

    assert!(!sessions::delete(tx, UserId::new(id()), session.id).await?);
    assert!(sessions::delete(tx, user, session.id).await?);
    assert_eq!(authentication::find(tx, workspace, credential).await?, None);
    let limited = Session { id: SessionId::new(id()), workspace: Some(workspace), ..session };
    sessions::insert(tx, &limited, &[3; 32]).await?;
    let there = authentication::find_by_session_hash(tx, &[3; 32], None).await?.unwrap();
    assert_eq!(there.authentication.map(|found| found.workspace), Some(workspace));
    assert_eq!(sessions::delete_expired(tx, LATER, 10).await?, 0);
    assert_eq!(sessions::delete_expired(tx, LAST, 10).await?, 1);
    sessions::insert(tx, &limited, &[3; 32]).await?;
    sessions::delete_of_member(tx, WorkspaceId::new(1), user).await?;
    assert!(sessions::find(tx, user, limited.id).await?.is_some(), "it is of another workspace");
    sessions::delete_of_member(tx, workspace, user).await?;
    assert_eq!(sessions::find(tx, user, limited.id).await?, None);
    Ok(())
}

async fn the_sign_ins(tx: &WriteTx<'_>, user: UserId) -> Result<(), Error> {
    let email = EmailAddress::parse("Ann@example.org").unwrap();
    let mut sign_in = SignIn {
        link_hash: vec![1; 32],
        browser_hash: Some(vec![2; 32]),
        code_hash: Some(vec![3; 32]),
        email_key: email.key().clone(),
        user: None,
        wrong_codes: 0,
        created_at: NOW,
        expires_at: LAST,
    };
    sign_ins::insert(tx, &sign_in).await?;
    assert_eq!(sign_ins::find_by_link(tx, &[1; 32]).await?.as_ref(), Some(&sign_in));
    assert_eq!(sign_ins::find_by_link(tx, &[2; 32]).await?, None);
    sign_ins::set_user(tx, &[1; 32], user).await?;
    sign_ins::count_wrong_code(tx, &[1; 32]).await?;
    (sign_in.user, sign_in.wrong_codes) = (Some(user), 1);
    assert_eq!(sign_ins::find_by_browser(tx, &[2; 32]).await?.as_ref(), Some(&sign_in));
    assert_eq!(sign_ins::find_by_browser(tx, &[1; 32]).await?, None);
    let before = Timestamp::from_ms(NOW.ms() - 1);
    let recent = sign_ins::count_recent(tx, &email, before).await?;
    assert_eq!(recent, RecentSignIns { requests: 1, wrong_codes: 1, first: Some(NOW) });
    let none = RecentSignIns { requests: 0, wrong_codes: 0, first: None };
    assert_eq!(sign_ins::count_recent(tx, &email, NOW).await?, none);
    assert!(sign_ins::end(tx, &[1; 32], LATER).await?);
    assert!(!sign_ins::end(tx, &[1; 32], LATER).await?, "it is used once");
    assert_eq!(sign_ins::count_recent(tx, &email, before).await?.requests, 1, "it still counts");
    assert_eq!(sign_ins::delete_expired(tx, before, 10).await?, 0);
    assert_eq!(sign_ins::delete_expired(tx, NOW, 10).await?, 1);
    Ok(())
}
