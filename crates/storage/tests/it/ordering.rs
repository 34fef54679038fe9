//! Long order keys are spread out in slices. The order is preserved after each slice.

use galley_domain::content_piece::{ContentPiece, CustomData, Description};
use galley_domain::{ContentPieceId, OrderKey};
use galley_storage::order_key_spread::{self, SpreadPlan};
use galley_storage::ordering::{self, OrderedPiece};
use galley_storage::{Error, Tx, WriteTx, content_pieces};
use galley_testing::{TestStore, on_both_engines};

use crate::store::{NOW, OpenStore};

/// The most pieces that a transaction may move, and the most bytes that it may write for them.
const SLICE_PIECES_LIMIT: usize = 256;
const SLICE_BYTES_LIMIT: usize = 1024 * 1024;

/// A deterministic number generator.
struct NumberSequence(u32);

impl NumberSequence {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

impl OpenStore {
    async fn insert_at(&self, order: OrderKey, description: Option<&str>) -> ContentPieceId {
        let mut piece = self.piece("p", None);
        piece.order = order;
        piece.fields.description = description.map(Description::from_stored);
        piece.fields.custom_data = Some(CustomData::from_stored("{\"a\":1}"));
        let (workspace, made) = (self.workspace, piece.id);
        let write =
            async move |tx: &WriteTx<'_>| content_pieces::insert(tx, workspace, &piece, "{}").await;
        self.database.write::<_, Error, _>("insert", write).await.unwrap();
        made
    }

    /// Chooses a key between two neighbours, as an insert does.
    async fn choose_after(&self, before: &OrderedPiece, random: u32) -> Result<OrderKey, Error> {
        let (workspace, before) = (self.workspace, before.clone());
        let write = async move |tx: &WriteTx<'_>| {
            ordering::lock(tx, workspace).await?;
            ordering::after(tx, workspace, &before, random).await
        };
        self.database.write::<_, Error, _>("choose", write).await
    }

    async fn in_order(&self) -> Vec<(ContentPieceId, String)> {
        let workspace = self.workspace;
        let read = async move |tx: &Tx<'_>| {
            let sql = "SELECT id, order_key FROM content_pieces WHERE workspace_id = ?1
                ORDER BY order_key";
            let read = |row: &galley_storage::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            tx.query(sql, &[workspace.into()], read).await
        };
        self.database.read_long::<_, Error, _>("in order", read).await.unwrap()
    }

    async fn plan(&self) -> Option<SpreadPlan> {
        let read = async |tx: &Tx<'_>| order_key_spread::pending_spreads(tx, None).await;
        let pending = self.database.read::<_, Error, _>("pending", read).await.unwrap();
        let pending = pending.into_iter().next()?;
        assert_eq!(pending.workspace, self.workspace);
        let around = pending.unplanned?;
        let workspace = self.workspace;
        let plan = async move |tx: &Tx<'_>| {
            let mut numbers = NumberSequence(7);
            order_key_spread::plan_spread(tx, workspace, &around, || {
                numbers.next().wrapping_mul(509)
            })
            .await
        };
        Some(self.database.read_long::<_, Error, _>("plan", plan).await.unwrap())
    }

    async fn slice(&self, plan: Option<SpreadPlan>) -> Option<Vec<ContentPiece>> {
        let workspace = self.workspace;
        let write = async move |tx: &WriteTx<'_>| {
            order_key_spread::spread_slice(tx, workspace, plan.as_ref()).await
        };
        let moved = self.database.write::<_, Error, _>("slice", write).await.unwrap();
        moved.map(|moved| moved.current)
    }

    async fn pending(&self) -> usize {
        let read = async |tx: &Tx<'_>| order_key_spread::pending_spreads(tx, None).await;
        self.database.read::<_, Error, _>("pending", read).await.unwrap().len()
    }
}

/// Returns keys of nearly the maximum length, each directly after the previous one.
fn nested(count: usize) -> Vec<OrderKey> {
    let deep = "0000100001".repeat(24) + "00001";
    let key = |number: usize| OrderKey::from_stored(format!("{deep}{number:05}"));
    (1..=count).map(key).collect()
}

