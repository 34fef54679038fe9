use super::*;

const NOW: Timestamp = Timestamp::from_ms(1_000_000);

fn job(webhook: u128, payload: u32) -> DeliveryJob<u32> {
    let until = after(NOW, Duration::from_mins(1));
    DeliveryJob {
        webhook: WebhookId::new(webhook),
        slots: 2,
        is_failing: false,
        lease_until: until,
        payload,
    }
}

fn begun(actions: &[Action<u32, u32>]) -> Vec<u32> {
    let payload = |action: &Action<u32, u32>| match action {
        Action::Attempt(job) => Some(job.payload),
        _ => None,
    };
    actions.iter().filter_map(payload).collect()
}

fn store_request_in(actions: &[Action<u32, u32>]) -> Option<StoreRequest<u32>> {
    actions.iter().find_map(|action| match action {
        Action::StoreRequest(ask) => Some(ask.clone()),
        _ => None,
    })
}

#[test]
fn queues_are_served_round_robin_within_their_slots() {
    let mut dispatcher = Dispatcher::new(DispatcherLimits::default(), NOW);
    assert!(store_request_in(&dispatcher.next_actions(NOW)).is_some(), "it asks at once");
    assert_eq!(dispatcher.next_actions(NOW), [], "and not twice");
    let jobs = vec![job(1, 10), job(1, 11), job(1, 12), job(1, 13), job(2, 20), job(3, 30)];
    dispatcher.store_responded(jobs, Vec::new(), false, NOW);
    assert_eq!(begun(&dispatcher.next_actions(NOW)), [10, 20, 30, 11]);
    dispatcher.attempt_ended(WebhookId::new(1), false, 10, NOW);
    assert_eq!(begun(&dispatcher.next_actions(NOW)), [0; 0], "what came of it is not kept yet");
    dispatcher.store_responded(Vec::new(), Vec::new(), false, NOW);
    let later = after(NOW, Duration::from_millis(2));
    assert!(store_request_in(&dispatcher.next_actions(later)).is_some());
    dispatcher.store_responded(Vec::new(), Vec::new(), false, later);
    assert_eq!(begun(&dispatcher.next_actions(later)), [12]);
}

#[test]
fn results_are_recorded_together_when_the_store_is_free() {
    let mut dispatcher = Dispatcher::new(DispatcherLimits::default(), NOW);
    let first = store_request_in(&dispatcher.next_actions(NOW)).unwrap();
    assert_eq!(first.attempt_results, [0; 0]);
    dispatcher.store_responded(vec![job(1, 1), job(1, 2)], Vec::new(), true, NOW);
    assert!(store_request_in(&dispatcher.next_actions(NOW)).is_some(), "there may be more");
    for payload in [1, 2] {
        dispatcher.attempt_ended(WebhookId::new(1), false, payload, NOW);
        assert_eq!(store_request_in(&dispatcher.next_actions(NOW)), None, "the store is busy");
    }
    dispatcher.store_responded(Vec::new(), Vec::new(), false, NOW);
    let ask = store_request_in(&dispatcher.next_actions(NOW)).unwrap();
    assert_eq!(ask.attempt_results, [1, 2]);
    dispatcher.store_failed(ask, NOW);
    assert_eq!(
        store_request_in(&dispatcher.next_actions(NOW)),
        None,
        "it is left alone for a while"
    );
    let again =
        store_request_in(&dispatcher.next_actions(after(NOW, Duration::from_secs(1)))).unwrap();
    assert_eq!(again.attempt_results, [1, 2], "nothing is forgotten");
}

#[test]
fn results_are_batched_while_most_attempts_are_under_way() {
    let mut dispatcher = Dispatcher::new(DispatcherLimits::default(), NOW);
    dispatcher.next_actions(NOW);
    let jobs: Vec<_> = (0..6).map(|number| job(number.into(), number)).collect();
    dispatcher.store_responded(jobs, Vec::new(), false, NOW);
    dispatcher.next_actions(NOW);
    dispatcher.store_responded(Vec::new(), Vec::new(), false, NOW);
    dispatcher.attempt_ended(WebhookId::new(0), false, 0, NOW);
    assert_eq!(store_request_in(&dispatcher.next_actions(NOW)), None, "five are still under way");
    let later = after(NOW, Duration::from_millis(2));
    assert_eq!(dispatcher.wake_at(), Some(later));
    assert_eq!(store_request_in(&dispatcher.next_actions(later)).unwrap().attempt_results, [0]);
    dispatcher.store_responded(Vec::new(), Vec::new(), false, later);
    for number in 1..4_u32 {
        dispatcher.attempt_ended(WebhookId::new(number.into()), false, number, later);
    }
    assert_eq!(
        store_request_in(&dispatcher.next_actions(later)).unwrap().attempt_results,
        [1, 2, 3],
        "most are over"
    );
}

