//! Checks of the settings, and of the services that they name.

use std::time::Duration;

use galley_assets::StoreLocation;
use galley_http_client::HttpClient;
use galley_mail::Mailer;
use http::Request;
use rustix::fs::{Access, access};
use tokio::net::{TcpListener, TcpStream};

use super::finding::Finding;
use crate::address;
use crate::settings::{Settings, open_asset_store};

/// The timeout for the response of the store of assets.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Validates the settings that are parsed only when they are used.
pub(super) fn settings(settings: &Settings) -> Finding {
    let parsed = || -> anyhow::Result<()> {
        settings.cors_origins()?;
        settings.webhook_addresses(settings.listen)?;
        settings.trusted_proxies()?;
        settings.identity_provider(&settings.public_url(settings.listen))?;
        crate::logging::filter(&settings.log, settings.has_access_log())?;
        Ok(())
    };
    match (parsed(), &settings.file) {
        (Err(error), _) => Finding::failure(format!("{error:#}")),
        (Ok(()), Some(file)) => Finding::ok(format!("read from {}", file.display())),
        (Ok(()), None) => Finding::ok("read; there is no settings file"),
    }
}

/// Checks that the store of assets responds, and that a bucket accepts and deletes files.
pub(super) async fn asset_store(settings: &Settings) -> Finding {
    let checked = async {
        let location = settings.asset_store()?;
        if settings.has_default_asset_store() {
            // The folder is created at the first upload.
            return Ok(location);
        }
        if let StoreLocation::Folder(folder) = &location {
            // To open it would create it, and hide that a volume is not mounted.
            anyhow::ensure!(folder.is_dir(), "{} is not a directory", folder.display());
            access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
            return Ok(location);
        }
        let store = open_asset_store(&location)?;
        let check = async {
            store.check().await?;
            store.check_writing().await
        };
        tokio::time::timeout(STORE_TIMEOUT, check).await??;
        anyhow::Ok(location)
    };
    match checked.await {
        Ok(location) => Finding::ok(location.to_string()),
        Err(error) => Finding::failure(format!(
            "{error:#}: check asset-store-url, and the permissions of the folder, or the key and the \
             permissions of the bucket"
        )),
    }
}

/// Checks that mails can be written to the outbox, or that the mail server accepts the login.
pub(super) async fn mail(settings: &Settings) -> Finding {
    let mailer = match settings.mailer() {
        Ok(mailer) => mailer,
        Err(error) => return Finding::failure(format!("{error:#}")),
    };
    match mailer {
        Mailer::Outbox(_) => {
            let outbox = settings.outbox();
            let found = std::fs::metadata(&outbox);
            let is_unusable = outbox.is_symlink()
                || found.is_ok_and(|found| !found.is_dir() || found.permissions().readonly());
            if is_unusable {
                let shown = outbox.display();
                return Finding::failure(format!(
                    "{shown} is not a writable directory: move it away"
                ));
            }
            Finding::ok(format!(
                "stored in {}; set smtp-url and mail-from to send mails",
                outbox.display()
            ))
        }
        Mailer::Smtp(smtp) => match smtp.check().await {
            Ok(()) => Finding::ok(format!("{smtp:?}")),
            Err(error) => {
                Finding::failure(format!("{smtp:?}: {error}: check the mail server and smtp-url"))
            }
        },
    }
}

/// Checks that the identity provider responds with its metadata and keys.
pub(super) async fn identity_provider(settings: &Settings) -> Finding {
    match settings.identity_provider(&settings.public_url(settings.listen)) {
        Ok(None) => Finding::ok("none: users sign in by links"),
        Ok(Some(provider)) => match provider.check().await {
            Ok(()) => Finding::ok(format!("{} responds", provider.issuer())),
            Err(error) => Finding::failure(format!(
                "{}: {error}: check openid-connect-issuer, and that this machine reaches it",
                provider.issuer()
            )),
        },
        Err(error) => Finding::failure(format!("{error:#}")),
    }
}

