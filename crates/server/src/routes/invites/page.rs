//! `/invite`: the target of the link in an invite's mail. GET changes nothing, as mail scanners
//! open such links, too.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use galley_application::Reason;
use galley_application::operations::invites::{
    self, AcceptInviteRequest, AcceptedInvite, InviteLookup, OpenInvite,
};
use galley_application::operations::sessions::{self, Browser};
use galley_domain::access_token::AccessToken;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::{Invalid, UserId};

use super::accept::token_of_attempt;
use super::schema;
use crate::app::App;
use crate::extract::body::FormBody;
use crate::extract::query::Query;
use crate::extract::sign_in_client::SignInClient;
use crate::problem::Problem;
use crate::respond::language::PageLanguage;
use crate::respond::pages::{self, MessagePage};

#[derive(Template)]
#[template(path = "invite.html")]
struct InvitePage<'a> {
    language: PageLanguage,
    code: &'a str,
    /// The idempotency key of the form.
    attempt: String,
    invite: &'a OpenInvite,
    expires: String,
    full_name: FormValues,
    username: FormValues,
}

/// A field of the form.
struct FormValues {
    value: String,
    /// The validation error of the value, as a sentence.
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "invite_accepted.html")]
struct AcceptedPage<'a> {
    language: PageLanguage,
    accepted: &'a AcceptedInvite,
    token: &'a str,
    url: &'a str,
    /// True if the browser is signed in, and there is a console.
    opens_console: bool,
}

/// Get the page of an invite
///
/// Returns an HTML page with a form to accept the invite. The page is the target of the link in the
/// invite's mail.
#[utoipa::path(
    get,
    path = "/invite",
    operation_id = "getInvitePage",
    params((
        "code" = Option<String>, Query, pattern = r"^[^\x00]*$", description = "The code of the invite",
        example = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg",
    )),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (
            status = 404, description = "The invite does not exist.",
            body = String, content_type = "text/html"
        ),
        (
            status = 410, description = "The invite can no longer be accepted.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    mut query: Query,
) -> Result<Response, Problem> {
    let code = query.text("code").unwrap_or_default();
    query.finish()?;
    let invite = match invites::find(app.service(), &code).await? {
        InviteLookup::Open(invite) => as_seen_by(&app, &client.browser, *invite).await?,
        over => return Ok(ended_page(language, &over)),
    };
    let email = EmailAddress::from_stored(&invite.email);
    let full_name = FormValues { value: invite.name.clone(), problem: None };
    let suggested = Username::from_email(&email, 1);
    let username = FormValues { value: suggested.as_str().to_owned(), problem: None };
    Ok(form_page(&app, language, StatusCode::OK, &code, &invite, full_name, username))
}

