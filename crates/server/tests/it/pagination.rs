//! Pagination during concurrent writes: no gaps and no repetitions.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use galley_testing::{TestStore, on_both_engines};
use serde_json::json;

use crate::service::Service;

const PIECES: usize = 300;

async fn filled(service: &Service) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..PIECES {
        ids.push(service.create("/content-pieces", &service.piece(&format!("p{number}"))).await);
    }
    ids
}

/// Inserts pieces until `stop` is set: after random pieces of `places`, or at the end.
fn keep_writing(
    service: &Arc<Service>,
    places: Option<Vec<String>>,
    stop: &Arc<AtomicBool>,
) -> tokio::task::JoinHandle<usize> {
    let (service, stop) = (Arc::clone(service), Arc::clone(stop));
    tokio::spawn(async move {
        let mut written = 0;
        while !stop.load(Ordering::Relaxed) {
            let mut body = service.piece(&format!("new{written}"));
            if let Some(places) = &places {
                body["referenceId"] = json!(places[written * 7_919 % places.len()]);
            }
            service.create("/content-pieces", &body).await;
            written += 1;
        }
        written
    })
}

#[track_caller]
fn assert_each_once(seen: &[String], ids: &[String]) {
    let distinct: HashSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "no piece is seen twice");
    for id in ids {
        assert!(distinct.contains(id), "{id} was passed over");
    }
}

#[on_both_engines]
async fn cursor_paging_sees_each_piece_once_during_inserts(store: TestStore) {
    let service = Arc::new(Service::start(store).await);
    let ids = filled(&service).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = keep_writing(&service, Some(ids.clone()), &stop);
    for _ in 0..3 {
        let (mut seen, mut last) = (Vec::new(), String::new());
        loop {
            let path = format!("/content-pieces/list?perPage=7&lastOrder={last}");
            let page = service.get(&path).await;
            let Some(order) = page.column("order").pop() else { break };
            seen.extend(page.column("id"));
            last = order;
        }
        assert_each_once(&seen, &ids);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0, "somebody wrote meanwhile");
}

#[on_both_engines]
async fn numbered_paging_sees_each_piece_once_during_appends(store: TestStore) {
    let service = Arc::new(Service::start(store).await);
    let ids = filled(&service).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = keep_writing(&service, None, &stop);
    let mut seen = Vec::new();
    for page in 1..=PIECES.div_ceil(7) {
        let path = format!("/content-pieces/list?perPage=7&page={page}");
        seen.extend(service.get(&path).await.column("id"));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0, "somebody wrote meanwhile");
    assert_each_once(&seen, &ids);
    assert_eq!(seen[..PIECES], ids);
}

#[on_both_engines]
async fn deep_pages_are_right_after_every_kind_of_change(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.create("/content-groups", &json!({"name": "Other"})).await;
    let mut number = 0;
    for _ in 0..27 {
        let pieces: Vec<_> = (0..100)
            .map(|_| {
                number += 1;
                // Every fourth piece is in another group.
                let group = if number % 4 == 0 { &other } else { &service.home.group };
                crate::service::piece_in(group, &format!("p{number}"))
            })
            .collect();
        assert_eq!(
            service.post("/content-pieces/batch", &json!({"pieces": pieces})).await.status,
            201
        );
    }
    let home = service.home.group.clone();
    let assert_right = async |what: &str| {
        for filter in [String::new(), format!("&contentGroupId={home}")] {
            for sort in ["order", "-order"] {
                let list = format!("/content-pieces/list?fields=id&sort={sort}{filter}");
                // Cursors are independent of page numbers.
                let mut all = Vec::new();
                let mut next = Some(format!("{list}&perPage=1000"));
                while let Some(path) = next {
                    let answer = service.get(&path).await;
                    all.extend(answer.column("id"));
                    next = answer.next_page();
                }
                for (page, size) in
                    [(1, 100), (21, 100), (27, 100), (101, 20), (135, 20), (2_010, 1), (9_999, 20)]
                {
                    let shown = service
                        .get(&format!("{list}&page={page}&perPage={size}"))
                        .await
                        .column("id");
                    let from = all.len().min((page - 1) * size);
                    let expected = &all[from..all.len().min(from + size)];
                    assert_eq!(shown, expected, "page {page} of {size}, {list}, {what}");
                }
            }
        }
    };
    assert_right("at first").await;
    let ids = service.get("/content-pieces/list?fields=id&perPage=1000&page=2").await.column("id");
    assert_right("nothing").await;
    let mut body = service.piece("at-the-front");
    body["referenceId"] = json!(null);
    service.create("/content-pieces", &service.piece("at-the-end")).await;
    service.create("/content-pieces", &body).await;
    assert_right("two more").await;
    let changes = [
        json!({"id": ids[3], "title": "New"}),
        json!({"id": ids[5], "referenceId": null}),
        json!({"id": ids[9], "referenceId": ids[901]}),
        json!({"id": ids[10], "contentGroupId": other}),
        json!({"id": ids[11], "contentGroupId": home}),
        json!({"id": ids[13], "contentGroupId": other, "referenceId": null}),
    ];
    for change in changes {
        assert_eq!(service.put("/content-pieces", &change).await.status, 204);
        assert_right(&change.to_string()).await;
    }
    for id in [&ids[100], &ids[999]] {
        assert_eq!(service.delete(&format!("/content-pieces?id={id}")).await.status, 204);
    }
    assert_right("two less").await;
    assert!(
        service
            .delete(&format!("/content-groups?id={other}&recursive=true"))
            .await
            .status
            .is_success()
    );
    assert_right("a group less").await;
}
