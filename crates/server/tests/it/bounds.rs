//! What all clients take together has a bound: connections, and the memory of what they send.

use std::time::Duration;

use galley_server::Limits;
use galley_testing::on_both_engines;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::Service;

/// A connection on which a request was answered, and how that began.
async fn connection(service: &Service) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let answer = some(&mut stream).await;
    (stream, answer)
}

/// What comes next.
async fn some(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 16 * 1024];
    let count = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut bytes)).await;
    String::from_utf8_lossy(&bytes[..count.unwrap().unwrap()]).into_owned()
}

on_both_engines! {
    async fn further_connections_are_told_to_come_again(store: TestStore) {
        let limits = Limits { connections_max: 3, ..Limits::default() };
        let service = Service::start_with(store, limits).await;
        let mut served = Vec::new();
        while served.len() < 3 {
            let (stream, answer) = connection(&service).await;
            // The service's own test client may have one of them for a moment.
            if answer.starts_with("HTTP/1.1 200 ") {
                served.push(stream);
            }
        }
        let (mut refused, answer) = connection(&service).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert!(answer.contains("\"reason\":\"overloaded\""), "{answer}");
        assert_eq!(some(&mut refused).await, "", "it is hung up on");
        // Who says nothing is not waited for.
        let mut silent = TcpStream::connect(&service.url[7..]).await.unwrap();
        assert_eq!(some(&mut silent).await, "");
        served.pop();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !connection(&service).await.1.starts_with("HTTP/1.1 200 ") {
            assert!(std::time::Instant::now() < deadline, "its place is free again");
        }
    }

    async fn bodies_take_so_much_together(store: TestStore) {
        let service = Service::start(store).await;
        let size = Limits::default().body_max;
        let head = |size: usize| format!(
            "POST /tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {size}\r\n\r\n",
            service.home.token
        );
        // Nearly as many as there is room for, each but for its last byte.
        let mut waiting = Vec::new();
        for _ in 0..8 {
            let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
            stream.write_all(head(size).as_bytes()).await.unwrap();
            stream.write_all(&vec![b' '; size - 1]).await.unwrap();
            waiting.push(stream);
        }
        // Its client may be done before all of it was read.
        let refused = async || {
            let label = "x".repeat(1_000_000);
            service.post("/tags", &json!({"label": label, "more": "is ignored"})).await
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let answer = loop {
            let answer = refused().await;
            if answer.status == 503 || std::time::Instant::now() > deadline {
                break answer;
            }
        };
        answer.assert_problem(503, "overloaded", &[]);
        assert!(answer.headers.contains_key("retry-after"));
        // What most send finds room.
        service.create("/tags", &json!({"label": "small"})).await;
        for mut stream in waiting {
            stream.write_all(b"x").await.unwrap();
            assert!(some(&mut stream).await.starts_with("HTTP/1.1 400 "));
        }
        refused().await.assert_problem(400, "validation", &["label"]);
    }

    async fn a_body_has_a_million_values(store: TestStore) {
        let service = Service::start(store).await;
        let send = async |values: usize| {
            let body = format!("{{\"label\":\"a\",\"more\":[{}0]}}", "0,".repeat(values - 1));
            let request = service.request(reqwest::Method::POST, "/tags");
            let request = request.bearer_auth(&service.home.token);
            let request = request.header("content-type", "application/json").body(body);
            crate::service::Answer::of(request).await
        };
        // Beside them the object, two names, a text and the list.
        assert_eq!(send(1_000_000 - 5).await.status, 201);
        let answer = send(1_000_000 - 4).await;
        answer.assert_problem(400, "malformed_body", &[]);
        assert!(answer.body["detail"].as_str().unwrap().contains("over 1000000 values"));
    }
}
