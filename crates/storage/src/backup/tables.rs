//! The tables of the schema, read from the schema itself.
//!
//! Both engines have the same tables. So they are read from an in-memory SQLite database to which
//! all migrations are applied. A new migration needs no change here.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use rusqlite::Connection;

use crate::engine::{Affects, Error, OwnedRow, Result, Row, Tx, Value, WriteTx, migrate};

/// A table of the schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// The table's name.
    pub(super) name: String,
    columns: Vec<TableColumn>,
    /// The indexes of the primary key's columns, in the key's order.
    key: Vec<usize>,
    /// The tables that its rows refer to.
    refers_to: Vec<String>,
    /// The indexes of the columns by which a row refers to another one of the same table.
    parent: Option<Vec<usize>>,
}

#[derive(Debug, PartialEq, Eq)]
struct TableColumn {
    name: String,
    kind: ColumnType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Text,
    Int,
    Bool,
    Bytes,
}

/// Returns all tables, each after those that it refers to. The record of migrations is left out,
/// and search indexes, which are built from the other tables.
pub(super) fn all() -> &'static [Arc<Table>] {
    static TABLES: LazyLock<Vec<Arc<Table>>> = LazyLock::new(|| {
        let mut connection = Connection::open_in_memory().expect("there is memory");
        migrate::create_sqlite_schema(&mut connection)
            .expect("an empty database takes all schema changes");
        of(&connection).expect("the schema has tables as they are expected here")
    });
    &TABLES
}

/// Returns the tables of a SQLite database, in the same order.
pub(super) fn of(connection: &Connection) -> Result<Vec<Arc<Table>>> {
    let names: Vec<String> = connection
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'
             AND name NOT LIKE 'search#_%' ESCAPE '#' AND name <> 'schema_migrations' ORDER BY name",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut waiting = Vec::new();
    for name in names {
        waiting.push(Arc::new(read_table(connection, name)?));
    }
    let mut tables: Vec<Arc<Table>> = Vec::new();
    while !waiting.is_empty() {
        let is_ready = |table: &Arc<Table>| {
            let there = |name: &String| tables.iter().any(|table| table.name == *name);
            table.refers_to.iter().all(there)
        };
        let place = waiting.iter().position(is_ready);
        let place =
            place.ok_or_else(|| Error::corrupt("the foreign keys of tables form a cycle"))?;
        tables.push(waiting.remove(place));
    }
    Ok(tables)
}

fn read_table(connection: &Connection, name: String) -> Result<Table> {
    let mut key = Vec::new();
    let mut columns = Vec::new();
    let mut statement =
        connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid")?;
    let mut rows = statement.query([&name])?;
    while let Some(row) = rows.next()? {
        let kind = match row.get_ref(1)?.as_str().map_err(Error::corrupt)? {
            "TEXT" => ColumnType::Text,
            "BIGINT" => ColumnType::Int,
            "BOOLEAN" => ColumnType::Bool,
            "BYTEA" => ColumnType::Bytes,
            other => return Err(Error::corrupt(format!("{name} has a column of type {other}"))),
        };
        let place_in_key: i64 = row.get(2)?;
        if place_in_key > 0 {
            key.push((place_in_key, columns.len()));
        }
        columns.push(TableColumn { name: row.get(0)?, kind });
    }
    if key.is_empty() {
        return Err(Error::corrupt(format!("{name} has no primary key")));
    }
    key.sort_unstable();
    let mut refers_to = Vec::new();
    let mut parent = Vec::new();
    let sql = "SELECT \"table\", \"from\" FROM pragma_foreign_key_list(?1) ORDER BY id, seq";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([&name])?;
    while let Some(row) = rows.next()? {
        let (other, from): (String, String) = (row.get(0)?, row.get(1)?);
        if other == name {
            let place = columns.iter().position(|column| column.name == from);
            parent.push(place.ok_or_else(|| Error::corrupt("a reference without a column"))?);
        } else {
            refers_to.push(other);
        }
    }
    let key = key.into_iter().map(|(_, column)| column).collect();
    let parent = Some(parent).filter(|parent| !parent.is_empty());
    Ok(Table { name, columns, key, refers_to, parent })
}

