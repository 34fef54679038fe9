//! Random steps.

use proptest::prelude::*;

/// A choice among several resources, resolved when the request is sent. It may also choose a
/// deleted or an unknown id.
pub(super) type Choice = u8;

/// The new position of a piece.
#[derive(Debug, Clone, Copy)]
pub(super) enum TargetPosition {
    Stays,
    Front,
    After(Choice),
}

/// The fields of a piece that a request contains.
#[derive(Debug, Clone)]
pub(super) struct PieceChange {
    pub(super) piece: Choice,
    pub(super) variant: Option<Choice>,
    pub(super) title: Option<Option<u8>>,
    pub(super) tags: Option<Option<Vec<Choice>>>,
    pub(super) group: Option<Choice>,
    pub(super) position: TargetPosition,
}

#[derive(Debug, Clone)]
pub(super) enum ModelStep {
    MakePiece { group: Choice, tags: Vec<Choice>, after: Option<Choice> },
    MakePieces { group: Choice, count: u8 },
    ChangePiece(PieceChange),
    InsertBetween { piece: Choice, count: u8 },
    RestoreRevision { piece: Choice, revision: Choice, only_title: bool },
    Publish { piece: Choice, revision: Option<Choice> },
    PublishGroup { group: Choice, subtree: bool },
    Unpublish { piece: Choice },
    Schedule { piece: Choice, revision: Option<Choice>, times: [Option<u8>; 2] },
    RunSchedules,
    DeletePiece { piece: Choice },
    Undelete { entry: Choice, group: Option<Choice> },
    Purge { entry: Choice },
    MakeGroup { parent: Option<Choice> },
    MoveGroup { group: Choice, parent: Option<Choice> },
    RenameGroup { group: Choice, name: u8 },
    DeleteGroup { group: Choice, recursive: bool },
    MakeTag { label: u8 },
    RenameTag { tag: Choice, label: u8 },
    DeleteTag { tag: Choice },
    MakeVariant { key: u8 },
    DeleteVariant { variant: Choice },
    MakeRole { name: u8 },
    DeleteRole { role: Choice },
    Invite { number: u8, role: Choice },
    ChangeRole { member: Choice, role: Choice },
    RemoveMember { member: Choice },
    MakeWebhook { event: u8, group: Option<Choice>, is_published: bool },
    EnableWebhook { webhook: Choice, enabled: bool },
    DeleteWebhook { webhook: Choice },
}

pub(super) fn step() -> impl Strategy<Value = ModelStep> {
    let pick = || any::<Choice>();
    let position = prop_oneof![
        3 => Just(TargetPosition::Stays),
        1 => Just(TargetPosition::Front),
        3 => pick().prop_map(TargetPosition::After),
    ];
    let tags = || prop::collection::vec(pick(), 0..3);
    let change = (
        pick(),
        prop::option::weighted(0.3, pick()),
        prop::option::of(prop::option::weighted(0.9, 0..6_u8)),
        prop::option::weighted(0.3, prop::option::weighted(0.9, tags())),
        prop::option::weighted(0.3, pick()),
        position,
    );
    prop_oneof![
        6 => (pick(), tags(), prop::option::of(pick()))
            .prop_map(|(group, tags, after)| ModelStep::MakePiece { group, tags, after }),
        1 => (pick(), 1..5_u8).prop_map(|(group, count)| ModelStep::MakePieces { group, count }),
        8 => change.prop_map(|(piece, variant, title, tags, group, position)| {
            ModelStep::ChangePiece(PieceChange { piece, variant, title, tags, group, position })
        }),
        3 => (pick(), pick(), any::<bool>()).prop_map(|(piece, revision, only_title)| {
            ModelStep::RestoreRevision { piece, revision, only_title }
        }),
        6 => (pick(), prop::option::weighted(0.3, pick()))
            .prop_map(|(piece, revision)| ModelStep::Publish { piece, revision }),
        1 => (pick(), any::<bool>())
            .prop_map(|(group, subtree)| ModelStep::PublishGroup { group, subtree }),
        2 => pick().prop_map(|piece| ModelStep::Unpublish { piece }),
        4 => (
            pick(),
            prop::option::weighted(0.3, pick()),
            [prop::option::weighted(0.8, 1..50_u8), prop::option::weighted(0.5, 1..50_u8)],
        ).prop_map(|(piece, revision, times)| ModelStep::Schedule { piece, revision, times }),
        1 => Just(ModelStep::RunSchedules),
        2 => pick().prop_map(|piece| ModelStep::DeletePiece { piece }),
        3 => (pick(), prop::option::weighted(0.3, pick()))
            .prop_map(|(entry, group)| ModelStep::Undelete { entry, group }),
        1 => pick().prop_map(|entry| ModelStep::Purge { entry }),
        1 => prop::option::weighted(0.1, (pick(), 60..120_u8)).prop_map(|inserts| {
            let (piece, count) = inserts.unwrap_or_default();
            ModelStep::InsertBetween { piece, count }
        }),
        3 => prop::option::weighted(0.7, pick()).prop_map(|parent| ModelStep::MakeGroup { parent }),
        3 => (pick(), prop::option::weighted(0.8, pick()))
            .prop_map(|(group, parent)| ModelStep::MoveGroup { group, parent }),
        1 => (pick(), 0..4_u8).prop_map(|(group, name)| ModelStep::RenameGroup { group, name }),
        1 => (pick(), any::<bool>())
            .prop_map(|(group, recursive)| ModelStep::DeleteGroup { group, recursive }),
        2 => (0..5_u8).prop_map(|label| ModelStep::MakeTag { label }),
        1 => (pick(), 0..5_u8).prop_map(|(tag, label)| ModelStep::RenameTag { tag, label }),
        1 => pick().prop_map(|tag| ModelStep::DeleteTag { tag }),
        1 => (0..4_u8).prop_map(|key| ModelStep::MakeVariant { key }),
        1 => pick().prop_map(|variant| ModelStep::DeleteVariant { variant }),
        1 => (0..4_u8).prop_map(|name| ModelStep::MakeRole { name }),
        1 => pick().prop_map(|role| ModelStep::DeleteRole { role }),
        1 => (0..6_u8, pick()).prop_map(|(number, role)| ModelStep::Invite { number, role }),
        1 => (pick(), pick()).prop_map(|(member, role)| ModelStep::ChangeRole { member, role }),
        1 => pick().prop_map(|member| ModelStep::RemoveMember { member }),
        1 => (any::<u8>(), prop::option::weighted(0.9, pick()), any::<bool>()).prop_map(
            |(event, group, is_published)| ModelStep::MakeWebhook { event, group, is_published }
        ),
        1 => (pick(), any::<bool>())
            .prop_map(|(webhook, enabled)| ModelStep::EnableWebhook { webhook, enabled }),
        1 => pick().prop_map(|webhook| ModelStep::DeleteWebhook { webhook }),
    ]
}
