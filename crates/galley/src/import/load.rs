//! Keeping documents as pieces, in batches.

use std::collections::{HashMap, HashSet};

use galley_domain::content_group::ContentGroupName;
use galley_domain::tag::TagLabel;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceMemberId};

use super::place::{Failure, Outcome, Place, Prepared};
use super::raw::Document;

/// Where the pieces go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) group: ContentGroupId,
    /// For every piece.
    pub(super) labels: Vec<TagLabel>,
    /// Whether folders become groups.
    pub(super) groups: bool,
    /// The language of the pieces themselves, where there are several.
    pub(super) language: Option<String>,
}

/// Keeps documents as pieces.
#[derive(Debug)]
pub(super) struct Loader<P> {
    place: P,
    target: Target,
    /// The pieces that earlier imports made, by the name of their source.
    known: Known,
    /// What this import had already: two of one name would undo each other, in this import and in each after it.
    seen: HashSet<(String, Option<String>)>,
    /// The groups of folders.
    groups: HashMap<Vec<String>, ContentGroupId>,
    /// The variants of languages.
    variants: HashMap<String, VariantKey>,
    /// The members, by what sources may call them, in lower case.
    people: HashMap<String, WorkspaceMemberId>,
}

/// The pieces that are there.
#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<String, ContentPieceId>,
    ids: HashSet<ContentPieceId>,
}

impl Known {
    /// The piece that a document was exported from, or that was made of the same source.
    fn find(&self, document: &Document) -> Option<ContentPieceId> {
        let by_id = document.id.filter(|id| self.ids.contains(id));
        by_id.or_else(|| self.by_name.get(document.name.as_str()).copied())
    }
}

impl<P: Place> Loader<P> {
    pub(super) async fn new(mut place: P, target: Target) -> anyhow::Result<Self> {
        let mut known = Known::default();
        for piece in place.pieces(target.group, target.groups).await? {
            known.ids.insert(piece.id);
            if let Some(name) = piece.source {
                known.by_name.entry(name).or_insert(piece.id);
            }
        }
        let mut people = HashMap::new();
        for (name, member) in place.people().await? {
            people.entry(name.to_lowercase()).or_insert(member);
        }
        Ok(Self {
            place,
            target,
            known,
            seen: HashSet::new(),
            groups: HashMap::new(),
            variants: HashMap::new(),
            people,
        })
    }

    pub(super) async fn close(self) {
        self.place.close().await;
    }

    /// What would come of `documents`, as far as that can be said without keeping them.
    pub(super) fn compare(&mut self, documents: &[Document]) -> Vec<Outcome> {
        let outcome = |document: &Document| {
            if let Some(refused) = self.repeats(document) {
                return refused;
            }
            if self.known.find(document).is_some() {
                return Outcome::Updated;
            }
            let is_variant =
                document.language.is_some() && document.language != self.target.language;
            let own = (document.name.as_str().to_owned(), self.target.language.clone());
            if is_variant && !self.seen.contains(&own) {
                let (place, problem) = (&document.place, self.orphan());
                return Outcome::Refused(format!("{place}: {problem}"));
            }
            if is_variant { Outcome::Updated } else { Outcome::Created }
        };
        documents.iter().map(outcome).collect()
    }

    /// Keeps `documents`; variants when the pieces are there of which they are some.
    pub(super) async fn load(&mut self, documents: Vec<Document>) -> anyhow::Result<Vec<Outcome>> {
        let own = self.target.language.clone();
        let (pieces, variants): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .partition(|document| document.language.is_none() || document.language == own);
        let mut outcomes = self.load_together(pieces).await?;
        outcomes.extend(self.load_together(variants).await?);
        Ok(outcomes)
    }

