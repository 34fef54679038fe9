//! `galley listen`

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use galley_application::{Clock, SystemClock};
use galley_domain::webhook::WebhookSecret;
use galley_server::callbacks::{self, Callback, SignatureStatus};
use serde_json::Value;
use tokio::net::TcpListener;

use galley_commands::cli::ListenArguments;
use galley_commands::{out, say};

/// Receives callbacks and prints them until the process is stopped.
pub(crate) async fn run(arguments: &ListenArguments) -> anyhow::Result<()> {
    let secret = match &arguments.secret {
        Some(text) => Some(
            WebhookSecret::parse(text.as_str())
                .map_err(|invalid| anyhow::anyhow!("secret: {}", invalid.message))?,
        ),
        None => None,
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("can't listen on {address}: choose another with --port"))?;
    let address = listener.local_addr()?;
    eprintln!("Waiting for callbacks on http://{address}/ (press Ctrl-C to stop).");
    if secret.is_none() {
        eprintln!("Set --secret to verify their signatures.");
    }
    let status = arguments.status;
    callbacks::receive(listener, status, move |callback| show(&callback, secret.as_ref()))
        .await
        .context("callbacks can't be received")
}

fn show(callback: &Callback, secret: Option<&WebhookSecret>) {
    let now = SystemClock.now();
    let verdict = match callback.verify(secret, now) {
        SignatureStatus::Valid => "signature ok",
        SignatureStatus::Unsigned => "not signed",
        SignatureStatus::Unverified => "signed, not verified: set --secret",
        SignatureStatus::Wrong => "WRONG SIGNATURE",
        SignatureStatus::Expired => "signed, but over five minutes off",
    };
    let body: Option<Value> = serde_json::from_slice(&callback.body).ok();
    let field = |name: &str| match body.as_ref().map(|body| &body[name]) {
        Some(Value::String(text)) => out::escape_for_terminal(text),
        Some(Value::Null) | None => "-".to_owned(),
        Some(value) => out::escape_for_terminal(&value.to_string()),
    };
    say!(
        "{now}  {}  #{}  {}  {verdict}",
        field("type"),
        field("sequence"),
        out::escape_for_terminal(callback.id())
    );
    let shown = match &body {
        Some(body) => format!("{body:#}"),
        None => String::from_utf8_lossy(&callback.body).into_owned(),
    };
    // The sender may try to manipulate the terminal.
    for line in shown.lines() {
        say!("{}", out::escape_for_terminal(line));
    }
    say!("");
}
