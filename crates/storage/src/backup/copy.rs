//! Copies all rows of a store to another one, and verifies each row.

use std::sync::Arc;

use futures_util::future::join;

use super::digest::RowDigest;
use super::snapshot::Snapshot;
use super::staged_store::StagedStore;
use super::tables::{self, Table};
use crate::engine::{Error, OwnedRow, Progress, Result, Tx, Value, WriteTx};

/// The limit of rows that are read at a time.
const PAGE_MAX: i64 = 256;

/// The approximate limit of bytes that are read at a time.
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The summary of a table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSummary {
    /// The table's name.
    pub name: String,
    /// The number of its rows.
    pub rows: u64,
    /// SHA-256 of the rows in the order of their keys, the same on both engines.
    pub sha256: [u8; 32],
}

/// Copies all rows, and then compares each of them. The rows become visible when `to` is finished.
pub async fn copy(
    from: &Snapshot,
    to: &StagedStore,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<Vec<TableSummary>> {
    // Each row counts twice: when it is copied, and when it is compared.
    let mut so_far = Progress { done: 0, all: 2 * count(from, tables::all()).await? };
    let mut summaries = Vec::new();
    for table in tables::all() {
        let mut pages = TablePages::new(table);
        let mut page = pages.next(from).await?;
        let mut all = Vec::new();
        let mut digest = RowDigest::default();
        let mut rows = 0;
        while !page.is_empty() {
            digest.add(&page);
            rows += page.len() as u64;
            so_far.done += page.len() as u64;
            page = if table.has_parents() {
                all.extend(page);
                pages.next(from).await?
            } else {
                // The next page is read while this one is written.
                let (next, written) = join(pages.next(from), insert(to, table, page)).await;
                written?;
                next?
            };
            progress(so_far);
        }
        if !all.is_empty() {
            insert(to, table, table.parents_first(all)).await?;
        }
        let name = table.name.clone();
        summaries.push(TableSummary { name, rows, sha256: digest.finish() });
    }
    for table in tables::all() {
        compare(from, to, table, |rows| {
            so_far.done += rows;
            progress(so_far);
        })
        .await?;
    }
    Ok(summaries)
}

/// Summarizes the rows of these tables.
pub(super) async fn summarize(
    store: &Snapshot,
    tables: &[Arc<Table>],
    mut progress: impl FnMut(Progress) + Send,
) -> Result<Vec<TableSummary>> {
    let mut so_far = Progress { done: 0, all: count(store, tables).await? };
    let mut summaries = Vec::new();
    for table in tables {
        let (mut pages, mut digest, mut rows) = (TablePages::new(table), RowDigest::default(), 0);
        loop {
            let page = pages.next(store).await?;
            if page.is_empty() {
                break;
            }
            digest.add(&page);
            rows += page.len() as u64;
            so_far.done += page.len() as u64;
            progress(so_far);
        }
        let name = table.name.clone();
        summaries.push(TableSummary { name, rows, sha256: digest.finish() });
    }
    Ok(summaries)
}

async fn count(store: &Snapshot, tables: &[Arc<Table>]) -> Result<u64> {
    let mut all = 0;
    for table in tables {
        let table = Arc::clone(table);
        all += store.read("copy.count", async move |tx: &Tx<'_>| table.count(tx).await).await?;
    }
    Ok(all)
}

async fn insert(to: &StagedStore, table: &Arc<Table>, rows: Vec<OwnedRow>) -> Result<()> {
    let table = Arc::clone(table);
    to.write("copy.insert", async move |tx: &WriteTx<'_>| table.insert(tx, &rows).await).await
}

/// Fails at the first row that differs between the two stores.
async fn compare(
    from: &Snapshot,
    to: &StagedStore,
    table: &Arc<Table>,
    mut progress: impl FnMut(u64) + Send,
) -> Result<()> {
    let mut pages = TablePages::new(table);
    let mut after: Option<OwnedRow> = None;
    loop {
        let limit = pages.limit;
        let (of, last) = (Arc::clone(table), after.clone());
        let of_copy = to.write("copy.compare", async move |tx: &WriteTx<'_>| {
            of.page(tx, last.as_ref(), limit).await
        });
        let (expected, found) = join(pages.next(from), of_copy).await;
        let (expected, found) = (expected?, found?);
        if expected != found {
            let place = expected.iter().zip(&found).take_while(|(one, other)| one == other).count();
            let key = expected.get(place).or(found.get(place)).map(|row| table.key_of(row));
            let detail = format!("{}: the copy differs at {key:?}", table.name);
            return Err(Error::corrupt(detail));
        }
        progress(expected.len() as u64);
        match expected.into_iter().last() {
            Some(row) => after = Some(row),
            None => return Ok(()),
        }
    }
}

/// The rows of a table, read in pages.
struct TablePages {
    table: Arc<Table>,
    after: Option<OwnedRow>,
    limit: i64,
}

impl TablePages {
    fn new(table: &Arc<Table>) -> Self {
        Self { table: Arc::clone(table), after: None, limit: 16 }
    }

    async fn next(&mut self, from: &Snapshot) -> Result<Vec<OwnedRow>> {
        let (table, after, limit) = (Arc::clone(&self.table), self.after.take(), self.limit);
        let last = after.clone();
        let page = from
            .read("copy.read", async move |tx: &Tx<'_>| table.page(tx, after.as_ref(), limit).await)
            .await?;
        self.after = page.last().cloned().or(last);
        if !page.is_empty() {
            let each = page.iter().map(size).sum::<usize>() / page.len() + 1;
            // The limit grows by steps, as the next rows may be larger.
            let fits = i64::try_from(PAGE_BYTES / each).unwrap_or(i64::MAX);
            self.limit = fits.min(2 * limit).clamp(1, PAGE_MAX);
        }
        Ok(page)
    }
}

fn size(row: &OwnedRow) -> usize {
    let of_value = |value: &Value<'_>| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) => 8,
    };
    row.iter().map(of_value).sum()
}
