//! The warning about a URL that the current settings don't allow to be called.

use std::net::IpAddr;
use std::time::Duration;

use galley_delivery::Resolve;
use galley_domain::webhook::WebhookUrl;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::app::App;

/// The timeout of a DNS look-up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The limit on concurrent DNS look-ups. Each occupies a thread until the name server responds.
/// Without a free permit, the look-up and the warning are skipped.
static LOOKUPS: Semaphore = Semaphore::const_new(8);

fn look_up(resolver: &dyn Resolve, name: String) -> Option<JoinHandle<Option<Vec<IpAddr>>>> {
    let permit = LOOKUPS.try_acquire().ok()?;
    let found = resolver.resolve(name);
    Some(tokio::spawn(async move {
        let found = found.await;
        drop(permit);
        found.ok()
    }))
}

/// Returns the reason why events can't be sent to `url`, if it is known by now.
pub(super) async fn warning(app: &App, url: &WebhookUrl) -> Option<String> {
    let policy = &app.limits().webhook_addresses;
    let url = url::Url::parse(url.as_str()).ok()?;
    let addresses: Vec<IpAddr> = match url.host()? {
        url::Host::Ipv4(address) => vec![address.into()],
        url::Host::Ipv6(address) => vec![address.into()],
        url::Host::Domain(name) => {
            // A name without an address now may have one at the first event, so it causes no
            // warning.
            let resolver = &**app.environment().resolver();
            tokio::time::timeout(LOOKUP_TIMEOUT, look_up(resolver, name.to_owned())?)
                .await
                .ok()?
                .ok()??
        }
    };
    let refused = addresses.into_iter().find_map(|address| policy.check(address).err())?;
    // The warning omits the address of a name, as it may be in the operator's own network.
    let why = match url.host()? {
        url::Host::Domain(name) => format!("{name} resolves to a blocked address"),
        _ => refused.to_string(),
    };
    Some(format!(
        "requests to this address are blocked: {why}; the setting webhooks-allow \
         (GALLEY_WEBHOOKS_ALLOW) can allow its network"
    ))
}
