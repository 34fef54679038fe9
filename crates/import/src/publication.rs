//! The publication of a piece as it follows the state of its source.
//!
//! Changes that were made in Galley win: an import publishes nothing that it did not write itself,
//! and no piece that was unpublished in Galley.

use galley_domain::Timestamp;
use galley_domain::publication::PublicationState;

use crate::raw::{Document, PublishingState};

/// The state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceState {
    Published,
    Scheduled(Timestamp),
    Unpublished,
}

impl SourceState {
    pub(crate) fn of(document: &Document) -> Self {
        match (document.state, document.publish_at) {
            (PublishingState::Published, _) => Self::Published,
            (PublishingState::Scheduled, Some(at)) => Self::Scheduled(at),
            _ => Self::Unpublished,
        }
    }
}

/// The state that an import recorded for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordedState {
    Published,
    Scheduled(Timestamp),
    Unpublished,
    /// The source is published, and the import wrote changes that it has not published.
    Pending,
}

impl From<SourceState> for RecordedState {
    fn from(state: SourceState) -> Self {
        match state {
            SourceState::Published => Self::Published,
            SourceState::Scheduled(at) => Self::Scheduled(at),
            SourceState::Unpublished => Self::Unpublished,
        }
    }
}

impl RecordedState {
    /// Returns the state as a part of a recorded hash.
    pub(crate) fn to_text(self) -> String {
        match self {
            Self::Published => "published".to_owned(),
            Self::Scheduled(at) => format!("scheduled-{}", at.ms()),
            Self::Unpublished => "unpublished".to_owned(),
            Self::Pending => "pending".to_owned(),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "published" => Some(Self::Published),
            "unpublished" => Some(Self::Unpublished),
            "pending" => Some(Self::Pending),
            _ => {
                let ms = text.strip_prefix("scheduled-")?.parse().ok()?;
                Some(Self::Scheduled(Timestamp::from_ms(ms)))
            }
        }
    }
}

/// The record of an earlier import of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// There is none: the source is new, or its import was interrupted.
    Nothing,
    /// Earlier versions recorded no state.
    WithoutState,
    State(RecordedState),
}

/// The publication of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PiecePublication {
    pub(crate) state: PublicationState,
    pub(crate) publish_at: Option<Timestamp>,
}

impl PiecePublication {
    /// The publication of a new piece.
    pub(crate) const NEW: Self = Self { state: PublicationState::Draft, publish_at: None };
}

/// The change of a piece's publication. The schedule is changed first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PublicationChange {
    /// The time to schedule; `Some(None)` cancels the schedule.
    pub(crate) schedule: Option<Option<Timestamp>>,
    pub(crate) unpublish: bool,
    pub(crate) publish: bool,
    /// True if the source is published, but the piece stays as it is because of changes in Galley.
    pub(crate) is_withheld: bool,
}

impl PublicationChange {
    pub(crate) const NONE: Self =
        Self { schedule: None, unpublish: false, publish: false, is_withheld: false };
    pub(crate) const PUBLISH: Self = Self { publish: true, ..Self::NONE };
    const WITHHOLD: Self = Self { is_withheld: true, ..Self::NONE };

    fn schedule(at: Timestamp) -> Self {
        Self { schedule: Some(Some(at)), ..Self::NONE }
    }
}

