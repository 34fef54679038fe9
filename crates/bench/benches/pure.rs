//! Micro-benchmarks of work in memory that belongs to a request, a change or a delivery.
//!
//! ```sh
//! cargo bench -p galley-bench --bench pure [NAME]
//! ```
//!
//! The conversion of HTML to a tree is measured by `cargo bench -p galley-content`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use galley_delivery::signature;
use galley_domain::id::IdSequence;
use galley_domain::order_key::MovingNeighbour;
use galley_domain::{ContentPieceId, OrderKey, PermissionSet, Timestamp};

const NOW_MS: i64 = 1_800_000_000_000;

fn main() {
    divan::main();
}

/// Returns a pseudo-random number.
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(2_654_435_761)
}

#[divan::bench]
fn a_new_id_as_text(bencher: Bencher<'_, '_>) {
    let mut sequence = IdSequence::default();
    bencher.bench_local(|| ContentPieceId::new(sequence.next(black_box(NOW_MS), 7)).to_string());
}

#[divan::bench]
fn an_id_from_text(bencher: Bencher<'_, '_>) {
    let text = ContentPieceId::new(1 << 100).to_string();
    bencher.bench(|| black_box(&text).parse::<ContentPieceId>());
}

/// A thousand pieces, each placed after the previous one.
#[divan::bench]
fn order_keys_at_the_end() -> OrderKey {
    let next = |last: Option<OrderKey>, number| {
        Some(OrderKey::between(last.as_ref(), None, MovingNeighbour::Before, scattered(number)))
    };
    (0..1_000).fold(None, next).expect("there are some")
}

/// A thousand pieces, each placed directly after the first one.
#[divan::bench]
fn order_keys_at_one_place() -> OrderKey {
    let first = OrderKey::between(None, None, MovingNeighbour::Before, 0);
    let end = OrderKey::between(Some(&first), None, MovingNeighbour::Before, 0);
    let next = |last: OrderKey, number| {
        OrderKey::between(Some(&first), Some(&last), MovingNeighbour::After, scattered(number))
    };
    (0..1_000).fold(end, next)
}

#[divan::bench]
fn permissions_from_text(bencher: Bencher<'_, '_>) {
    let text = PermissionSet::ALL.to_string();
    bencher.bench(|| black_box(&text).parse::<PermissionSet>());
}

#[divan::bench]
fn a_time_as_text() -> String {
    Timestamp::from_ms(black_box(NOW_MS)).to_string()
}

#[divan::bench(args = [1_024, 65_536])]
fn a_signature(bencher: Bencher<'_, '_>, size: usize) {
    let (key, body) = ([7; 32], vec![b'a'; size]);
    bencher
        .counter(BytesCount::new(size))
        .bench(|| signature::sign(black_box(&key), "evt_1", 1_800_000_000, &body));
}
