//! What is said about an address that could not be called as things stand.

use std::net::IpAddr;
use std::time::Duration;

use galley_delivery::Resolve;
use galley_domain::webhook::WebhookUrl;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::http::app::App;

/// How long a name may take to be looked up.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(2);

/// How many look-ups may be under way. Each holds a thread, however long its server takes; without
/// a free one nothing is looked up, and nothing warned of.
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

/// Why nothing could be sent to `url`, if that can be told by now.
pub(super) async fn warning(app: &App, url: &WebhookUrl) -> Option<String> {
    let policy = &app.limits().webhook_addresses;
    let url = url::Url::parse(url.as_str()).ok()?;
    let addresses: Vec<IpAddr> = match url.host()? {
        url::Host::Ipv4(address) => vec![address.into()],
        url::Host::Ipv6(address) => vec![address.into()],
        url::Host::Domain(name) => {
            // A name that isn't known yet may be known when there is something to send.
            let resolver = &**app.environment().resolver();
            tokio::time::timeout(LOOKUP_TIME_MAX, look_up(resolver, name.to_owned())?)
                .await
                .ok()?
                .ok()??
        }
    };
    let refused = addresses.into_iter().find_map(|address| policy.check(address).err())?;
    // Where a name leads is not told: it may be one of the operator's own network.
    let why = match url.host()? {
        url::Host::Domain(name) => format!("{name} leads to an address that is not called"),
        _ => refused.to_string(),
    };
    Some(format!(
        "nothing is sent there: {why}; the setting webhooks-allow (GALLEY_WEBHOOKS_ALLOW) \
         names networks that may be called all the same"
    ))
}
