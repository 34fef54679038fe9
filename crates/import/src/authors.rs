//! Finds the members that the authors of sources are.

use std::collections::HashMap;

use galley_domain::WorkspaceMemberId;

/// An author in a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) email: Option<String>,
    pub(crate) login: Option<String>,
    /// The shown name. Files of other formats have any of the three here.
    pub(crate) name: String,
}

impl Author {
    pub(crate) fn named(name: String) -> Self {
        Self { name, ..Self::default() }
    }
}

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct KnownMember {
    pub(crate) id: WorkspaceMemberId,
    /// The addresses of the user and of the invite.
    pub(crate) emails: Vec<String>,
    pub(crate) username: Option<String>,
    pub(crate) names: Vec<String>,
}

/// The members by an identifier in lower case; `None` if several have it.
type MemberIndex = HashMap<String, Option<WorkspaceMemberId>>;

/// The members, by all their identifiers.
#[derive(Debug, Default)]
pub(crate) struct MemberDirectory {
    emails: MemberIndex,
    usernames: MemberIndex,
    names: MemberIndex,
}

impl MemberDirectory {
    pub(crate) fn add(&mut self, member: KnownMember) {
        let KnownMember { id, emails, username, names } = member;
        add_all(&mut self.emails, id, emails);
        add_all(&mut self.usernames, id, username);
        add_all(&mut self.names, id, names);
    }

    /// Finds the member with an author's address, else login, else name. A name that several
    /// members have identifies none of them.
    pub(crate) fn find(&self, author: &Author) -> Option<WorkspaceMemberId> {
        let Author { email, login, name } = author;
        let identifiers = [email.as_ref(), login.as_ref(), Some(name)].into_iter().flatten();
        identifiers.map(|text| text.to_lowercase()).find_map(|text| {
            let indexes = [&self.emails, &self.usernames, &self.names];
            indexes.into_iter().find_map(|index| index.get(&text).copied().flatten())
        })
    }
}

fn add_all(
    index: &mut MemberIndex,
    id: WorkspaceMemberId,
    identifiers: impl IntoIterator<Item = String>,
) {
    for text in identifiers {
        let known = index.entry(text.to_lowercase()).or_insert(Some(id));
        if *known != Some(id) {
            *known = None;
        }
    }
}