/// Returns the change for a piece. `is_own` tells that the piece's fields are those that this or an
/// earlier import wrote, so that a publication shows no other change of them.
pub(crate) fn follow(
    source: SourceState,
    piece: PiecePublication,
    recorded: Recorded,
    is_own: bool,
) -> PublicationChange {
    use {PublicationState as Is, Recorded as Was, RecordedState as State};
    match (source, piece.state, recorded) {
        (SourceState::Published, Is::Published | Is::Changed, _) => {
            follow_piece(source, piece, recorded, is_own)
        }
        (
            SourceState::Published,
            Is::Draft,
            Was::Nothing | Was::State(State::Unpublished | State::Pending),
        ) if is_own => PublicationChange::PUBLISH,
        // The source was published before its time. A schedule that is gone was cancelled, or the
        // piece was unpublished after it ran.
        (SourceState::Published, Is::Draft, Was::State(State::Scheduled(_)))
            if is_own && piece.publish_at.is_some() =>
        {
            PublicationChange { schedule: Some(None), ..PublicationChange::PUBLISH }
        }
        (SourceState::Published, ..) => PublicationChange::WITHHOLD,
        (SourceState::Scheduled(at), Is::Draft, Was::State(State::Scheduled(before))) => {
            // Another time was set in Galley.
            let is_kept = piece.publish_at == Some(before) && before != at;
            if is_kept { PublicationChange::schedule(at) } else { PublicationChange::NONE }
        }
        (
            SourceState::Scheduled(at),
            Is::Draft,
            Was::Nothing | Was::State(State::Unpublished | State::Pending),
        ) if piece.publish_at.is_none() => {
            if is_own {
                PublicationChange::schedule(at)
            } else {
                PublicationChange::WITHHOLD
            }
        }
        (
            SourceState::Scheduled(at),
            Is::Published | Is::Changed,
            Was::State(State::Published | State::Pending),
        ) => PublicationChange {
            unpublish: true,
            schedule: is_own.then_some(Some(at)),
            ..PublicationChange::NONE
        },
        (
            SourceState::Unpublished,
            state,
            Was::State(State::Published | State::Scheduled(_) | State::Pending),
        ) => PublicationChange {
            unpublish: state != Is::Draft,
            schedule: piece.publish_at.map(|_| None),
            ..PublicationChange::NONE
        },
        (SourceState::Scheduled(_) | SourceState::Unpublished, ..) => PublicationChange::NONE,
    }
}

