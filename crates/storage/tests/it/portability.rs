//! SQL features that the statements use, compared with the list in
//! `docs/reference/sql-features.md` for engines other than PostgreSQL itself.

use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../docs/reference/sql-features.md");

/// Keywords of features that no statement may use.
const UNUSED: [&str; 13] = [
    "NOTIFY",
    "LISTEN",
    "NEXTVAL",
    "LASTVAL",
    "RECURSIVE",
    "LATERAL",
    "DISTINCT ON",
    " OVER (",
    "TABLESAMPLE",
    "GROUPING SETS",
    "SAVEPOINT",
    "RANDOM()",
    "WITH ",
];

/// Checks that the document lists every feature that these statements use.
pub(crate) fn check<'s>(statements: impl Iterator<Item = &'s String>) {
    let mut missing = BTreeSet::new();
    for sql in statements {
        let upper = sql.to_uppercase();
        for word in UNUSED {
            assert!(!upper.contains(word), "{word}, which is said to be unused: {sql}");
        }
        for feature in features(sql) {
            let start = format!("| {feature} |");
            let line = DOCUMENT.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
            for table in tables(sql) {
                if !line.contains(&format!("`{table}`")) {
                    missing.insert(format!("{start} `{table}`: {sql}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/reference/sql-features.md:\n{missing:#?}");
}

fn features(sql: &str) -> Vec<&'static str> {
    let mut features = Vec::new();
    let locks =
        ["`FOR UPDATE SKIP LOCKED`", "`FOR UPDATE`", "`FOR NO KEY UPDATE`", "`FOR KEY SHARE`"];
    features.extend(locks.into_iter().find(|lock| sql.contains(lock.trim_matches('`'))));
    for (words, feature) in [("ON CONFLICT", "`ON CONFLICT`"), ("RETURNING", "`RETURNING`")] {
        features.extend(sql.contains(words).then_some(feature));
    }
    let reads = sql.starts_with("SELECT");
    if sql.starts_with("INSERT") && sql.contains("SELECT") {
        features.push("`INSERT … SELECT`");
    }
    if !is_of_one_workspace(sql) {
        features.push(if reads { "read across workspaces" } else { "changed across workspaces" });
    }
    features
}

/// Returns true if the statement restricts its rows to one workspace.
fn is_of_one_workspace(sql: &str) -> bool {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let is_named = words.windows(3).any(|three| {
        let [column, "=", value] = three else { return false };
        let column = column.trim_start_matches('(');
        (column == "workspace_id" || column.ends_with(".workspace_id")) && value.starts_with('?')
    });
    let is_put_there = sql.starts_with("INSERT") && sql.contains("workspace_id,");
    // The workspace's own row is identified by its id.
    let is_by_id = sql.contains("id = ?1") || sql.contains("workspaces (id,");
    let is_itself = tables(sql) == ["workspaces"] && is_by_id;
    is_named || is_put_there || is_itself
}

/// Returns the tables of the statement.
fn tables(sql: &str) -> Vec<&str> {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let named = words.windows(2).filter_map(|pair| match pair {
        ["FROM" | "JOIN" | "UPDATE" | "INTO", table] => Some(table.trim_end_matches(')')),
        _ => None,
    });
    let is_table = |name: &&str| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
    named.filter(is_table).collect()
}

#[test]
fn statements_without_a_workspace_are_detected() {
    assert!(is_of_one_workspace("SELECT a FROM tags WHERE workspace_id = ?1 AND id = ?2"));
    assert!(is_of_one_workspace("SELECT 1 FROM a JOIN b ON b.id = a.id WHERE a.workspace_id = ?3"));
    assert!(is_of_one_workspace("INSERT INTO tags (workspace_id, id) VALUES (?1, ?2)"));
    assert!(is_of_one_workspace("UPDATE workspaces SET name = ?2 WHERE id = ?1"));
    assert!(!is_of_one_workspace("SELECT a FROM tokens WHERE hash = ?1"));
    assert!(!is_of_one_workspace("SELECT a FROM x JOIN y ON x.workspace_id = y.workspace_id"));
    assert_eq!(tables("SELECT 1 FROM (SELECT a FROM b) x JOIN c ON 1 = 1"), ["b", "c"]);
    assert_eq!(features("SELECT 1 FROM a WHERE b = ?1 FOR UPDATE SKIP LOCKED").len(), 2);
}
