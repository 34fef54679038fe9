//! Query plans: no statement may read a growing table without an index.

use galley_storage::DatabaseUrl;
use serde_json::Value;
use tokio_postgres::NoTls;

use crate::portability;

/// Tables with few rows in a workspace, or that only operators' commands read completely.
const SMALL: &[&str] = &[
    "workspaces",
    "workspace_sequences",
    "tokens",
    "webhooks",
    "webhook_queues",
    "webhook_recoveries",
    "event_matches",
    "delivery_leases",
    "delivery_heartbeats",
    "delivery_sessions",
    "order_spreads",
    "search_indexes",
    "search_partitions",
];

/// Sort expressions on columns that a variant may override. No index has this order, so the pieces
/// are read and sorted.
const BY_OVERRIDES: [&str; 2] =
    ["ORDER BY COALESCE(v.date_ms,", "ORDER BY substr(COALESCE(v.title,"];

/// Prepares each statement and checks its plan.
pub(crate) async fn check(url: &DatabaseUrl, statements: impl Iterator<Item = &String>) {
    match url {
        DatabaseUrl::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            statements.for_each(|sql| check_sqlite(&connection, sql));
        }
        DatabaseUrl::Postgres(url) => {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            // With these settings of the program, PostgreSQL scans a table only if no index
            // applies.
            let settings = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";
            client.batch_execute(settings).await.unwrap();
            let statements: Vec<&String> = statements.collect();
            portability::check(statements.iter().copied());
            for sql in statements {
                check_postgres(&client, sql).await;
            }
        }
    }
}

fn check_sqlite(connection: &rusqlite::Connection, sql: &str) {
    let mut explain = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let steps: Vec<String> = explain
        .raw_query()
        .mapped(|row| row.get::<_, String>(3))
        .collect::<Result<_, _>>()
        .unwrap();
    let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE FOR ORDER BY"));
    let shown = format!("{sql}\n{}", steps.join("\n"));
    for step in &steps {
        if let Some(rest) = step.strip_prefix("SCAN ") {
            let name = rest.split(' ').next().unwrap();
            let table = table_of(sql, name);
            // This step reads a subquery's rows. The subquery's own steps are checked separately.
            let is_result = steps.iter().any(|step| *step == format!("CO-ROUTINE {name}"));
            let harmless = is_result
                || rest.contains("VALUES CLAUSE")
                || rest.contains("CONSTANT ROW")
                || rest.contains("VIRTUAL TABLE");
            assert!(harmless || SMALL.contains(&table.as_str()), "reads {table} whole:\n{shown}");
        }
        // Reading all rows of a workspace counts as reading a whole table.
        if step.starts_with("SEARCH ") && step.ends_with("(workspace_id=?)") {
            let by_overrides = BY_OVERRIDES.iter().any(|order| sql.contains(order));
            let bounded = sql.contains("LIMIT") && (!sorts || by_overrides);
            let table = table_of(sql, step.split(' ').nth(1).unwrap());
            assert!(
                bounded || SMALL.contains(&table.as_str()),
                "reads a workspace whole:\n{shown}"
            );
        }
    }
}

/// Returns the table that `alias` stands for.
fn table_of(sql: &str, alias: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let named = words.windows(2).find(|pair| pair[1].trim_matches([',', ')']) == alias);
    let keyword = |word: &str| ["FROM", "JOIN", "UPDATE", "INTO"].contains(&word);
    match named {
        Some([table, _]) if !keyword(table) => (*table).to_owned(),
        _ => alias.to_owned(),
    }
}

async fn check_postgres(client: &tokio_postgres::Client, sql: &str) {
    let translated = sql.replace('?', "$");
    let parameters = (1..).take_while(|number| translated.contains(&format!("${number}"))).count();
    let prepare = format!("PREPARE looked_at AS {translated}");
    client.batch_execute(&prepare).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let arguments = vec!["NULL"; parameters].join(", ");
    let arguments = if parameters == 0 { String::new() } else { format!("({arguments})") };
    let explain = format!("EXPLAIN (FORMAT JSON) EXECUTE looked_at{arguments}");
    let rows = client.simple_query(&explain).await.unwrap();
    let text: String = rows
        .iter()
        .filter_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    let plan: Value = serde_json::from_str(&text).unwrap();
    check_node(&plan[0]["Plan"], sql);
    client.batch_execute("DEALLOCATE looked_at").await.unwrap();
}

fn check_node(node: &Value, sql: &str) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    if let Some(table) = node["Relation Name"].as_str() {
        let by_index = node.get("Index Cond").is_some();
        let by_bitmap = kind == "Bitmap Heap Scan";
        let writes = kind == "ModifyTable";
        assert!(
            by_index || by_bitmap || writes || SMALL.contains(&table),
            "reads {table} whole: {sql}\n{node:#}"
        );
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        check_node(child, sql);
    }
}
