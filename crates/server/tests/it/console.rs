//! The addresses of the web console, with the files of a build and without.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use galley_server::{ConsoleFiles, ServerLimits};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;

use crate::service::{Service, TestResponse};

const PAGE: &str = "<!doctype html><div id=\"app\"></div>";

const SCRIPT: &str = "console.log(1);";

async fn get(service: &Service, path: &str) -> TestResponse {
    TestResponse::of(service.request(Method::GET, path)).await
}

/// Compresses a file as the build of the console does.
fn compressed(text: &str) -> &'static [u8] {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().leak()
}

#[on_both_engines]
async fn every_address_of_the_console_has_its_page(store: TestStore) {
    let files = [
        ("index.html", compressed(PAGE)),
        ("assets/index-a1.js", compressed(SCRIPT)),
        ("assets/icon.svg", compressed("<svg xmlns=\"http://www.w3.org/2000/svg\"/>")),
    ];
    let limits = ServerLimits { console: ConsoleFiles::new(&files), ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    for path in
        ["/", "/console", "/console/", "/console/ws_1", "/console/ws_1/pieces/cp_1?variant=de"]
    {
        let answer = get(&service, path).await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, Some(PAGE)), "{path}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        let policy = answer.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "style-src 'self';",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!answer.header("cache-control").contains("max-age"), "{answer:?}");
    }
    let script = get(&service, "/console/assets/index-a1.js").await;
    assert_eq!((script.status.as_u16(), script.body.as_str()), (200, Some(SCRIPT)));
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(script.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(script.header("x-content-type-options"), "nosniff");
    let request = service.request(Method::GET, "/console/assets/index-a1.js");
    let gzipped = request.header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(gzipped.headers()["content-encoding"], "gzip");
    assert_eq!(gzipped.headers()["vary"], "accept-encoding");
    assert_eq!(gzipped.bytes().await.unwrap(), compressed(SCRIPT));
    assert_eq!(
        get(&service, "/console/assets/icon.svg").await.header("content-type"),
        "image/svg+xml"
    );
    for path in
        ["/console/assets/none.js", "/console/assets/..%2findex.html", "/consoles", "/index.html"]
    {
        get(&service, path).await.assert_problem(404, "not_found", &[]);
    }
    let post = service.request(Method::POST, "/console/ws_1");
    TestResponse::of(post).await.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn a_build_without_the_console_says_so(store: TestStore) {
    let service = Service::start(store).await;
    for path in ["/", "/console", "/console/ws_1"] {
        let answer = get(&service, path).await;
        assert_eq!(answer.status, 200);
        assert!(
            answer.body.as_str().unwrap().contains("This build has no web console"),
            "{answer:?}"
        );
    }
}
