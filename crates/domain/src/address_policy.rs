//! The addresses that webhooks may call: public ones, and exceptions that the operator configures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use ipnet::IpNet;

/// The policy for addresses, with the operator's exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Networks that may be called although they are not public.
    pub allowed: Vec<IpNet>,
    /// True if loopback addresses may be called, for tests on one machine.
    pub allows_loopback: bool,
}

/// The error for an address that must not be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {kind}")]
pub struct AddressRejected {
    /// The address.
    pub address: IpAddr,
    /// The kind of the address, as words for the error.
    pub kind: &'static str,
}

impl AddressPolicy {
    /// Rejects an address that must not be called. Otherwise returns whether it is public or an
    /// exception.
    pub fn check(&self, address: IpAddr) -> Result<AddressDecision, AddressRejected> {
        let Some(kind) = special(address) else { return Ok(AddressDecision::Public) };
        let inner = embedded(address).unwrap_or(address);
        let local = self.allows_loopback && inner.is_loopback() && address == inner;
        let named = self.allowed.iter().any(|network| network.contains(&address));
        if local || named {
            Ok(AddressDecision::Exception)
        } else {
            Err(AddressRejected { address, kind })
        }
    }
}

/// The reason why an address may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressDecision {
    /// The address is globally reachable.
    Public,
    /// The operator allows it.
    Exception,
}

/// Returns the kind of an address that is not public, or `None` for a public one.
fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => match embedded(address) {
            Some(IpAddr::V4(v4)) => {
                Some(special_v4(v4).unwrap_or("an IPv6 address with an embedded IPv4 address"))
            }
            _ => special_v6(v6),
        },
    }
}

/// Classifies by IANA's registry of special-purpose addresses: everything that is not globally
/// reachable.
fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, d] = address.octets();
    match (a, b, c) {
        (0, ..) => Some("an unspecified address"),
        (127, ..) => Some("a loopback address"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("a private address"),
        (100, 64..=127, _) => Some("a shared address (carrier-grade NAT)"),
        (169, 254, _) => Some("a link-local address"),
        (192, 0, 0) => Some("an address reserved for protocols"),
        // A public address, at which Azure serves its platform to each virtual machine.
        (168, 63, 129) if d == 16 => Some("a cloud platform's address"),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Some("a documentation address"),
        (192, 88, 99) => Some("a relay address"),
        (198, 18..=19, _) => Some("a benchmarking address"),
        (224..=239, ..) => Some("a multicast address"),
        (240..=255, ..) => Some("a reserved address"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0xfc00..=0xfdff, ..] => Some("a unique local address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("a site-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x0100, ..] => Some("a discard-only address"),
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some("a documentation address"),
        [0x2001, 0..=0x01ff, ..] => Some("an address reserved for protocols"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

/// Returns the IPv4 address that an IPv6 address embeds, in any form that a gateway or the
/// operating system translates.
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else { return None };
    let [high, low] = match v6.segments() {
        // Unspecified and loopback are no IPv4 addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        // Compatible, mapped and translated (SIIT).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        // NAT64, and its local form.
        | [0x0064, 0xff9b, 0 | 1, _, _, _, high, low]
        // ISATAP.
        | [_, _, _, _, 0 | 0x0200, 0x5efe, high, low]
        // 6to4.
        | [0x2002, high, low, ..] => [high, low],
        // Teredo stores it inverted.
        [0x2001, 0, _, _, _, _, high, low] => [!high, !low],
        _ => return None,
    };
    Some(IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_allowed_by_default() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:4136:e378:8000:63bf:80ff:fffe",
            "fe80::5efe:10.0.0.1",
            "2600::5efe:10.0.0.1",
            "100::1",
            "2001:db8::1",
            "fd00:ec2::254",
            "4000::1",
            "::ffff:8.8.8.8",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert!(AddressPolicy::default().check(address).is_err(), "{address}");
        }
        for address in [
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.167.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(
                AddressPolicy::default().check(address),
                Ok(AddressDecision::Public),
                "{address}"
            );
        }
    }

    #[test]
    fn the_operator_can_allow_networks() {
        let policy =
            AddressPolicy { allowed: vec!["10.1.0.0/16".parse().unwrap()], allows_loopback: true };
        for (address, allowed) in [
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", false),
            ("192.168.0.1", false),
            ("::ffff:10.1.2.3", false),
        ] {
            let verdict = policy.check(address.parse().unwrap());
            assert_eq!(verdict == Ok(AddressDecision::Exception), allowed, "{address}");
        }
    }
}