#[on_both_engines]
async fn long_keys_are_spread_out_in_small_slices(store: TestStore) {
    let open = OpenStore::new(store).await;
    let mut expected = vec![open.insert_at(OrderKey::from_stored("00000zzzzz"), None).await];
    let description = "x".repeat(10_000);
    for order in nested(600) {
        expected.push(open.insert_at(order, Some(&description)).await);
    }
    expected.push(open.insert_at(OrderKey::from_stored("00002"), None).await);
    let crowded = open.in_order().await;
    assert!(crowded.iter().map(|(id, _)| id).eq(&expected));
    let (last_of_nest, order) = crowded[300].clone();
    let last =
        OrderedPiece { id: last_of_nest, order: OrderKey::from_stored(order), placed_at: NOW };
    // This schedules a spread, and returns a long key meanwhile.
    assert!(open.choose_after(&last, 1).await.unwrap().as_str().len() > 200);
    let plan = open.plan().await.expect("the place is noted");
    let mut moved = 0;
    let mut inserted = 0;
    while let Some(slice) = open.slice(Some(plan.clone())).await {
        let bytes: usize = slice
            .iter()
            .map(|piece| {
                assert_eq!(piece.fields.custom_data, None, "it is not loaded");
                piece.fields.description.as_ref().map_or(0, |text| text.as_str().len())
            })
            .sum();
        assert!(
            slice.len() <= SLICE_PIECES_LIMIT && bytes <= SLICE_BYTES_LIMIT,
            "{}, {bytes}",
            slice.len()
        );
        moved += slice.len();
        let now = open.in_order().await;
        assert!(now.iter().map(|(id, _)| id).eq(&expected), "out of order after {moved}");
        // Inserts during the spread keep their positions.
        if inserted < 20 {
            let place = inserted * 29 % (now.len() - 1);
            let (id, order) = now[place].clone();
            let before = OrderedPiece { id, order: OrderKey::from_stored(order), placed_at: NOW };
            let order = open.choose_after(&before, 5).await.unwrap();
            expected.insert(place + 1, open.insert_at(order, None).await);
            inserted += 1;
        }
    }
    assert!(moved >= 600, "{moved}");
    // Keys that became long during the spread are spread out after it.
    for _ in 0..20 {
        let Some(plan) = open.plan().await else { break };
        while open.slice(Some(plan.clone())).await.is_some() {}
    }
    assert_eq!(open.pending().await, 0);
    let now = open.in_order().await;
    assert!(now.iter().map(|(id, _)| id).eq(&expected));
    let longest = now.iter().map(|(_, order)| order.len()).max().unwrap();
    assert!(longest <= 64, "{longest}");
}

#[on_both_engines]
async fn keys_over_the_maximum_length_are_rejected(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (deep, next) = ("00001".repeat(51), "00001".repeat(50) + "00002");
    let id = open.insert_at(OrderKey::from_stored(deep.clone()), None).await;
    open.insert_at(OrderKey::from_stored(next), None).await;
    let before = OrderedPiece { id, order: OrderKey::from_stored(deep), placed_at: NOW };
    let chosen = open.choose_after(&before, 0).await;
    assert!(matches!(chosen, Err(Error::KeySpaceExhausted(..))), "{chosen:?}");
    // The spread is scheduled all the same, and short keys are available after it.
    assert_eq!(open.pending().await, 1);
    let plan = open.plan().await;
    while open.slice(plan.clone()).await.is_some() {}
    let (id, order) = open.in_order().await.swap_remove(0);
    let before = OrderedPiece { id, order: OrderKey::from_stored(order), placed_at: NOW };
    assert!(open.choose_after(&before, 0).await.unwrap().as_str().len() <= 64);
}

#[on_both_engines]
async fn keys_stay_short_under_adversarial_inserts(store: TestStore) {
    let open = OpenStore::new(store).await;
    let mut numbers = NumberSequence(11);
    let place = |id, order: &OrderKey| OrderedPiece { id, order: order.clone(), placed_at: NOW };
    let first = OrderKey::from_stored("V0000");
    let mut before = place(open.insert_at(first.clone(), None).await, &first);
    open.insert_at(OrderKey::from_stored("V0001"), None).await;
    let (mut longest, mut moved) = (0, 0);
    for round in 0..1_200 {
        let order = open.choose_after(&before, numbers.next() % 2).await.unwrap();
        longest = longest.max(order.as_str().len());
        let made = open.insert_at(order.clone(), None).await;
        if round % 2 == 0 {
            before = place(made, &order);
        }
        // This represents a worker that runs after each tenth insert only.
        if round % 10 == 0 {
            let plan = open.plan().await;
            while let Some(slice) = open.slice(plan.clone()).await {
                moved += slice.len();
                if let Some(piece) = slice.iter().find(|piece| piece.id == before.id) {
                    before.order = piece.order.clone();
                }
            }
        }
    }
    assert!(longest < 256, "{longest}");
    assert!(moved < 1_200 * 60, "{moved} pieces were moved for 1,200");
}