impl Table {
    /// Returns the number of rows.
    pub(super) async fn count(&self, tx: &Tx<'_>) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", self.name);
        tx.get(&sql, &[], |row| row.get(0)).await
    }

    /// Returns true if the table has no rows.
    pub(super) async fn is_empty(&self, tx: &Tx<'_>) -> Result<bool> {
        Ok(!tx.exists(&format!("SELECT 1 FROM {} LIMIT 1", self.name), &[]).await?)
    }

    /// Returns up to `limit` rows after the row `after`, in the order of the primary key.
    pub(super) async fn page(
        &self,
        tx: &Tx<'_>,
        after: Option<&OwnedRow>,
        limit: i64,
    ) -> Result<Vec<OwnedRow>> {
        let mut params: OwnedRow = after.map(|row| self.key_of(row)).unwrap_or_default();
        let key = self.key.iter().map(|&place| self.columns[place].name.as_str());
        let key = key.collect::<Vec<_>>().join(", ");
        let mut sql = format!("SELECT {} FROM {}", self.column_names(), self.name);
        if after.is_some() {
            let places = numbered(params.len());
            write!(sql, " WHERE ({key}) > ({places})").expect("a String takes everything");
        }
        params.push(Value::Int(limit));
        write!(sql, " ORDER BY {key} LIMIT ?{}", params.len()).expect("a String takes everything");
        tx.query(&sql, &params, |row| self.read(row)).await
    }

    /// Inserts rows unchanged.
    pub(super) async fn insert(&self, tx: &WriteTx<'_>, rows: &[OwnedRow]) -> Result<()> {
        let (columns, places) = (self.column_names(), numbered(self.columns.len()));
        let sql = format!("INSERT INTO {} ({columns}) VALUES ({places})", self.name);
        tx.change_each(&sql, rows, Affects::Everything).await
    }

    /// Returns true if rows refer to others of this table, which must be inserted first.
    pub(super) fn has_parents(&self) -> bool {
        self.parent.is_some()
    }

    /// Sorts rows so that each follows the row that it refers to.
    pub(super) fn parents_first(&self, rows: Vec<OwnedRow>) -> Vec<OwnedRow> {
        let Some(parent) = &self.parent else { return rows };
        let mut sorted: Vec<OwnedRow> = Vec::with_capacity(rows.len());
        let mut there = std::collections::HashSet::new();
        let mut waiting = rows;
        // One pass for each level of the tree. The database rejects rows whose reference is
        // missing.
        while !waiting.is_empty() {
            let before = waiting.len();
            let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|row| {
                parent.iter().any(|&place| row[place] == Value::Null)
                    || there.contains(&lookup_key(row, parent))
            });
            there.extend(ready.iter().map(|row| lookup_key(row, &self.key)));
            sorted.extend(ready);
            waiting = rest;
            if waiting.len() == before {
                sorted.append(&mut waiting);
            }
        }
        sorted
    }

    /// Returns the row's primary key.
    pub(super) fn key_of(&self, row: &OwnedRow) -> OwnedRow {
        self.key.iter().map(|&place| row[place].clone()).collect()
    }

    fn column_names(&self) -> String {
        self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn read(&self, row: &Row<'_>) -> Result<OwnedRow> {
        let read = |(place, column): (usize, &TableColumn)| {
            Ok(match column.kind {
                ColumnType::Text => row.get::<Option<String>>(place)?.into(),
                ColumnType::Int => row.get::<Option<i64>>(place)?.into(),
                ColumnType::Bool => row.get::<bool>(place)?.into(),
                ColumnType::Bytes => row.get::<Option<Vec<u8>>>(place)?.into(),
            })
        };
        self.columns.iter().enumerate().map(read).collect()
    }
}

/// Returns `?1, ?2, ?3` up to `count`.
fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

/// Returns these columns of a row as a key for lookups.
fn lookup_key(row: &OwnedRow, places: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &place in places {
        super::digest::write(&mut bytes, &row[place]);
    }
    bytes
}
