//! Walking a list while others write: no gap, no repeat.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use galley_testing::on_both_engines;
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

/// Inserts pieces until told to stop: after random ones of `places`, or at the end.
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

on_both_engines! {
    async fn a_cursor_walk_sees_each_once_while_others_insert_anywhere(store: TestStore) {
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

    async fn a_page_walk_sees_each_once_while_others_append(store: TestStore) {
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
}
