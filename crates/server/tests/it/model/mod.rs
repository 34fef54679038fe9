//! Random requests in sequence, on both engines, compared with an in-memory model. The model
//! predicts each response, the resulting state, and the events that webhooks and limited tokens
//! see.
//!
//! A failing sequence is shrunk to a minimal one and printed.

mod check;
mod content_groups;
mod content_pieces;
mod members_and_roles;
mod publishing;
mod revisions;
mod searches;
mod steps;
mod tags_and_variants;
mod trash;
mod webhooks;
mod workspace;

use std::time::Duration;

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::RngExt;

use self::steps::{ModelStep, step};
use self::workspace::{CheckResult, WorkspaceModel};
use crate::service::Service;

/// The most requests of a sequence.
const STEPS_LIMIT: usize = 120;

/// The longest time until events become deliveries.
const FAN_OUT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time until due schedules have run.
const SCHEDULES_TIMEOUT: Duration = Duration::from_secs(30);

async fn run(service: &Service, steps: &[ModelStep]) -> CheckResult {
    let mut model = WorkspaceModel::new(service).await;
    for (number, step) in steps.iter().enumerate() {
        model.switch_token();
        take(&mut model, step).await?;
        if model.has_long_keys {
            model.follow_spreads().await?;
        }
        if number % 40 == 39 {
            model.check().await?;
        }
    }
    model.check().await
}

/// Sends the request of a step, and applies its effect to the model.
async fn take(model: &mut WorkspaceModel<'_>, step: &ModelStep) -> CheckResult {
    match step {
        ModelStep::MakePiece { group, tags, after } => model.make_piece(*group, tags, *after).await,
        ModelStep::MakePieces { group, count } => model.make_pieces(*group, *count).await,
        ModelStep::ChangePiece(change) => model.change_piece(change).await,
        ModelStep::InsertBetween { piece, count } => model.insert_between(*piece, *count).await,
        ModelStep::RestoreRevision { piece, revision, only_title } => {
            model.restore_revision(*piece, *revision, *only_title).await
        }
        ModelStep::Publish { piece, revision } => model.publish(*piece, *revision).await,
        ModelStep::PublishGroup { group, subtree } => model.publish_group(*group, *subtree).await,
        ModelStep::Unpublish { piece } => model.unpublish(*piece).await,
        ModelStep::Schedule { piece, revision, times } => {
            model.schedule(*piece, *revision, *times).await
        }
        ModelStep::RunSchedules => model.run_schedules().await,
        ModelStep::DeletePiece { piece } => model.delete_piece(*piece).await,
        ModelStep::Undelete { entry, group } => model.undelete(*entry, *group).await,
        ModelStep::Purge { entry } => model.purge(*entry).await,
        ModelStep::MakeGroup { parent } => model.make_group(*parent).await,
        ModelStep::MoveGroup { group, parent } => model.move_group(*group, *parent).await,
        ModelStep::RenameGroup { group, name } => model.rename_group(*group, *name).await,
        ModelStep::DeleteGroup { group, recursive } => model.delete_group(*group, *recursive).await,
        ModelStep::MakeTag { label } => model.make_tag(*label).await,
        ModelStep::RenameTag { tag, label } => model.rename_tag(*tag, *label).await,
        ModelStep::DeleteTag { tag } => model.delete_tag(*tag).await,
        ModelStep::MakeVariant { key } => model.make_variant(*key).await,
        ModelStep::DeleteVariant { variant } => model.delete_variant(*variant).await,
        ModelStep::MakeRole { name } => model.make_role(*name).await,
        ModelStep::DeleteRole { role } => model.delete_role(*role).await,
        ModelStep::Invite { number, role } => model.invite(*number, *role).await,
        ModelStep::ChangeRole { member, role } => model.change_role(*member, *role).await,
        ModelStep::RemoveMember { member } => model.remove_member(*member).await,
        ModelStep::MakeWebhook { event, group, is_published } => {
            model.make_webhook(*event, *group, *is_published).await
        }
        ModelStep::EnableWebhook { webhook, enabled } => {
            model.enable_webhook(*webhook, *enabled).await
        }
        ModelStep::DeleteWebhook { webhook } => model.delete_webhook(*webhook).await,
    }
}

#[on_both_engines]
async fn random_requests_match_the_model(store: TestStore) {
    let engine = store.engine();
    let limits = galley_server::ServerLimits { invites_per_hour: 1_000_000, ..Default::default() };
    let service = Service::start_with(store, limits).await;
    let wanted: usize = size(600, 3_000, 1_000_000);
    let number: u64 = std::env::var("GALLEY_TEST_SEED")
        .map_or_else(|_| rand::rng().random(), |text| text.parse().unwrap());
    eprintln!("{engine}: GALLEY_TEST_SEED={number}");
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let config = Config { failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = prop::collection::vec(step(), 1..=STEPS_LIMIT);
    let handle = tokio::runtime::Handle::current();
    let attempt = |sequence: Vec<ModelStep>| {
        tokio::task::block_in_place(|| handle.block_on(run(&service, &sequence)))
    };
    let (mut steps, mut sequences) = (0, 0);
    while steps < wanted {
        let tree = strategy.new_tree(&mut runner).unwrap();
        steps += tree.current().len();
        sequences += 1;
        if let Err(error) = runner.run_one(tree, attempt) {
            panic!("GALLEY_TEST_SEED={number}: {error:#}");
        }
    }
    let found = format!("{steps} steps in {sequences} sequences as the model says, seed {number}");
    eprintln!("{engine}: {found}");
    let condition = format!("{engine}: random requests compared with a model");
    report_figure(&condition, found, "0 differences");
}
