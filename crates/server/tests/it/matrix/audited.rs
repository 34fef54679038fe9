//! Every change through every route has an entry in the audit log. Sign-ins and their ends have
//! tests of their own.

use galley_testing::{TestStore, on_both_engines};
use serde_json::Value;

use super::target::{OF_SESSIONS, OPEN, routes, start, target};
use crate::service::Service;

/// The action of each route that changes resources. A route without a row changes none.
const ACTIONS: &str = "
    PUT    /content-pieces               contentPiece.update
    POST   /content-pieces               contentPiece.create
    POST   /content-pieces/batch         contentPiece.create
    DELETE /content-pieces               contentPiece.delete
    PUT    /content-pieces/revision      revision.update
    DELETE /content-pieces/revision      revision.purge
    POST   /content-pieces/restore       contentPiece.restore
    POST   /content-pieces/publish       contentPiece.publish
    POST   /content-pieces/unpublish     contentPiece.unpublish
    POST   /content-pieces/preview       contentPiece.preview
    POST   /content-pieces/undelete      contentPiece.undelete
    PUT    /content-pieces/sources       workspace.import
    POST   /imports                      workspace.import
    PUT    /content-groups               contentGroup.update
    POST   /content-groups               contentGroup.create
    DELETE /content-groups               contentGroup.delete
    PUT    /tags                         tag.update
    POST   /tags                         tag.create
    DELETE /tags                         tag.delete
    PUT    /variants                     variant.update
    POST   /variants                     variant.create
    DELETE /variants                     variant.delete
    PUT    /assets                       asset.update
    POST   /assets                       asset.create
    DELETE /assets                       asset.delete
    PATCH  /assets/uploads               asset.create
    PUT    /roles                        role.update
    POST   /roles                        role.create
    DELETE /roles                        role.delete
    PUT    /tokens                       token.update
    POST   /tokens                       token.create
    DELETE /tokens                       token.delete
    PUT    /profile                      profile.update
    PUT    /workspace                    workspace.update
    PUT    /workspace-memberships        workspaceMembership.update
    POST   /workspace-memberships        workspaceMembership.invite
    POST   /workspace-memberships/invite-link    workspaceMembership.inviteLink
    POST   /workspace-memberships/resend-invite  workspaceMembership.resendInvite
    DELETE /workspace-memberships        workspaceMembership.delete
    PUT    /webhooks                     webhook.update
    POST   /webhooks                     webhook.create
    DELETE /webhooks                     webhook.delete
    POST   /webhooks/test                webhook.test
    POST   /webhooks/recover             webhook.recover
    POST   /webhooks/deliveries/retry    webhook.retry
    POST   /webhooks/rotate-secret       webhook.rotateSecret
";

/// The routes with other methods than GET that change no resource. An upload is none before its
/// end.
const READS: [&str; 3] = ["/content-pieces/convert", "/events/ticket", "/assets/uploads"];

async fn latest(service: &Service) -> Vec<Value> {
    service.get("/audit?perPage=10").await.body.as_array().unwrap().clone()
}

#[on_both_engines]
async fn every_change_through_a_route_adds_one_entry(store: TestStore) {
    let service = start(store).await;
    for (number, (method, route)) in routes().iter().enumerate() {
        let is_open = OPEN.iter().any(|open| (open.0, open.1) == (method, route));
        let is_of_session = OF_SESSIONS.contains(&(method.as_str(), route.as_str()));
        if is_open || is_of_session || method == "GET" {
            continue;
        }
        let mut request = target(&service, method, route, number).await;
        if (method.as_str(), route.as_str()) == ("PUT", "/content-pieces/revision") {
            request.body.as_mut().unwrap()["note"] = "Before the review".into();
        }
        if route == "/content-pieces/unpublish" {
            let piece = serde_json::json!({"id": request.body.as_ref().unwrap()["id"]});
            let published = service.post("/content-pieces/publish", &piece).await;
            assert_eq!(published.status, 204);
        }
        let before = latest(&service).await;
        let response = request.ask(&service, Some(&service.home.token), method).await;
        assert!(response.status.is_success(), "{method} {route}: {response:?}");
        let after = latest(&service).await;
        let is_new = |entry: &&Value| entry["id"] != before[0]["id"];
        let new: Vec<_> = after.iter().take_while(is_new).collect();
        let rows = ACTIONS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.into_iter().find(|row| row.starts_with(&[method.as_str(), route.as_str()]));
        let Some(row) = row else {
            assert!(READS.contains(&route.as_str()), "{method} {route} has no row in this test");
            assert!(new.is_empty(), "{method} {route}: {new:?}");
            continue;
        };
        let actions: Vec<_> = new.iter().map(|entry| &entry["action"]).collect();
        assert_eq!(actions, [row[2]], "{method} {route}");
        assert_eq!(new[0]["requestId"], response.header("x-request-id"), "{method} {route}");
        assert_eq!(new[0]["remoteAddress"], "127.0.0.1", "{method} {route}");
    }
}
