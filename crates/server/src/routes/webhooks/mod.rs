//! `/webhooks`.

mod warning;

use galley_api_types::webhook::{
    NewWebhook, WebhookBody, WebhookChange, WebhookSecretRotation, WebhookToRecover, WebhookToTest,
};
use galley_application::CreatedResponse;
use galley_application::operations::deliveries;
use galley_application::operations::webhooks::{self, WebhookUpdateResult};
use galley_domain::webhook::{Webhook, WebhookSecret};
use galley_domain::{DeliveryId, Invalid, WebhookId};
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::{ReadWebhooks, WriteWebhooks};
use crate::extract::pagination;
use crate::respond::response::MinimalBody;
use crate::routes::prelude::*;
use crate::routes::webhooks::warning::warning;

const PATH: &str = "/webhooks";

/// The query parameters of the list, besides those of paging.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct WebhookListParameters {
    /// List only the webhooks that an extension's token created. For the token of an extension,
    /// list only those of this extension.
    #[param(default = false, example = true)]
    extension_only: Option<bool>,
}

/// The response to a request that is carried out asynchronously.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct Accepted {
    /// The identifier of the delivery or, for a recovery, of the webhook.
    #[schema(example = "dlv_01kah3v9k8d4x7w2m5n6p8q9rs")]
    id: String,
}

/// Get a webhook
#[utoipa::path(
    get, path = "/webhooks", operation_id = "getWebhook", params(("id" = schemas::WebhookId, Query)),
    responses((status = 200, body = WebhookBody<'_>)),
)]
pub(crate) async fn get(
    actor: Actor<ReadWebhooks>,
    IdQuery(id): IdQuery<WebhookId>,
) -> Result<Response, Problem> {
    let webhook = webhooks::get(actor.caller(), id).await?;
    Ok(response::resource(webhook.version, &WebhookBody::from(&webhook)))
}

/// List the webhooks
///
/// Returns the webhooks in the order of their creation, oldest first.
#[utoipa::path(
    get, path = "/webhooks/list", operation_id = "listWebhooks",
    params(IdPageParams, WebhookListParameters),
    responses((status = 200, body = [WebhookBody<'_>])),
)]
pub(crate) async fn list(actor: Actor<ReadWebhooks>, query: Query) -> Result<Response, Problem> {
    let mut list = IdListQuery::<WebhookId>::parse(query, pagination::PER_PAGE_MAX);
    let extension_only = list.query().boolean("extensionOnly");
    list.query().finish()?;
    let mut webhooks = webhooks::list(actor.caller(), extension_only, list.page()).await?;
    Ok(list.respond(&mut webhooks, |webhook| webhook.id, WebhookBody::from))
}

/// Create a webhook
///
/// A URL that the current settings don't allow to be called is accepted, with a `warning` in the
/// response. The token also needs the permission to read the event's data.
#[utoipa::path(
    post, path = "/webhooks", operation_id = "createWebhook", request_body = NewWebhook,
    responses(
        (status = 201, body = WebhookBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
    ),
)]
pub(crate) async fn create(
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    request: CreateRequest<NewWebhook>,
) -> Result<Response, Problem> {
    let (prefer, new, request) = request.parse(actor.caller()).await?;
    let warning = warning(&app, &new.url).await;
    let respond = Respond::new(move |webhook: &Webhook| {
        let warning = warning.as_deref();
        let created = MinimalBody { id: webhook.id.to_string(), warning, token: None };
        let body = WebhookBody::with_warning(webhook, warning);
        created::created_with_body(prefer, &created, webhook.version, &body)
            .with_location(PATH, webhook.id)
    });
    Ok(created::respond(webhooks::create(actor.caller(), new, request, respond).await?))
}

/// Change a webhook
///
/// Absent fields stay unchanged. The secret can't be changed: rotate it.
#[utoipa::path(
    put, path = "/webhooks", operation_id = "updateWebhook", request_body = WebhookChange,
    responses(
        (status = 200, body = WebhookBody<'_>),
        (status = 400, description = "unknown_reference, immutable_field"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn update(
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    mut request: ChangeRequest<WebhookChange>,
) -> Result<Response, Problem> {
    if request.fields.take::<WebhookSecret>("secret").is_some() {
        let message = "can't be changed here: use POST /webhooks/rotate-secret";
        request.fields.add_issue("secret", &Invalid::new("immutable_field", message));
    }
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let warning = match &change.url {
        Some(url) => warning(&app, url).await,
        None => None,
    };
    let WebhookUpdateResult { webhook, has_new_url } =
        webhooks::update(actor.caller(), id, change, expected).await?;
    let warning = warning.as_deref().filter(|_| has_new_url);
    let body = WebhookBody::with_warning(&webhook, warning);
    Ok(response::updated(prefer, webhook.version, &body))
}

/// Rotate the secret of a webhook
///
/// Deliveries are signed with the new secret and, for 24 hours, also with the previous one. A
/// repeated request changes nothing.
#[utoipa::path(
    post, path = "/webhooks/rotate-secret", operation_id = "rotateWebhookSecret",
    request_body = WebhookSecretRotation,
    responses((status = 204)),
)]
pub(crate) async fn rotate_secret(
    actor: Actor<WriteWebhooks>,
    request: ActionRequest<WebhookSecretRotation>,
) -> Result<Response, Problem> {
    let (id, WebhookSecretRotation { secret }, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(|(): &()| CreatedResponse::completed());
    let rotated = webhooks::rotate_secret(actor.caller(), id, secret, request, respond);
    Ok(created::respond(rotated.await?))
}

/// Delete a webhook
///
/// Its undelivered events are discarded.
#[utoipa::path(
    delete, path = "/webhooks", operation_id = "deleteWebhook",
    params(("id" = schemas::WebhookId, Query)),
)]
pub(crate) async fn delete(
    actor: Actor<WriteWebhooks>,
    expected: VersionPrecondition,
    IdQuery(id): IdQuery<WebhookId>,
) -> Result<Response, Problem> {
    webhooks::delete(actor.caller(), id, expected).await?;
    Ok(response::no_content())
}

/// Test a webhook
///
/// Sends a sample of the webhook's event at once and without retries, even if the webhook is
/// disabled. The sample has `test: true`. The list of deliveries shows the result.
#[utoipa::path(
    post, path = "/webhooks/test", operation_id = "testWebhook", request_body = WebhookToTest,
    responses((status = 202, body = Accepted)),
)]
pub(crate) async fn test(
    actor: Actor<WriteWebhooks>,
    request: ActionRequest<WebhookToTest>,
) -> Result<Response, Problem> {
    let (id, _, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(|delivery: &DeliveryId| created::accepted(delivery));
    Ok(created::respond(deliveries::send_test(actor.caller(), id, request, respond).await?))
}

/// Recover a webhook's deliveries
///
/// Retries all deliveries that were created since a point in time and failed, or wait for their
/// next attempt. They begin their retry schedule again, a few at a time. The recovery continues
/// after a restart of the service. Another request starts it again.
#[utoipa::path(
    post, path = "/webhooks/recover", operation_id = "recoverWebhook",
    request_body = WebhookToRecover,
    responses(
        (status = 202, body = Accepted),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn recover(
    actor: Actor<WriteWebhooks>,
    request: ActionRequest<WebhookToRecover>,
) -> Result<Response, Problem> {
    let (id, WebhookToRecover { since }, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(|webhook: &WebhookId| created::accepted(webhook));
    Ok(created::respond(deliveries::recover(actor.caller(), id, since, request, respond).await?))
}
