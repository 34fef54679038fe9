//! The pages for humans: `/docs` and `/problems`.

use std::io::Read as _;

use flate2::read::GzDecoder;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;

use crate::response_validation::DOCUMENT;
use crate::service::{Service, TestResponse};

async fn open(service: &Service, path: &str) -> TestResponse {
    TestResponse::of(service.request(Method::GET, path)).await
}

/// Returns the values of the attributes `href` and `src`.
fn links(html: &str) -> Vec<String> {
    let parts = html.split(['"', '>']).collect::<Vec<_>>();
    let pairs =
        parts.windows(2).filter(|pair| pair[0].ends_with("href=") || pair[0].ends_with("src="));
    pairs.map(|pair| pair[1].to_owned()).collect()
}

#[on_both_engines]
async fn the_docs_load_nothing_from_other_hosts(store: TestStore) {
    let service = Service::start(store).await;
    for path in ["/docs", "/docs/"] {
        let page = open(&service, path).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("http") && !policy.contains("unsafe-eval"), "{policy}");
        let html = page.body.as_str().unwrap();
        assert!(html.contains("<title>Galley API</title>") && html.contains("name=\"viewport\""));
        let links = links(html);
        assert_eq!(links.len(), 5, "{links:?}");
        for link in links {
            assert!(link.starts_with('/') && !link.starts_with("//"), "{link}");
            let file = open(&service, &link).await;
            assert_eq!(file.status, 200, "{link}");
            let kind = match link.rsplit('.').next().unwrap() {
                "js" => "text/javascript; charset=utf-8",
                "css" => "text/css; charset=utf-8",
                "svg" => "image/svg+xml",
                _ => "application/json",
            };
            assert_eq!(file.header("content-type"), kind, "{link}");
            if link.starts_with("/docs/") {
                assert_eq!(file.header("cache-control"), "public, max-age=3600");
                let again = service.request(Method::GET, &link);
                let again = again.header("if-none-match", file.header("etag"));
                assert_eq!(TestResponse::of(again).await.status, 304, "{link}");
            }
        }
    }
    let script = open(&service, "/docs/page.js").await;
    assert!(script.body.as_str().unwrap().contains("fetch(\"/openapi.json\")"));
    let licence = open(&service, "/docs/LICENSE").await;
    assert!(licence.body.as_str().unwrap().contains("Scalar"));
    for none in ["/docs/none", "/docs/..%2FCargo.toml", "/docs/%FF", "/docs/index.html"] {
        open(&service, none).await.assert_problem(404, "not_found", &[]);
    }
}

#[on_both_engines]
async fn the_script_of_the_docs_is_compressed_for_clients_that_accept_gzip(store: TestStore) {
    let service = Service::start(store).await;
    let mut scripts = Vec::new();
    for (accepted, coding) in [
        ("gzip, deflate", Some("gzip")),
        ("br;q=0.5, GZIP;q=1", Some("gzip")),
        ("*", Some("gzip")),
        ("gzip;q=0", None),
        ("gzip;Q= 0.000, *", None),
        ("identity", None),
    ] {
        let request = service.request(Method::GET, "/docs/scalar.js");
        let response = request.header("accept-encoding", accepted).send().await.unwrap();
        let headers = response.headers();
        let found = headers.get("content-encoding").map(|coding| coding.to_str().unwrap());
        assert_eq!(found, coding, "{accepted}");
        assert_eq!(headers["vary"], "accept-encoding", "{accepted}");
        let bytes = response.bytes().await.unwrap();
        let mut script = Vec::new();
        match coding {
            Some(_) => GzDecoder::new(&*bytes).read_to_end(&mut script).unwrap(),
            None => (&*bytes).read_to_end(&mut script).unwrap(),
        };
        scripts.push(script);
    }
    scripts.dedup();
    assert_eq!(scripts.len(), 1);
    assert!(scripts[0].windows(18).any(|part| part == b"createApiReference"));
}

#[on_both_engines]
async fn every_problem_type_links_to_its_page(store: TestStore) {
    let service = Service::start(store).await;
    let list = open(&service, "/problems").await;
    let listed: Vec<String> = links(list.body.as_str().unwrap())
        .into_iter()
        .filter(|link| link.starts_with("/problems/"))
        .collect();
    assert!(listed.len() > 15, "{listed:?}");
    for link in &listed {
        let page = open(&service, link).await;
        assert_eq!(page.status, 200, "{link}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        let html = page.body.as_str().unwrap();
        let heading = |text: &str| html.contains(&format!("<h2>{text}</h2>\n<p>"));
        assert!(heading("What it means") && heading("What to do"), "{html}");
        assert!(html.contains("<html lang=\"en\">") && html.contains("name=\"viewport\""));
    }
    // Every response's reason is checked against the document, so its examples contain all
    // reasons.
    for response in DOCUMENT["components"]["responses"].as_object().unwrap().values() {
        let examples = &response["content"]["application/problem+json"]["examples"];
        for (reason, example) in examples.as_object().unwrap() {
            let page = example["value"]["type"].as_str().unwrap().to_owned();
            assert!(listed.contains(&page), "{reason}: {page}");
        }
    }
    for request in [(Method::GET, "/tags"), (Method::PATCH, "/tags"), (Method::GET, "/none")] {
        let problem = service.send(request.0, request.1, None).await;
        let page = problem.body["type"].as_str().unwrap().to_owned();
        assert!(listed.contains(&page), "{page}");
    }
    for none in ["/problems/none", "/problems/%FF", "/problems/NOT_FOUND"] {
        open(&service, none).await.assert_problem(404, "not_found", &[]);
    }
}