/// Accept an invite on its page
///
/// Receives the form of the page. The secret code protects it against cross-site request forgery.
#[utoipa::path(
    post,
    path = "/invite",
    operation_id = "sendInvitePage",
    request_body(content = schema::Form, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (
            status = 400, description = "A name is invalid.",
            body = String, content_type = "text/html"
        ),
        (
            status = 403, description = "Another site sent the form, or the address belongs to a \
                user who must sign in first.",
            body = String, content_type = "text/html"
        ),
        (
            status = 404, description = "The invite does not exist.",
            body = String, content_type = "text/html"
        ),
        (
            status = 409, description = "Another user has the username.",
            body = String, content_type = "text/html"
        ),
        (
            status = 410, description = "The invite can no longer be accepted.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn submit(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    sent: FormBody,
) -> Result<Response, Problem> {
    if client.require_own_page().is_err() {
        return Ok(pages::explanation(language, Reason::ForeignOrigin));
    }
    let origin = client.browser.request.clone();
    let code = sent.field("code");
    let (attempt, names) =
        (sent.field("attempt"), [sent.field("username"), sent.field("fullName")]);
    let token = match attempt {
        "" => app.environment().new_access_token(),
        _ => token_of_attempt(&app, attempt, code, names[0], names[1]),
    };
    let invite = match invites::find(app.service(), code).await? {
        InviteLookup::Open(invite) => as_seen_by(&app, &client.browser, *invite).await?,
        over => return repeated_or_ended(&app, language, code, &token, &over).await,
    };
    let (full_name, username) = match &invite.user {
        // An existing user keeps its names.
        Some(user) => (user.full_name.clone(), user.username.clone()),
        None => {
            (sent.field("fullName").trim().to_owned(), sent.field("username").trim().to_owned())
        }
    };
    let refused = |status, of_full_name: Option<Invalid>, of_username: Option<String>| {
        let problem = of_full_name.map(|invalid| {
            let german = "Der volle Name ist leer, zu lang oder hat Steuerzeichen.".to_owned();
            language.text(format!("Your full name {invalid}."), german)
        });
        let full_name = FormValues { value: full_name.clone(), problem };
        let username = FormValues { value: username.clone(), problem: of_username };
        Ok(form_page(&app, language, status, code, &invite, full_name, username))
    };
    let read = (FullName::parse(full_name.as_str()), Username::parse(username.as_str()));
    let (Ok(name), Ok(short_name)) = read else {
        let of_username = read.1.err().map(|invalid| {
            let german = "Der Benutzername ist leer, zu lang oder hat Leerzeichen.".to_owned();
            language.text(format!("Your username {invalid}."), german)
        });
        return refused(StatusCode::BAD_REQUEST, read.0.err(), of_username);
    };
    let is_allowed = app.sessions().is_allowed;
    let acceptance = AcceptInviteRequest {
        code: code.to_owned(),
        username: short_name,
        full_name: name,
        token,
        signed_in: signed_in_user(&app, &client.browser).await?,
        browser: is_allowed.then_some(client.browser),
    };
    match invites::accept(app.service(), acceptance.clone(), origin).await {
        Ok(accepted) => Ok(accepted_page(&app, language, &accepted, &acceptance.token)),
        Err(error) if error.reason() == Some(Reason::UsernameTaken) => {
            let detail = language.text(
                "Your username belongs to another user: choose another one.",
                "Der Benutzername gehört zu einem anderen Benutzer: wählen Sie einen anderen.",
            );
            refused(StatusCode::CONFLICT, None, Some(detail.to_owned()))
        }
        Err(error) if error.reason() == Some(Reason::SignInRequired) => {
            Ok(pages::explanation(language, Reason::SignInRequired))
        }
        // Another request may have ended the invite in the meantime.
        Err(error) => match invites::find(app.service(), code).await? {
            InviteLookup::Open(_) => Err(error.into()),
            over => Ok(ended_page(language, &over)),
        },
    }
}

/// Returns an invite as a person may see it. By a copied link, only the user with its address sees
/// that there is a user.
async fn as_seen_by(
    app: &App,
    browser: &Browser,
    invite: OpenInvite,
) -> Result<OpenInvite, Problem> {
    if !invite.is_copied || invite.user.is_none() {
        return Ok(invite);
    }
    let signed_in = signed_in_user(app, browser).await?;
    let user = invite.user.filter(|user| Some(user.id) == signed_in);
    Ok(OpenInvite { user, ..invite })
}

/// Returns the user who is signed in with a browser, and may act in any workspace.
async fn signed_in_user(app: &App, browser: &Browser) -> Result<Option<UserId>, Problem> {
    let Some(cookie) = &browser.session else { return Ok(None) };
    Ok(sessions::find_user(app.service(), cookie).await?)
}

/// Returns the page of an ended invite or, for a repeat of the form that accepted it, the page of
/// the accepted invite.
async fn repeated_or_ended(
    app: &App,
    language: PageLanguage,
    code: &str,
    token: &AccessToken,
    over: &InviteLookup,
) -> Result<Response, Problem> {
    Ok(match invites::find_accepted(app.service(), code, token).await? {
        Some(accepted) => accepted_page(app, language, &accepted, token),
        None => ended_page(language, over),
    })
}

fn accepted_page(
    app: &App,
    language: PageLanguage,
    accepted: &AcceptedInvite,
    token: &AccessToken,
) -> Response {
    let url = app.limits().public_url.trim_end_matches('/');
    let opens_console = accepted.session.is_some() && app.limits().console.page().is_some();
    let page = AcceptedPage { language, accepted, token: token.reveal(), url, opens_console };
    let mut response = pages::private(language, StatusCode::OK, &page);
    if let Some(started) = &accepted.session {
        app.sessions().start(&mut response, &started.cookie);
    }
    response
}

fn form_page(
    app: &App,
    language: PageLanguage,
    status: StatusCode,
    code: &str,
    invite: &OpenInvite,
    full_name: FormValues,
    username: FormValues,
) -> Response {
    let expires = invite.expires_at.to_minute_text();
    let attempt = app.environment().new_code();
    let page = InvitePage { language, code, attempt, invite, expires, full_name, username };
    pages::private(language, status, &page)
}

/// Returns the page of an invite that can't be accepted.
fn ended_page(language: PageLanguage, found: &InviteLookup) -> Response {
    let status = match found {
        InviteLookup::Open(_) | InviteLookup::Unknown => StatusCode::NOT_FOUND,
        InviteLookup::Expired | InviteLookup::Used | InviteLookup::Withdrawn => StatusCode::GONE,
    };
    let [title, cause, cure] = match found {
        InviteLookup::Open(_) | InviteLookup::Unknown => language.text(
            [
                "The invite does not exist",
                "The link of this page belongs to no invite. A part of it may be missing.",
                "Open the link in the mail again, or copy the complete link into the address bar.",
            ],
            [
                "Die Einladung gibt es nicht",
                "Der Link dieser Seite gehört zu keiner Einladung. Vielleicht fehlt ein Teil.",
                "Öffnen Sie den Link in der Mail noch einmal, oder kopieren Sie ihn vollständig.",
            ],
        ),
        InviteLookup::Expired => language.text(
            [
                "The invite has expired",
                "An invite can be accepted for seven days.",
                "Ask the person who invited you for a new one.",
            ],
            [
                "Die Einladung ist abgelaufen",
                "Eine Einladung gilt sieben Tage.",
                "Bitten Sie die Person, die Sie eingeladen hat, um eine neue.",
            ],
        ),
        InviteLookup::Used => language.text(
            [
                "The invite was accepted",
                "An invite can be accepted once. If you accepted it yourself, you are a member and \
                 have a token.",
                "If you have lost the token, ask the operator of this service for a new one. If \
                 another person accepted the invite, inform the person who invited you.",
            ],
            [
                "Die Einladung wurde angenommen",
                "Eine Einladung gilt einmal. Wenn Sie sie selbst angenommen haben, sind Sie Mitglied \
                 und haben ein Token.",
                "Wenn Sie das Token verloren haben, bitten Sie den Betreiber um ein neues. Hat eine \
                 andere Person die Einladung angenommen, informieren Sie die, die Sie eingeladen hat.",
            ],
        ),
        InviteLookup::Withdrawn => language.text(
            [
                "The invite is void",
                "It was withdrawn, or replaced by a newer invite.",
                "Look for a newer mail, or ask the person who invited you.",
            ],
            [
                "Die Einladung gilt nicht mehr",
                "Sie wurde zurückgezogen oder durch eine neuere ersetzt.",
                "Suchen Sie eine neuere Mail, oder fragen Sie die Person, die Sie eingeladen hat.",
            ],
        ),
    };
    pages::private(
        language,
        status,
        &MessagePage { language, title, cause, cure, asks_again: false },
    )
}