    async fn load_together(&mut self, documents: Vec<Document>) -> anyhow::Result<Vec<Outcome>> {
        let mut outcomes = Vec::with_capacity(documents.len());
        let mut prepared = Vec::with_capacity(documents.len());
        for document in documents {
            if let Some(refused) = self.repeats(&document) {
                outcomes.push(refused);
                continue;
            }
            let place = document.place.clone();
            match self.prepare(document).await {
                Ok(document) => prepared.push(document),
                Err(Failure::Refused(problem)) => {
                    outcomes.push(Outcome::Refused(format!("{place}: {problem}")));
                }
                Err(Failure::Broken(error)) => return Err(error),
            }
        }
        if prepared.is_empty() {
            return Ok(outcomes);
        }
        let names: Vec<_> =
            prepared.iter().map(|one| one.document.name.as_str().to_owned()).collect();
        let kept = self.place.keep(prepared).await?;
        for (name, one) in names.into_iter().zip(kept) {
            if let Some(id) = one.id {
                self.known.by_name.insert(name, id);
            }
            outcomes.push(one.outcome);
        }
        Ok(outcomes)
    }

    fn repeats(&mut self, document: &Document) -> Option<Outcome> {
        let name = document.name.as_str().to_owned();
        let is_new = self.seen.insert((name, document.language.clone()));
        let of_id = document.id.is_none_or(|id| {
            !self.known.ids.contains(&id)
                || self.seen.insert((id.to_string(), document.language.clone()))
        });
        (!is_new || !of_id).then(|| {
            let place = &document.place;
            Outcome::Refused(format!("{place}: another one with its id came before"))
        })
    }

    fn orphan(&self) -> String {
        let own = self.target.language.as_deref().unwrap_or_default();
        format!("there is nothing of this name in {own}, of which it would be a variant")
    }

    /// Looks up what a document names; makes groups and variants that aren't there.
    async fn prepare(&mut self, document: Document) -> Result<Prepared, Failure> {
        let known = self.known.find(&document);
        let language = document.language.as_ref();
        let variant =
            match language.filter(|language| Some(*language) != self.target.language.as_ref()) {
                Some(language) => Some(self.variant(language).await?),
                None => None,
            };
        if variant.is_some() && known.is_none() {
            return Err(Failure::Refused(self.orphan()));
        }
        let mut group = self.target.group;
        if self.target.groups && known.is_none() {
            group = self.group(&document.folders).await?;
        }
        let member = |name: &String| self.people.get(&name.to_lowercase()).copied();
        let mut members: Vec<WorkspaceMemberId> = Vec::new();
        for member in document.authors.iter().filter_map(member) {
            if !members.contains(&member) {
                members.push(member);
            }
        }
        let labels = self.target.labels.iter().chain(&document.tags).cloned().collect();
        Ok(Prepared { document, known, group, members, variant, labels })
    }

    /// The group of a folder, below that of its parent.
    async fn group(&mut self, folders: &[String]) -> Result<ContentGroupId, Failure> {
        let mut group = self.target.group;
        for depth in 1..=folders.len() {
            let path = &folders[..depth];
            if let Some(known) = self.groups.get(path) {
                group = *known;
                continue;
            }
            let folder = &path[depth - 1];
            let name = ContentGroupName::parse(folder.as_str())
                .map_err(|invalid| Failure::Refused(format!("the folder {folder:?} {invalid}")))?;
            let made = self.place.group(group, &name).await;
            group = made.map_err(|failure| about(&format!("the group {folder:?}"), failure))?;
            self.groups.insert(path.to_vec(), group);
        }
        Ok(group)
    }

    /// The variant of a language.
    async fn variant(&mut self, language: &str) -> Result<VariantKey, Failure> {
        if let Some(known) = self.variants.get(language) {
            return Ok(known.clone());
        }
        let key = variant_key(language).map_err(Failure::Refused)?;
        let label = VariantLabel::parse(language)
            .map_err(|invalid| Failure::Refused(format!("the language {invalid}")))?;
        let made = self.place.variant(&key, &label).await;
        made.map_err(|failure| about(&format!("the variant {language:?}"), failure))?;
        self.variants.insert(language.to_owned(), key.clone());
        Ok(key)
    }
}

fn about(what: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Refused(problem) => Failure::Refused(format!("{what}: {problem}")),
        broken @ Failure::Broken(_) => broken,
    }
}

/// What a language's variant is called by programs.
pub(super) fn variant_key(language: &str) -> Result<VariantKey, String> {
    let key = language.to_ascii_lowercase().replace('-', "_");
    VariantKey::parse(key).map_err(|invalid| format!("the language {language:?} {invalid}"))
}
