//! SQL features that the statements use, compared with the list in
//! `docs/reference/sql-features.md` for engines other than PostgreSQL itself.

use std::collections::BTreeSet;
use std::path::Path;

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

/// Unique keys of a workspace's rows that don't begin with the workspace. Their values are looked
/// up without it.
const KEYS_WITHOUT_WORKSPACE: [&str; 9] = [
    "assets_key",
    "event_matches",
    "event_tickets",
    "invites",
    "preview_tokens",
    "search_indexes_number",
    "sessions",
    "sessions_id",
    "tokens_hash",
];

/// The functions whose result differs at each call. A distributed engine calls them on each shard.
const VOLATILE_FUNCTIONS: [&str; 5] =
    ["random()", "gen_random_uuid(", "now()", "clock_timestamp(", "nextval("];

/// Checks that the document lists every feature that these statements use.
pub(crate) fn check<'s>(statements: impl Iterator<Item = &'s String>) {
    let mut missing = BTreeSet::new();
    for sql in statements {
        let upper = sql.to_uppercase();
        for word in UNUSED {
            assert!(!upper.contains(word), "{word}, which is said to be unused: {sql}");
        }
        assert!(locks_one_workspace(sql), "locks rows of several workspaces: {sql}");
        assert_eq!(unrestricted_subquery(sql), None, "a subquery names no workspace: {sql}");
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

/// Returns true unless the statement locks rows of several workspaces.
fn locks_one_workspace(sql: &str) -> bool {
    let locks = [" FOR UPDATE", " FOR NO KEY UPDATE", " FOR KEY SHARE"];
    let has_lock = locks.iter().any(|lock| sql.contains(lock));
    let with_workspace = tables_with_workspace();
    let is_shared = tables(sql).iter().all(|table| !with_workspace.contains(*table));
    !has_lock || is_of_one_workspace(sql) || is_shared
}

/// Returns a subquery that reads rows of all workspaces within a statement of one workspace.
fn unrestricted_subquery(sql: &str) -> Option<String> {
    let with_workspace = tables_with_workspace();
    let reads_workspace = |part: &String| {
        part.starts_with("SELECT")
            && tables(part).iter().any(|table| with_workspace.contains(*table))
    };
    let parts = if is_of_one_workspace(sql) { subqueries(sql) } else { Vec::new() };
    parts.into_iter().find(|part| reads_workspace(part) && !is_of_one_workspace(part))
}

/// Returns the parts of a statement in parentheses, each without the parts within it.
fn subqueries(sql: &str) -> Vec<String> {
    let (mut open, mut parts) = (Vec::new(), Vec::new());
    for letter in sql.chars() {
        match letter {
            '(' => open.push(String::new()),
            ')' => parts.extend(open.pop()),
            _ => {
                if let Some(part) = open.last_mut() {
                    part.push(letter);
                }
            }
        }
    }
    parts
}

/// Returns the statements of each migration, with its file name.
fn migrations() -> Vec<(String, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("/*postgres:", "");
        let is_code = |line: &&str| !line.trim_start().starts_with("--");
        let code = text.lines().filter(is_code).collect::<Vec<_>>().join("\n");
        let statements = code.split(";\n").map(|one| one.trim().to_owned()).collect();
        (path.file_name().unwrap().to_string_lossy().into_owned(), statements)
    };
    files.map(read).collect()
}

/// Returns the name and the definition of each table.
fn table_definitions() -> Vec<(String, String)> {
    let all = migrations().into_iter().flat_map(|(_, statements)| statements);
    let tables = all.filter_map(|statement| {
        let (name, definition) = statement.strip_prefix("CREATE TABLE ")?.split_once(" (")?;
        Some((name.to_owned(), definition.to_owned()))
    });
    tables.collect()
}

fn tables_with_workspace() -> BTreeSet<String> {
    let with_workspace = table_definitions()
        .into_iter()
        .filter(|(_, definition)| definition.contains("workspace_id"));
    with_workspace.map(|(name, _)| name).collect()
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
fn unique_keys_of_tables_with_a_workspace_begin_with_it() {
    let mut keys = Vec::new();
    for (table, definition) in table_definitions() {
        if definition.contains("workspace_id") {
            let key = match definition.split_once("PRIMARY KEY (") {
                Some((_, columns)) => columns.to_owned(),
                None => definition.trim_start().to_owned(),
            };
            keys.push((table, key));
        }
    }
    let with_workspace = tables_with_workspace();
    for statement in migrations().into_iter().flat_map(|(_, statements)| statements) {
        let Some(index) = statement.strip_prefix("CREATE UNIQUE INDEX ") else { continue };
        let (name, rest) = index.split_once(" ON ").unwrap();
        let (table, columns) = rest.split_once(" (").unwrap();
        if with_workspace.contains(table) {
            keys.push((name.to_owned(), columns.to_owned()));
        }
    }
    assert!(keys.len() > 20, "{keys:?}");
    let other = keys.iter().filter(|(_, columns)| !columns.starts_with("workspace_id"));
    let other: BTreeSet<&str> = other.map(|(name, _)| name.as_str()).collect();
    assert_eq!(other, BTreeSet::from(KEYS_WITHOUT_WORKSPACE));
}

#[test]
fn migrations_call_no_volatile_functions() {
    let volatile = |statements: &[String]| {
        let calls = |sql: &String| VOLATILE_FUNCTIONS.iter().any(|name| sql.contains(name));
        statements.iter().any(calls)
    };
    let found = migrations().into_iter().filter(|(_, statements)| volatile(statements));
    let found: Vec<String> = found.map(|(name, _)| name).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn subqueries_and_locks_across_workspaces_are_detected() {
    let outer = "SELECT 1 FROM tags WHERE workspace_id = ?1";
    let correlated = format!(
        "{outer} AND EXISTS (SELECT 1 FROM roles r WHERE r.workspace_id = tags.workspace_id)"
    );
    assert!(unrestricted_subquery(&correlated).is_some());
    let by_parameter =
        format!("{outer} AND EXISTS (SELECT 1 FROM roles r WHERE r.workspace_id = ?1)");
    assert_eq!(unrestricted_subquery(&by_parameter), None);
    assert!(!locks_one_workspace("SELECT 1 FROM mails WHERE due_at_ms <= ?1 FOR UPDATE"));
    assert!(locks_one_workspace("SELECT 1 FROM mails WHERE workspace_id = ?1 FOR UPDATE"));
    assert!(locks_one_workspace("SELECT 1 FROM users WHERE id = ?1 FOR UPDATE"));
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
