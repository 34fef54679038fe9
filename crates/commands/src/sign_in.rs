//! `galley sign-in`

use anyhow::Context;
use galley_application::operations::sign_in;
use galley_application::{Environment, Error};
use galley_domain::people::EmailAddress;
use galley_storage::{Database, Tx, WriteTx, members, users};

use crate::cli::administration::SignInArguments;
use crate::out::say;
use crate::settings::Settings;
use crate::store;

/// Prints a link that signs in the user with an address.
pub(crate) async fn run(settings: &Settings, arguments: &SignInArguments) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let code = create_link(&database, &environment, &arguments.email).await;
    database.close().await;
    say!("{}", link(&settings.public_url(settings.listen), &code?));
    Ok(())
}

/// Creates a link for the user with an address. Returns its code.
pub(crate) async fn create_link(
    database: &Database,
    environment: &Environment,
    email: &str,
) -> anyhow::Result<String> {
    let email = EmailAddress::parse(email).context("--email")?;
    let address = email.clone();
    let find = async move |tx: &Tx<'_>| {
        let Some(user) = users::find_by_email(tx, &address).await? else { return Ok(None) };
        let first = galley_application::IdPage::first(1);
        let is_member = !members::of_user(tx, user.id, &first).await?.is_empty();
        Ok::<_, Error>(Some(user).filter(|_| is_member))
    };
    let user = database.read("users.find_by_email", find).await?;
    let user = user.with_context(|| {
        let email = email.as_str();
        format!("no member has the address {email}: `galley member list` prints the members")
    })?;
    let environment = environment.clone();
    let create = async move |tx: &WriteTx<'_>| sign_in::create_link(tx, &environment, &user).await;
    Ok(database.write("sign_ins.create_link", create).await?)
}

/// Returns the address of a link.
pub(crate) fn link(public_url: &str, code: &str) -> String {
    format!("{}/sign-in/link?code={code}", public_url.trim_end_matches('/'))
}
