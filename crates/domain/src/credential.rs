//! The credentials with which requests are authenticated.

use std::fmt;
use std::str::FromStr;

use crate::actor::Actor;
use crate::id::{MalformedId, SessionId, TokenId, WorkspaceMemberId};

/// The credential of a request. Its text is its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Credential {
    /// An access token.
    Token(TokenId),
    /// The session of a signed-in user.
    Session(SessionId),
}

impl Credential {
    /// Returns the author of changes that `member` makes with it.
    pub fn author(self, member: WorkspaceMemberId) -> Actor {
        match self {
            Self::Token(token) => Actor::Token { token, member },
            Self::Session(_) => Actor::Member(member),
        }
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => id.fmt(out),
            Self::Session(id) => id.fmt(out),
        }
    }
}

impl FromStr for Credential {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        text.parse().map(Self::Token).or_else(|_| text.parse().map(Self::Session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_read_back_from_its_text() {
        for credential in
            [Credential::Token(TokenId::new(7)), Credential::Session(SessionId::new(7))]
        {
            assert_eq!(credential.to_string().parse(), Ok(credential));
        }
        let member = WorkspaceMemberId::new(7).to_string();
        assert_eq!(member.parse::<Credential>(), Err(MalformedId));
    }
}
