//! The alerts and the dashboard for Prometheus: a real Prometheus evaluates them while a server has
//! the problems that they report.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use galley_testing::{Behaviour, Receiver, TestStore, report_skipped};
use regex::Regex;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use url::Url;

use crate::full_disk::may_mount;
use crate::mails::{MailServer, invite};
use crate::program::{Program, data_dir, free_port, galley, init_token, piece, under};

/// The time within which an alert must fire.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A Prometheus that scrapes a server each second. It stops when it is dropped.
struct Prometheus {
    child: Child,
    url: String,
    client: Client,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    async fn start(program: &Path, directory: &Path, target: &str) -> Self {
        let rules = fs::read_to_string(deployed("prometheus-alerts.yaml")).unwrap();
        fs::write(directory.join("alerts.yaml"), shortened(&rules)).unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [alerts.yaml]\n\
             scrape_configs: [{{job_name: galley, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        let file = directory.join("prometheus.yaml");
        fs::write(&file, config).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let prometheus = Self { child, url: format!("http://{address}"), client };
        let started = Instant::now();
        while prometheus.client.get(format!("{}/-/ready", prometheus.url)).send().await.is_err() {
            assert!(started.elapsed() < TIMEOUT, "Prometheus does not start");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        prometheus
    }

    /// Returns the result of an instant query.
    async fn query(&self, expression: &str) -> Vec<Value> {
        let mut url = Url::parse(&format!("{}/api/v1/query", self.url)).unwrap();
        url.query_pairs_mut().append_pair("query", expression);
        let response = self.client.get(url).send().await.unwrap();
        let response: Value = response.json().await.unwrap();
        assert_eq!(response["status"], "success", "{expression}: {response}");
        response["data"]["result"].as_array().unwrap().clone()
    }

    /// Waits until a query has a result.
    async fn wait_for(&self, expression: &str) {
        let started = Instant::now();
        while self.query(expression).await.is_empty() {
            assert!(started.elapsed() < TIMEOUT, "no result of {expression}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until an alert has fired.
    async fn wait_for_alert(&self, name: &str) {
        let alert = format!("ALERTS{{alertname=\"{name}\", alertstate=\"firing\"}}");
        self.wait_for(&format!("last_over_time({alert}[10m])")).await;
    }

    /// Returns the names of all alerts that have fired.
    async fn fired(&self) -> BTreeSet<String> {
        let all = self
            .query("count by (alertname) (last_over_time(ALERTS{alertstate=\"firing\"}[30m]))")
            .await;
        let names = all.iter().map(|one| one["metric"]["alertname"].as_str().unwrap().to_owned());
        names.collect()
    }
}

/// Returns the path of a file for monitoring systems.
fn deployed(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring").join(name)
}

/// Shortens the durations of alerts. Their thresholds and expressions stay.
fn shortened(rules: &str) -> String {
    let rules = Regex::new(r"for: \d+m").unwrap().replace_all(rules, "for: 1s");
    let rules = rules.replace("[5m]", "[15s]").replace("[15m]", "[90s]");
    rules.replace("[1h]", "[90s]")
}

/// Returns a command that serves on fixed addresses.
fn serving(store: &TestStore, metrics: &str) -> Command {
    let mut command = galley(store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_METRICS_ADDR", metrics);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command
}

/// Starts a server on a disk of 8 MiB, with 256 open files. Half of them are the
/// server's own, so that the address of metrics stays reachable.
fn serve_on_small_machine(store: &TestStore, metrics: &str) -> Program {
    fs::create_dir_all(data_dir(store)).unwrap();
    let script = "ulimit -n 256 && mount -t tmpfs -o size=8m,mode=700 tmpfs \"$GALLEY_DATA_DIR\" \
        && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    Program::start(under(command, &serving(store, metrics)))
}

async fn create_webhook(program: &Program, receiver: &Receiver, group: &str) -> String {
    let body = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}});
    let made = program.request(Method::POST, "/webhooks").json(&body).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED, "{:?}", made.text().await);
    made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
}

async fn create_piece(program: &Program, group: &str, slug: &str) -> StatusCode {
    let request = program.request(Method::POST, "/content-pieces");
    let body = piece(group, slug, &"<p>text</p>".repeat(1_000));
    request.json(&body).send().await.unwrap().status()
}

/// Lets webhooks and mails fail.
async fn fail_deliveries(prometheus: &Prometheus, program: &Program) {
    prometheus.wait_for("galley_mails_abandoned == 0").await;
    let group = program.group().await;
    let receivers = [
        Receiver::start(Behaviour::Status(200)).await,
        Receiver::start(Behaviour::Status(500)).await,
        Receiver::start(Behaviour::Stall).await,
    ];
    let mut webhooks = Vec::new();
    for receiver in &receivers {
        webhooks.push(create_webhook(program, receiver, &group).await);
    }
    for number in 0..20 {
        assert_eq!(create_piece(program, &group, &format!("p{number}")).await, StatusCode::CREATED);
    }
    for address in ["refused@example.org", "later@example.org"] {
        invite(program, address, "Someone").await;
    }
    for path in ["/content-pieces/search?query=text", "/tags/list"] {
        program.get(path).await;
    }
    prometheus.wait_for("galley_webhook_attempts_in_flight > 0").await;
    prometheus.wait_for_alert("GalleyWebhooksFailing").await;
    prometheus.wait_for_alert("GalleyMailsAbandoned").await;
    let body = json!({"id": webhooks[2], "enabled": false});
    let disabled = program.request(Method::PUT, "/webhooks").json(&body).send().await.unwrap();
    assert!(disabled.status().is_success(), "{disabled:?}");
    prometheus.wait_for("galley_webhook_deliveries_paused > 0").await;
}

/// Blocks all writes of a database, which has late deliveries and old events.
async fn block_writes(prometheus: &Prometheus, program: &Program, store: &TestStore) {
    let group = program.group().await;
    let database = rusqlite::Connection::open(data_dir(store).join("galley.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database
        .execute_batch(
            "BEGIN IMMEDIATE;
             UPDATE webhook_queues SET next_at_ms = 1 WHERE next_at_ms IS NOT NULL;
             UPDATE events SET created_at_ms = created_at_ms - 3600000;
             UPDATE search_indexes SET sequence = 0;
             COMMIT; BEGIN IMMEDIATE",
        )
        .unwrap();
    // A counter that begins with its first rejection has no rate before the next one.
    for _ in 0..2 {
        let status = create_piece(program, &group, "blocked").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    }
    for alert in ["GalleySlow", "GalleyRejectsRequests", "GalleyDeliveriesLate", "GalleySearchLate"]
    {
        prometheus.wait_for_alert(alert).await;
    }
    database.execute_batch("ROLLBACK").unwrap();
}

/// Fills the disk, and opens most of the connections that the files permit.
async fn exhaust(prometheus: &Prometheus, program: &Program) {
    let group = program.group().await;
    let mut connections = Vec::new();
    for _ in 0..115 {
        let address = program.url.trim_start_matches("http://");
        connections.push(TcpStream::connect(address).await.unwrap());
    }
    let mut number = 0;
    let started = Instant::now();
    while prometheus
        .query("ALERTS{alertname=\"GalleyErrors\", alertstate=\"firing\"}")
        .await
        .is_empty()
    {
        create_piece(program, &group, &format!("full-{number}")).await;
        number += 1;
        assert!(started.elapsed() < TIMEOUT, "GalleyErrors does not fire");
    }
    for alert in ["GalleyDiskNearlyFull", "GalleyManyConnections"] {
        prometheus.wait_for_alert(alert).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_alert_fires_and_the_metrics_of_the_dashboard_move() {
    let Some(prometheus) = std::env::var_os("GALLEY_TEST_PROMETHEUS") else {
        return report_skipped(
            "alerts: GALLEY_TEST_PROMETHEUS is not set (cargo xtask test sets it)",
        );
    };
    let Some(mails) = MailServer::of_test() else { return };
    if !may_mount() {
        return;
    }
    let (store, small) = (TestStore::sqlite(), TestStore::sqlite());
    let metrics = format!("127.0.0.1:{}", free_port());
    let prometheus = Prometheus::start(Path::new(&prometheus), store.directory(), &metrics).await;
    let mut command = serving(&store, &metrics);
    command.env("GALLEY_SMTP_URL", format!("smtp://127.0.0.1:{}", mails.port));
    command.env("GALLEY_MAIL_FROM", "galley@example.org");
    let mut program = Program::start(command);
    fail_deliveries(&prometheus, &program).await;
    block_writes(&prometheus, &program, &store).await;
    let file = data_dir(&store).join("galley.db");
    fs::rename(&file, file.with_extension("moved")).unwrap();
    prometheus.wait_for_alert("GalleyDatabaseFilesDetached").await;
    program.kill();
    prometheus.wait_for_alert("GalleyDown").await;
    for starts in 1..=3 {
        let mut program = serve_on_small_machine(&small, &metrics);
        // The time of a start has whole seconds, so two starts within one would look like one.
        let is_seen = format!(
            "changes(process_start_time_seconds[90s]) >= {starts}
             and time() - process_start_time_seconds > 2"
        );
        prometheus.wait_for(&is_seen).await;
        program.kill();
    }
    prometheus.wait_for_alert("GalleyRestarts").await;
    let program = serve_on_small_machine(&small, &metrics);
    exhaust(&prometheus, &program).await;

    let rules = fs::read_to_string(deployed("prometheus-alerts.yaml")).unwrap();
    let named = Regex::new(r"alert: (\w+)").unwrap();
    let alerts: BTreeSet<String> =
        named.captures_iter(&rules).map(|found| found[1].to_owned()).collect();
    assert!(alerts.len() >= 12, "{alerts:?}");
    assert_eq!(prometheus.fired().await, alerts);
    check_dashboard(&prometheus).await;
}

/// Checks that each query of the dashboard has had a result, and that each of its metrics has
/// changed.
async fn check_dashboard(prometheus: &Prometheus) {
    let text = fs::read_to_string(deployed("grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Vec<String> = targets
        .map(|target| {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression.replace("$job", ".+").replace("$instance", ".+");
            expression.replace("$__rate_interval", "15s")
        })
        .collect();
    assert!(expressions.len() > 30, "{expressions:?}");
    let name = Regex::new(r"\b(up|galley_\w+|process_\w+)\{").unwrap();
    let mut names = BTreeSet::new();
    for expression in &expressions {
        let found = prometheus.query(&format!("last_over_time(({expression})[20m:1s])")).await;
        assert!(!found.is_empty(), "{expression}");
        names.extend(name.captures_iter(expression).map(|found| found[1].to_owned()));
    }
    // The version of a program is constant.
    names.remove("galley_build_info");
    for name in names {
        // The names of histograms' parts have no history of their own if nothing was counted.
        let moved = format!(
            "max by (job) (max_over_time({name}[20m])) > min by (job) (min_over_time({name}[20m]))"
        );
        assert!(!prometheus.query(&moved).await.is_empty(), "{name} does not move");
    }
}
