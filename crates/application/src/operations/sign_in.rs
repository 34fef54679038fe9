//! Sign-in by mail: a link that works in the browser that asked for it, and a code to type there.
//!
//! The response to a request is the same for known and unknown addresses, and is sent before the
//! address is looked up. So neither its text nor its time reveals which addresses have users.

use std::fmt;
use std::time::Duration;

use galley_domain::access_token;
use galley_domain::people::EmailAddress;
use galley_domain::session::{SIGN_IN_LIFETIME, SignInCode, SignInMethod, WRONG_CODES_PER_SIGN_IN};
use galley_domain::{MailId, Timestamp};
use galley_storage::mails::{self, QueuedMail};
use galley_storage::sign_ins::{self, SignIn};
use galley_storage::users::{self, User};
use galley_storage::{IdPage, Tx, WriteTx, members};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::email_verification;
use crate::operations::members::mail_aad;
use crate::operations::sessions::{self, Browser, StartedSession};
use crate::rejection::{Reason, Rejection};
use crate::service::Service;

/// The period of the limits on an address.
pub const LIMIT_PERIOD: Duration = Duration::from_hours(1);

/// The limit on requests with one address in the period.
const REQUESTS_PER_ADDRESS: i64 = 10;

/// The limit on wrong codes for one address in the period, over all requests.
const WRONG_CODES_PER_ADDRESS: i64 = 20;

/// The kind of the mail.
pub const SIGN_IN_MAIL: &str = "signIn";

/// The values of the mail.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInMail {
    /// The code in the link.
    pub link_code: String,
    /// The code to type.
    pub code: String,
    /// The user's name.
    pub name: String,
    /// The expiry time.
    pub expires_at_ms: i64,
}

impl fmt::Debug for SignInMail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SignInMail").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request for a mail.
#[derive(Debug, Clone)]
pub struct RequestedSignIn {
    /// The value of the cookie that binds the mail's link and code to the browser.
    pub browser: String,
    /// The time at which the link and the code expire.
    pub expires_at: Timestamp,
}

/// Requests a mail for an address.
pub async fn request(service: &Service, email: EmailAddress) -> Result<RequestedSignIn, Error> {
    let environment = service.environment();
    let (browser, link_code) = (environment.new_code(), environment.new_code());
    let code = environment.new_sign_in_code();
    let now = environment.now();
    let sign_in = SignIn {
        link_hash: access_token::hash(&link_code).to_vec(),
        browser_hash: Some(access_token::hash(&browser).to_vec()),
        code_hash: Some(code_hash(service, &browser, code)),
        email_key: email.key().clone(),
        user: None,
        wrong_codes: 0,
        created_at: now,
        expires_at: now.later(SIGN_IN_LIFETIME),
    };
    let (requested, address) = (sign_in.clone(), email.clone());
    let insert = async move |tx: &WriteTx<'_>| {
        let recent = sign_ins::count_recent(tx, &address, now.earlier(LIMIT_PERIOD)).await?;
        if recent.requests >= REQUESTS_PER_ADDRESS {
            return Err(too_many(now, recent.first));
        }
        Ok(sign_ins::insert(tx, &requested).await?)
    };
    service.database().write("sign_ins.request", insert).await?;
    let expires_at = sign_in.expires_at;
    let service = service.clone();
    tokio::spawn(async move {
        if let Err(error) = send_mail(&service, &email, &sign_in, link_code, code).await {
            tracing::error!(%error, "a mail for a sign-in could not be stored");
        }
    });
    Ok(RequestedSignIn { browser, expires_at })
}