#[test]
fn the_time_to_batch_results_is_limited() {
    let mut dispatcher = Dispatcher::new(DispatcherLimits::default(), NOW);
    dispatcher.next_actions(NOW);
    let jobs: Vec<_> = (0..100).map(|number| job(number.into(), number)).collect();
    dispatcher.store_responded(jobs, Vec::new(), false, NOW);
    while dispatcher.can_begin_more() {
        dispatcher.next_actions(NOW);
    }
    for number in 0..25_u32 {
        let now = after(NOW, Duration::from_millis(number.into()));
        dispatcher.attempt_ended(WebhookId::new(number.into()), false, number, now);
        assert_eq!(
            store_request_in(&dispatcher.next_actions(now)),
            None,
            "{number}: another comes soon"
        );
    }
    let end = after(NOW, Duration::from_millis(25));
    assert_eq!(store_request_in(&dispatcher.next_actions(end)).unwrap().attempt_results.len(), 25);
}

#[test]
fn attempts_with_unrecorded_results_count_as_under_way() {
    let mut dispatcher = Dispatcher::new(DispatcherLimits::default(), NOW);
    dispatcher.next_actions(NOW);
    dispatcher.store_responded(vec![job(1, 1), job(1, 2), job(1, 3)], Vec::new(), false, NOW);
    assert_eq!(begun(&dispatcher.next_actions(NOW)), [1, 2]);
    dispatcher.store_responded(Vec::new(), Vec::new(), false, NOW);
    for payload in [1, 2] {
        dispatcher.attempt_ended(WebhookId::new(1), false, payload, NOW);
    }
    assert_eq!(store_request_in(&dispatcher.next_actions(NOW)).unwrap().attempt_results, [1, 2]);
    dispatcher.store_responded(Vec::new(), vec![(WebhookId::new(1), 2)], true, NOW);
    let actions = dispatcher.next_actions(NOW);
    assert_eq!(
        (begun(&actions), store_request_in(&actions).unwrap().attempt_results),
        (vec![3], vec![2])
    );
}

#[test]
fn failing_receivers_leave_capacity_for_healthy_ones() {
    let limits = DispatcherLimits {
        attempts_max: 4,
        failing_attempts_max: 2,
        ..DispatcherLimits::default()
    };
    let mut dispatcher: Dispatcher<u32, u32> = Dispatcher::new(limits, NOW);
    dispatcher.next_actions(NOW);
    let failing = |webhook, payload| DeliveryJob { is_failing: true, ..job(webhook, payload) };
    let jobs = vec![failing(1, 10), failing(2, 20), failing(3, 30), failing(4, 40), job(5, 50)];
    dispatcher.store_responded(jobs, Vec::new(), false, NOW);
    assert_eq!(begun(&dispatcher.next_actions(NOW)), [10, 20, 50]);
    dispatcher.attempt_ended(WebhookId::new(1), true, 10, NOW);
    let later = after(NOW, Duration::from_millis(2));
    for expected in [&[0; 0][..], &[30]] {
        dispatcher.store_responded(Vec::new(), Vec::new(), false, later);
        assert_eq!(begun(&dispatcher.next_actions(later)), expected);
    }
}

#[test]
fn deliveries_near_the_end_of_their_lease_are_released() {
    let mut dispatcher: Dispatcher<u32, u32> = Dispatcher::new(DispatcherLimits::default(), NOW);
    dispatcher.next_actions(NOW);
    dispatcher.store_responded(vec![job(1, 1), job(1, 2)], Vec::new(), false, NOW);
    let later = after(NOW, Duration::from_secs(41));
    let actions = dispatcher.next_actions(later);
    assert_eq!(begun(&actions), [0; 0]);
    assert!(actions.contains(&Action::Release(vec![1, 2])), "{actions:?}");
}

#[test]
fn stopping_records_attempts_under_way_and_releases_the_rest() {
    let mut dispatcher: Dispatcher<u32, u32> = Dispatcher::new(DispatcherLimits::default(), NOW);
    dispatcher.next_actions(NOW);
    dispatcher.store_responded(vec![job(1, 1), job(1, 2), job(1, 3)], Vec::new(), false, NOW);
    assert_eq!(begun(&dispatcher.next_actions(NOW)), [1, 2]);
    dispatcher.store_responded(Vec::new(), Vec::new(), false, NOW);
    dispatcher.stop();
    assert_eq!(dispatcher.next_actions(NOW), [Action::Release(vec![3])]);
    dispatcher.attempt_ended(WebhookId::new(1), false, 1, NOW);
    dispatcher.attempt_ended(WebhookId::new(1), false, 2, NOW);
    assert!(!dispatcher.has_stopped());
    let ask = store_request_in(&dispatcher.next_actions(NOW)).unwrap();
    assert_eq!((ask.attempt_results, ask.claim_max), (vec![1, 2], 0));
    dispatcher.store_responded(Vec::new(), Vec::new(), false, NOW);
    assert!(dispatcher.has_stopped());
}
