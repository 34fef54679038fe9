//! The language of the pages for people who sign in.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::ACCEPT_LANGUAGE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use galley_application::Reason;

use crate::describe::arguments;
use crate::problem::{ReasonTexts, texts};

/// The language of a page: that of `Accept-Language` with the higher quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageLanguage {
    English,
    German,
}

impl PageLanguage {
    fn preferred(headers: &HeaderMap) -> Self {
        let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let quality_of = |language: &str| {
            accepted.unwrap_or_default().split(',').find_map(|entry| {
                let (tag, parameter) = entry.split_once(';').unwrap_or((entry, "q=1"));
                let primary = tag.trim().split('-').next()?;
                if !primary.eq_ignore_ascii_case(language) {
                    return None;
                }
                parameter.trim().strip_prefix("q=")?.parse::<f32>().ok()
            })
        };
        let (english, german) = (quality_of("en"), quality_of("de"));
        if german.unwrap_or(0.0) > english.unwrap_or(0.0) { Self::German } else { Self::English }
    }

    /// Returns true for German.
    pub(crate) fn is_german(self) -> bool {
        self == Self::German
    }

    /// Returns the language tag.
    pub(crate) fn tag(self) -> &'static str {
        if self.is_german() { "de" } else { "en" }
    }

    /// Returns the value of `Content-Language`.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(self.tag())
    }

    /// Returns the text in this language.
    pub(crate) fn text<T>(self, english: T, german: T) -> T {
        if self.is_german() { german } else { english }
    }

    /// Returns the title, the cause and the cure of a rejection that pages explain.
    pub(crate) fn explanation(self, reason: Reason) -> [&'static str; 3] {
        let ReasonTexts { title, cause, cure, .. } = texts(reason);
        let german = if self.is_german() { german(reason) } else { None };
        german.unwrap_or([title, cause, cure])
    }
}

impl<S: Sync> FromRequestParts<S> for PageLanguage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::preferred(&parts.headers))
    }
}

arguments! {
    PageLanguage:;
}

/// Returns the German texts of a reason.
fn german(reason: Reason) -> Option<[&'static str; 3]> {
    Some(match reason {
        Reason::ForeignOrigin => [
            "Eine andere Seite hat die Anfrage geschickt",
            "Das Formular kam von einer Seite, die nicht zu diesem Dienst gehört.",
            "Öffnen Sie die Seite unter der Adresse des Dienstes selbst.",
        ],
        Reason::InsecureConnection => [
            "Die Anmeldung braucht eine verschlüsselte Verbindung",
            "Die Adresse des Dienstes ist nicht verschlüsselt, sodass andere die Anmeldung mitlesen \
             könnten.",
            "Der Betreiber richtet https ein und setzt public-url auf die https-Adresse.",
        ],
        Reason::SignInRequired => [
            "Melden Sie sich zuerst an",
            "Die Einladung wurde mit einem kopierten Link geöffnet. Er beweist die Adresse nicht, und \
             die Adresse gehört zu einem Benutzer.",
            "Melden Sie sich mit dieser Adresse per Mail an, und öffnen Sie den Link danach im selben \
             Browser. Oder nehmen Sie den Link in der Mail der Einladung.",
        ],
        Reason::OtherBrowser => [
            "Das ist ein anderer Browser",
            "Ein Link aus einer Mail gilt nur in dem Browser, in dem er angefordert wurde. So nützt \
             eine gestohlene Mail niemandem.",
            "Geben Sie den Code der Mail in dem Browser ein, in dem Sie sie angefordert haben. Oder \
             fordern Sie in diesem eine neue an.",
        ],
        Reason::WrongCode => [
            "Der Code ist falsch",
            "Der Code ist nicht der aus der zuletzt angeforderten Mail.",
            "Übernehmen Sie die acht Zeichen aus der neuesten Mail. Nach fünf falschen Codes fordern \
             Sie eine neue an.",
        ],
        Reason::SignInEnded => [
            "Der Link oder der Code gilt nicht mehr",
            "Link und Code gelten einmal und 15 Minuten lang, und nur die neuesten eines Browsers.",
            "Fordern Sie eine neue Mail an, und benutzen Sie sie im selben Browser.",
        ],
        Reason::TooManySignIns => [
            "Zu viele Versuche",
            "Mit dieser Adresse oder aus diesem Netz gab es zu viele Versuche in einer Stunde.",
            "Versuchen Sie es später noch einmal.",
        ],
        _ => return german_of_identity(reason),
    })
}

/// Returns the German texts of a reason that concerns identity providers.
fn german_of_identity(reason: Reason) -> Option<[&'static str; 3]> {
    Some(match reason {
        Reason::IdentityProviderFailed => [
            "Der Identitätsanbieter antwortet nicht",
            "Der Identitätsanbieter antwortet nicht, oder seine Antwort ist nicht lesbar.",
            "Versuchen Sie es später noch einmal, oder melden Sie sich per Mail an. Der Betreiber \
             findet die Ursache im Log.",
        ],
        Reason::IdentityRejected => [
            "Die Identität wird nicht angenommen",
            "Die Anmeldung wurde beim Identitätsanbieter abgelehnt, oder seine Aussage ist ungültig.",
            "Versuchen Sie es noch einmal, oder melden Sie sich per Mail an. Der Betreiber findet die \
             Ursache im Log.",
        ],
        Reason::UnverifiedIdentity => [
            "Die Adresse ist nicht bestätigt",
            "Der Identitätsanbieter nennt keine E-Mail-Adresse für das Konto, oder hat sie nicht \
             geprüft.",
            "Bestätigen Sie die Adresse dort, oder melden Sie sich per Mail an.",
        ],
        Reason::UnknownIdentity => [
            "Kein Mitglied hat diese Adresse",
            "Kein Arbeitsbereich hat ein Mitglied mit der E-Mail-Adresse des Kontos. Eine Anmeldung \
             legt kein Mitglied an.",
            "Nehmen Sie ein anderes Konto, oder bitten Sie einen Admin um eine Einladung an diese \
             Adresse.",
        ],
        Reason::UnverifiedMember => [
            "Melden Sie sich zuerst per Mail an",
            "Das Mitglied mit der Adresse des Kontos ist mit einem kopierten Link beigetreten und hat \
             die Adresse noch nie bewiesen.",
            "Melden Sie sich einmal per Mail an. Danach geht es auch mit dem Identitätsanbieter.",
        ],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_the_higher_quality_is_preferred() {
        for (header, language) in [
            ("de", PageLanguage::German),
            ("de-AT,de;q=0.9,en;q=0.8", PageLanguage::German),
            ("en-US,en;q=0.9,de;q=0.8", PageLanguage::English),
            ("fr,de;q=0.5", PageLanguage::German),
            ("de;q=0", PageLanguage::English),
            ("de;q=x,DE-ch", PageLanguage::German),
            ("fr", PageLanguage::English),
            ("", PageLanguage::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(header));
            assert_eq!(PageLanguage::preferred(&headers), language, "{header}");
        }
        assert_eq!(PageLanguage::preferred(&HeaderMap::new()), PageLanguage::English);
    }
}