/// Stores the mail of a request, if the address belongs to a member of any workspace.
async fn send_mail(
    service: &Service,
    email: &EmailAddress,
    sign_in: &SignIn,
    link_code: String,
    code: SignInCode,
) -> Result<(), Error> {
    let (environment, key) = (service.environment().clone(), service.key().clone());
    let (email, sign_in) = (email.clone(), sign_in.clone());
    let write = async move |tx: &WriteTx<'_>| {
        let Some(user) = users::find_by_email(tx, &email).await? else { return Ok(()) };
        let memberships = members::of_user(tx, user.id, &IdPage::first(1)).await?;
        let Some(membership) = memberships.into_iter().next() else { return Ok(()) };
        sign_ins::set_user(tx, &sign_in.link_hash, user.id).await?;
        let values = SignInMail {
            link_code: link_code.clone(),
            code: code.reveal(),
            name: user.full_name,
            expires_at_ms: sign_in.expires_at.ms(),
        };
        let id = MailId::new(environment.new_id());
        let text = serde_json::to_vec(&values).expect("texts are JSON");
        let mail = QueuedMail {
            id,
            kind: SIGN_IN_MAIL.to_owned(),
            member: Some(membership.id),
            recipient: user.email,
            sealed: key.encrypt(&mail_aad(id), &text),
        };
        Ok::<_, Error>(mails::insert(tx, membership.workspace.id, &mail, sign_in.created_at).await?)
    };
    service.database().write("sign_ins.send_mail", write).await
}

/// Creates a link that signs a user in, in any browser, on behalf of the operator. Returns its
/// code.
pub async fn create_link(
    tx: &WriteTx<'_>,
    environment: &Environment,
    user: &User,
) -> Result<String, Error> {
    let (code, now) = (environment.new_code(), environment.now());
    let sign_in = SignIn {
        link_hash: access_token::hash(&code).to_vec(),
        browser_hash: None,
        code_hash: None,
        email_key: EmailAddress::from_stored(user.email.as_str()).key().clone(),
        user: Some(user.id),
        wrong_codes: 0,
        created_at: now,
        expires_at: now.later(SIGN_IN_LIFETIME),
    };
    sign_ins::insert(tx, &sign_in).await?;
    Ok(code)
}

/// Returns the user whom a link would sign in, or the reason why it can't be used. `browser` is the
/// cookie of the browser that opened it.
pub async fn find_link(
    service: &Service,
    code: &str,
    browser: Option<&str>,
) -> Result<User, Error> {
    let now = service.environment().now();
    let (hash, browser) = (access_token::hash(code), browser.map(access_token::hash));
    let read = async move |tx: &Tx<'_>| {
        let sign_in = sign_ins::find_by_link(tx, &hash).await?;
        let sign_in = check_link(sign_in, browser.as_ref(), now)?;
        find_user(tx, &sign_in).await
    };
    service.database().read("sign_ins.find_link", read).await
}

/// Signs in by a link, once.
pub async fn use_link(
    service: &Service,
    code: &str,
    browser: Option<&str>,
    client: Browser,
) -> Result<StartedSession, Error> {
    // A read comes first, so that random codes do not occupy the writer.
    find_link(service, code, browser).await?;
    let environment = service.environment().clone();
    let (hash, browser) = (access_token::hash(code), browser.map(access_token::hash));
    let write = async move |tx: &WriteTx<'_>| {
        let sign_in = sign_ins::find_by_link(tx, &hash).await?;
        let sign_in = check_link(sign_in, browser.as_ref(), environment.now())?;
        let method = match sign_in.browser_hash {
            Some(_) => SignInMethod::Mail,
            None => SignInMethod::Terminal,
        };
        complete(tx, &environment, &sign_in, method, &client).await
    };
    service.database().write("sign_ins.use_link", write).await
}

/// The result of a typed code.
enum CodeCheck {
    Correct(Box<StartedSession>),
    /// The number of further attempts.
    Wrong(i64),
}