/// Checks that the collector of traces responds to an export of no spans.
pub(super) async fn traces(settings: &Settings) -> Finding {
    let Some(url) = settings.traces_url() else {
        return Finding::ok("otlp-endpoint is not set");
    };
    let request = Request::post(&url).header("content-type", "application/x-protobuf").body("");
    let request = match request {
        Ok(request) => request,
        Err(error) => return Finding::failure(format!("{url}: {error}")),
    };
    let remedy = "check otlp-endpoint, and that the collector accepts OTLP over HTTP";
    match HttpClient::new().send(request).await.map(|response| response.status()) {
        // The export itself may have a header for authentication.
        Ok(status) if status.is_success() || matches!(status.as_u16(), 401 | 403) => {
            Finding::ok(format!("{url} responds"))
        }
        Ok(status) => {
            Finding::failure(format!("{url} responds with status {}: {remedy}", status.as_u16()))
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            Finding::failure(format!("{url}: {error:#}: {remedy}"))
        }
    }
}

/// Returns true if a server accepts connections at the listen address. A server may start at any
/// moment, so the address is not bound.
pub(super) async fn is_serving(settings: &Settings) -> bool {
    let address = address::reachable(settings.listen);
    let connected = tokio::time::timeout(Duration::from_secs(2), TcpStream::connect(address)).await;
    matches!(connected, Ok(Ok(_)))
}

/// Checks that a server listens, or that one can.
pub(super) async fn listen(settings: &Settings, is_serving: bool) -> Finding {
    let address = settings.listen;
    if is_serving {
        return Finding::ok(format!("a server listens on {address}"));
    }
    match TcpListener::bind(address).await {
        Ok(_) => Finding::ok(format!("{address} is free: no server is running")),
        Err(error) => Finding::failure(format!("{address}: {error}: choose another with --listen")),
    }
}

/// Checks that clients reach a running server at the public URL.
pub(super) async fn public_address(settings: &Settings, is_serving: bool) -> Finding {
    let Some(url) = &settings.public_url else {
        return Finding::ok("public-url is not set, so clients use the listen address");
    };
    if !is_serving {
        return Finding::ok(format!("{url}, not requested as no server is running"));
    }
    let ready = format!("{}/readyz", url.trim_end_matches('/'));
    let request = match Request::get(&ready).body("") {
        Ok(request) => request,
        Err(error) => return Finding::failure(format!("{ready}: {error}")),
    };
    let remedy = "check public-url, the name's DNS records, the certificate and the proxy";
    match HttpClient::new().send(request).await {
        Ok(response)
            if response.status().is_success()
                && response.body().windows(7).any(|text| text == b"\"ready\"") =>
        {
            Finding::ok(format!("{ready} responds"))
        }
        Ok(response) if response.body().windows(9).any(|text| text == b"not_ready") => {
            Finding::failure(format!(
                "{ready} leads to galley, which is not ready: see the response of /readyz, and the log"
            ))
        }
        Ok(response) => Finding::failure(format!(
            "{ready} responds with status {} and not as galley does: {remedy}",
            response.status().as_u16()
        )),
        Err(error) => {
            let error = anyhow::Error::from(error);
            Finding::failure(format!("{ready}: {error:#}: {remedy}"))
        }
    }
}

/// Checks that a proxy in front of the server is trusted to state the addresses of clients.
pub(super) fn proxy_headers(settings: &Settings) -> Finding {
    let trusted = match settings.trusted_proxies() {
        Ok(trusted) => trusted,
        Err(error) => return Finding::failure(format!("{error:#}")),
    };
    // The server itself has no TLS.
    let has_proxy = settings.public_url.as_ref().is_some_and(|url| url.starts_with("https:"));
    match (has_proxy, trusted.is_empty()) {
        (true, true) => Finding::warning(
            "public-url is https, so clients come through a proxy, but trusted-proxies is empty: \
             the audit log and the access log name the proxy's address; set trusted-proxies to \
             the proxy's address, such as 127.0.0.1",
        ),
        (_, false) => {
            let networks: Vec<String> = trusted.iter().map(ToString::to_string).collect();
            Finding::ok(format!("X-Forwarded-For is read from {}", networks.join(", ")))
        }
        (false, true) => Finding::ok("no proxy: X-Forwarded-For is ignored"),
    }
}
