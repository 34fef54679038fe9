//! The authors of changes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{MalformedId, TokenId, WorkspaceMemberId};

/// The author of a change. Its text is `system`, the id of the member, or the ids of the token and
/// the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The server itself, or the operator by a command.
    System,
    /// A request with an access token.
    Token {
        /// The token.
        token: TokenId,
        /// The member to whom the token belonged.
        member: WorkspaceMemberId,
    },
    /// A member who is signed in.
    Member(WorkspaceMemberId),
}

const SYSTEM: &str = "system";

impl Actor {
    /// Returns the member on whose behalf it acted.
    pub fn member(self) -> Option<WorkspaceMemberId> {
        match self {
            Self::System => None,
            Self::Token { member, .. } | Self::Member(member) => Some(member),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => out.write_str(SYSTEM),
            Self::Token { token, member } => write!(out, "{token} {member}"),
            Self::Member(member) => member.fmt(out),
        }
    }
}

impl FromStr for Actor {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        if text == SYSTEM {
            return Ok(Self::System);
        }
        let Some((token, member)) = text.split_once(' ') else {
            return text.parse().map(Self::Member);
        };
        Ok(Self::Token { token: token.parse()?, member: member.parse()? })
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_read_back_from_its_text() {
        let token = Actor::Token { token: TokenId::new(7), member: WorkspaceMemberId::new(8) };
        let member = WorkspaceMemberId::new(8);
        for actor in [Actor::System, token, Actor::Member(member)] {
            assert_eq!(actor.to_string().parse(), Ok(actor));
        }
        let bare_token = TokenId::new(7).to_string();
        for text in ["", "System", &bare_token, &format!("{member} {member}")] {
            assert_eq!(text.parse::<Actor>(), Err(MalformedId), "{text}");
        }
    }
}