/// Signs in by the code of a mail, once. Only the browser that asked for the mail can use it.
pub async fn use_code(
    service: &Service,
    code: &str,
    browser: Option<&str>,
    client: Browser,
) -> Result<StartedSession, Error> {
    let Some(browser) = browser else {
        let detail = "enter the code in the browser in which you asked for the mail";
        return Err(Rejection::new(Reason::OtherBrowser, detail).into());
    };
    let environment = service.environment().clone();
    let hash = access_token::hash(browser);
    let typed = SignInCode::parse(code).map(|code| code_hash(service, browser, code));
    let write = async move |tx: &WriteTx<'_>| {
        let now = environment.now();
        let sign_in = sign_ins::find_by_browser(tx, &hash).await?;
        let is_valid =
            |sign_in: &SignIn| sign_in.expires_at > now && !sign_in.is_of_identity_provider();
        let sign_in = sign_in.filter(is_valid).ok_or_else(ended)?;
        let left = WRONG_CODES_PER_SIGN_IN - sign_in.wrong_codes;
        if left <= 0 {
            return Err(ended());
        }
        let email = EmailAddress::from_stored(sign_in.email_key.as_str());
        let recent = sign_ins::count_recent(tx, &email, now.earlier(LIMIT_PERIOD)).await?;
        if recent.wrong_codes >= WRONG_CODES_PER_ADDRESS {
            return Err(too_many(now, recent.first));
        }
        if typed.is_none() || typed != sign_in.code_hash || sign_in.user.is_none() {
            sign_ins::count_wrong_code(tx, &sign_in.link_hash).await?;
            return Ok(CodeCheck::Wrong(left - 1));
        }
        let method = SignInMethod::Mail;
        let started = complete(tx, &environment, &sign_in, method, &client).await?;
        Ok(CodeCheck::Correct(Box::new(started)))
    };
    // A wrong code is an outcome and not an error, so that its count is committed.
    match service.database().write("sign_ins.use_code", write).await? {
        CodeCheck::Correct(started) => Ok(*started),
        CodeCheck::Wrong(0) => {
            let detail = "the code is wrong, and can't be tried again: ask for a new mail";
            Err(Rejection::new(Reason::WrongCode, detail).into())
        }
        CodeCheck::Wrong(left) => {
            let detail = format!("the code is wrong; attempts left: {left}");
            Err(Rejection::new(Reason::WrongCode, detail).into())
        }
    }
}

/// Returns the request of a link that this browser may use.
fn check_link(
    sign_in: Option<SignIn>,
    browser: Option<&[u8; 32]>,
    now: Timestamp,
) -> Result<SignIn, Error> {
    let sign_in = sign_in.filter(|sign_in| sign_in.expires_at > now && sign_in.user.is_some());
    let sign_in = sign_in.ok_or_else(ended)?;
    match &sign_in.browser_hash {
        Some(bound) if browser.is_none_or(|browser| browser != bound.as_slice()) => {
            let detail = "the link works in the browser in which you asked for it: enter the code \
                of the mail there";
            Err(Rejection::new(Reason::OtherBrowser, detail).into())
        }
        _ => Ok(sign_in),
    }
}

async fn find_user(tx: &Tx<'_>, sign_in: &SignIn) -> Result<User, Error> {
    let user = match sign_in.user {
        Some(user) => users::find(tx, user).await?,
        None => None,
    };
    user.ok_or_else(ended)
}

/// Uses up a request and starts the session. Mail that arrives proves the user's address.
async fn complete(
    tx: &WriteTx<'_>,
    environment: &Environment,
    sign_in: &SignIn,
    method: SignInMethod,
    client: &Browser,
) -> Result<StartedSession, Error> {
    let now = environment.now();
    let user = find_user(tx, sign_in).await?;
    if !sign_ins::end(tx, &sign_in.link_hash, now).await? {
        return Err(ended());
    }
    let user = email_verification::record(tx, environment, user, Some(&client.request)).await?;
    sessions::start(tx, environment, &user, method, None, client).await
}

/// Returns the hash of a code. It includes the browser's cookie, so the code is worth nothing
/// elsewhere, and needs the installation's key, so the stored hash does not reveal the code.
fn code_hash(service: &Service, browser: &str, code: SignInCode) -> Vec<u8> {
    let parts = [b"code of a sign-in", browser.as_bytes(), code.digits()];
    service.key().fingerprint(&parts).to_vec()
}

fn ended() -> Error {
    let detail = "the link or code has expired or was used: ask for a new mail";
    Rejection::new(Reason::SignInEnded, detail).into()
}

fn too_many(now: Timestamp, first: Option<Timestamp>) -> Error {
    let free = first.unwrap_or(now).later(LIMIT_PERIOD);
    let seconds = (free.ms() - now.ms()).div_euclid(1_000) + 1;
    let detail = "too many attempts to sign in with this address: try again later";
    Rejection::new(Reason::TooManySignIns, detail).retry_after(seconds).into()
}