/// Returns the change for a piece whose source follows the piece: a variant, which is published
/// with it, or a file that was exported from it.
pub(crate) fn follow_piece(
    source: SourceState,
    piece: PiecePublication,
    recorded: Recorded,
    is_own: bool,
) -> PublicationChange {
    match (source, piece.state, recorded) {
        (SourceState::Published, PublicationState::Published, _) => PublicationChange::PUBLISH,
        (
            SourceState::Published,
            PublicationState::Changed,
            Recorded::State(RecordedState::Pending),
        ) if is_own => PublicationChange::PUBLISH,
        (SourceState::Published, PublicationState::Changed, _) => PublicationChange::WITHHOLD,
        _ => PublicationChange::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Timestamp = Timestamp::from_ms(1_000);
    const LATER: Timestamp = Timestamp::from_ms(2_000);

    fn piece(state: PublicationState) -> PiecePublication {
        PiecePublication { state, publish_at: None }
    }

    fn all() -> impl Iterator<Item = (SourceState, PiecePublication, Recorded)> {
        let sources =
            [SourceState::Published, SourceState::Scheduled(TIME), SourceState::Unpublished];
        let states =
            [PublicationState::Draft, PublicationState::Published, PublicationState::Changed];
        let recorded = [
            Recorded::Nothing,
            Recorded::WithoutState,
            Recorded::State(RecordedState::Published),
            Recorded::State(RecordedState::Scheduled(TIME)),
            Recorded::State(RecordedState::Scheduled(LATER)),
            Recorded::State(RecordedState::Unpublished),
            Recorded::State(RecordedState::Pending),
        ];
        let times = [None, Some(TIME), Some(LATER)];
        sources.into_iter().flat_map(move |source| {
            states.into_iter().flat_map(move |state| {
                recorded.into_iter().flat_map(move |recorded| {
                    times.into_iter().map(move |publish_at| {
                        (source, PiecePublication { state, publish_at }, recorded)
                    })
                })
            })
        })
    }

    #[test]
    fn changes_made_in_galley_are_never_published() {
        for (source, piece, recorded) in all() {
            let change = follow(source, piece, recorded, false);
            let publishes = change.publish || change.schedule.flatten().is_some();
            // A schedule that exists already publishes these changes anyway.
            if piece.state != PublicationState::Published && piece.publish_at.is_none() {
                assert!(!publishes, "{source:?} {piece:?} {recorded:?}: {change:?}");
            }
        }
    }

    #[test]
    fn an_unpublished_source_is_never_published() {
        for (source, piece, recorded) in all() {
            let change = follow(source, piece, recorded, true);
            if source != SourceState::Published {
                assert!(!change.publish, "{source:?} {piece:?} {recorded:?}: {change:?}");
            }
            if source == SourceState::Unpublished {
                let times = change.schedule.flatten();
                assert_eq!(times, None, "{piece:?} {recorded:?}: {change:?}");
            }
        }
    }

    #[test]
    fn a_piece_follows_its_source() {
        use {PublicationState as Is, RecordedState as Was, SourceState as Source};
        let none = PublicationChange::NONE;
        let unpublish = PublicationChange { unpublish: true, ..none };
        let cases = [
            (Source::Published, Is::Draft, None, PublicationChange::PUBLISH),
            (Source::Scheduled(TIME), Is::Draft, None, PublicationChange::schedule(TIME)),
            (Source::Unpublished, Is::Draft, None, none),
            (Source::Published, Is::Draft, Some(Was::Unpublished), PublicationChange::PUBLISH),
            (Source::Published, Is::Draft, Some(Was::Pending), PublicationChange::PUBLISH),
            (Source::Published, Is::Changed, Some(Was::Pending), PublicationChange::PUBLISH),
            (Source::Published, Is::Draft, Some(Was::Published), PublicationChange::WITHHOLD),
            // The schedule has run, and the piece was unpublished.
            (Source::Published, Is::Draft, Some(Was::Scheduled(TIME)), PublicationChange::WITHHOLD),
            (Source::Published, Is::Changed, Some(Was::Published), PublicationChange::WITHHOLD),
            (Source::Unpublished, Is::Published, Some(Was::Published), unpublish),
            (Source::Unpublished, Is::Published, Some(Was::Scheduled(TIME)), unpublish),
            (Source::Unpublished, Is::Published, Some(Was::Unpublished), none),
            (Source::Scheduled(TIME), Is::Published, Some(Was::Scheduled(TIME)), none),
            (
                Source::Scheduled(TIME),
                Is::Published,
                Some(Was::Published),
                PublicationChange { unpublish: true, ..PublicationChange::schedule(TIME) },
            ),
        ];
        for (source, state, recorded, expected) in cases {
            let recorded = recorded.map_or(Recorded::Nothing, Recorded::State);
            assert_eq!(
                follow(source, piece(state), recorded, true),
                expected,
                "{source:?} {state:?} {recorded:?}"
            );
        }
    }

    #[test]
    fn a_schedule_follows_its_source_until_it_is_changed_in_galley() {
        let recorded = Recorded::State(RecordedState::Scheduled(TIME));
        let draft = |publish_at| PiecePublication { publish_at, ..PiecePublication::NEW };
        let follow = |source, publish_at| follow(source, draft(publish_at), recorded, true);
        let moved = PublicationChange::schedule(LATER);
        assert_eq!(follow(SourceState::Scheduled(LATER), Some(TIME)), moved);
        for publish_at in [None, Some(LATER)] {
            let kept = follow(SourceState::Scheduled(LATER), publish_at);
            assert_eq!(kept, PublicationChange::NONE, "{publish_at:?}");
        }
        let published = PublicationChange { schedule: Some(None), ..PublicationChange::PUBLISH };
        assert_eq!(follow(SourceState::Published, Some(TIME)), published);
        let cancelled = PublicationChange { schedule: Some(None), ..PublicationChange::NONE };
        assert_eq!(follow(SourceState::Unpublished, Some(TIME)), cancelled);
    }

    #[test]
    fn recorded_states_are_parsed_as_they_were_written() {
        for state in [
            RecordedState::Published,
            RecordedState::Scheduled(TIME),
            RecordedState::Unpublished,
            RecordedState::Pending,
        ] {
            assert_eq!(RecordedState::parse(&state.to_text()), Some(state));
        }
        assert_eq!(RecordedState::parse("cg_01h"), None);
    }
}
