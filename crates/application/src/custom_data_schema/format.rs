//! The keyword `format`. Regular expressions check the grammars of the standards, and libraries the
//! rules that no grammar states.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use email_address::{EmailAddress, Options};
use fluent_uri::{Iri, IriRef, Uri, UriRef};
use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use jiff::civil;

use super::budget::{Exhausted, WorkBudget};
use super::pattern::Pattern;

/// A format.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) name: &'static str,
    grammar: Option<Pattern>,
    /// Checks the rules that the grammar does not state. The text matches the grammar.
    follows_rules: fn(&str) -> bool,
}

const DATE: &str = "[0-9]{4}-[0-9]{2}-[0-9]{2}";
const TIME: &str = "([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)([.][0-9]+)?\
                    ([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
const DURATION: &str = "P([0-9]+W|T{time}|({days}|{months}|{years})(T{time})?)";
const UUID: &str = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
const JSON_POINTER: &str = "(/([^~/]|~[01])*)*";
const INTEGER: &str = "(0|[1-9][0-9]*)";
const URI_TEMPLATE: &str = "([^\\0-\\x20\"%<>\\\\^`{|}\\x7f-\\x9f]|{escape}|\
                            [{][+#./;?&=,!@|]?{variable}(,{variable})*[}])*";

/// The formats that are checked. Others are annotations, `regex` among them, as its check takes
/// quadratic time.
static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    let format = |name, grammar: &str, follows_rules| {
        let grammar = Pattern::compile(&format!("^({grammar})$")).expect("it is in ECMA-262");
        Format { name, grammar: Some(grammar), follows_rules }
    };
    let library = |name, follows_rules| Format { name, grammar: None, follows_rules };
    let grammar = |name, text: &str| format(name, text, |_| true);
    vec![
        format("date-time", &format!("{DATE}[Tt]{TIME}"), |text| {
            is_date(&text[..10]) && is_time(&text[11..])
        }),
        format("date", DATE, is_date),
        format("time", TIME, is_time),
        grammar("duration", &duration()),
        library("email", is_email),
        library("hostname", is_hostname),
        library("ipv4", |text| text.parse::<Ipv4Addr>().is_ok()),
        library("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
        library("uri", |text| Uri::parse(text).is_ok()),
        library("uri-reference", |text| UriRef::parse(text).is_ok()),
        library("iri", |text| Iri::parse(text).is_ok()),
        library("iri-reference", |text| IriRef::parse(text).is_ok()),
        grammar("uuid", UUID),
        grammar("uri-template", &uri_template()),
        grammar("json-pointer", JSON_POINTER),
        grammar("relative-json-pointer", &format!("{INTEGER}([+-]{INTEGER})?(#|{JSON_POINTER})")),
    ]
});

/// Returns the names of the formats that are checked.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

impl Format {
    /// Finds a format that is checked.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    pub(super) fn is_valid(&self, text: &str, budget: &mut WorkBudget) -> Result<bool, Exhausted> {
        let matches = match &self.grammar {
            Some(grammar) => grammar.is_match(text, budget)?,
            None => true,
        };
        Ok(matches && (self.follows_rules)(text))
    }
}

/// Returns the grammar of RFC 3339, appendix A: no unit is left out between two others.
fn duration() -> String {
    let days = "[0-9]+D";
    let months = format!("[0-9]+M({days})?");
    let seconds = "[0-9]+S";
    let minutes = format!("[0-9]+M({seconds})?");
    DURATION
        .replace("{time}", &format!("({seconds}|{minutes}|[0-9]+H({minutes})?)"))
        .replace("{years}", &format!("[0-9]+Y({months})?"))
        .replace("{months}", &months)
        .replace("{days}", days)
}

/// Returns the grammar of RFC 6570, with the apostrophe of its erratum 6937.
fn uri_template() -> String {
    let escape = "%[0-9A-Fa-f]{2}";
    let character = format!("([A-Za-z0-9_]|{escape})");
    let variable = format!("{character}([.]?{character})*(:[1-9][0-9]{{0,3}}|[*])?");
    URI_TEMPLATE.replace("{escape}", escape).replace("{variable}", &variable)
}

/// Returns true if the calendar has this date.
fn is_date(text: &str) -> bool {
    text.parse::<civil::Date>().is_ok()
}

/// Returns true unless a leap second is at another time than the end of a day in UTC.
fn is_time(text: &str) -> bool {
    let minutes = |at: usize| {
        let number = |at: usize| text.get(at..at + 2)?.parse::<i32>().ok();
        Some(60 * number(at)? + number(at + 3)?)
    };
    if &text[6..8] != "60" {
        return true;
    }
    let offset = match text.rfind(['+', '-']) {
        None => Some(0),
        Some(at) if text[at..].starts_with('-') => minutes(at + 1).map(|offset| -offset),
        Some(at) => minutes(at + 1),
    };
    let utc = minutes(0).zip(offset).map(|(local, offset)| (local - offset).rem_euclid(24 * 60));
    utc == Some(23 * 60 + 59)
}

/// Checks the address by RFC 5321, which has ASCII only.
fn is_email(text: &str) -> bool {
    let options = Options::default().without_display_text();
    let address = EmailAddress::parse_with_options(text, options);
    let is_domain = |domain: &str| {
        let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match literal.map(|literal| (literal, literal.strip_prefix("IPv6:"))) {
            None => is_hostname(domain),
            Some((_, Some(ipv6))) => ipv6.parse::<Ipv6Addr>().is_ok(),
            Some((ipv4, None)) => ipv4.parse::<Ipv4Addr>().is_ok(),
        }
    };
    text.is_ascii() && address.is_ok_and(|address| is_domain(address.domain()))
}

/// Checks the name by RFC 1123, and its labels in Punycode by UTS #46.
fn is_hostname(text: &str) -> bool {
    let (rules, length) = (AsciiDenyList::STD3, DnsLength::Verify);
    text.is_ascii() && Uts46::new().to_ascii(text.as_bytes(), rules, Hyphens::Check, length).is_ok()
}
