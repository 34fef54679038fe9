//! A row of a result, with the same methods for both engines.

use std::str::FromStr;

use galley_domain::Timestamp;
use rusqlite::types::ValueRef;

use crate::engine::error::{Error, Result};
use crate::engine::value::Value;

/// A row of any table, as its columns' values.
pub(crate) type OwnedRow = Vec<Value<'static>>;

/// A row of a result. Columns are read by position, with the type that the statement selects. Any
/// other type is [`Error::Corrupt`].
#[derive(Debug)]
pub struct Row<'a>(RowEngine<'a>);

#[derive(Debug)]
enum RowEngine<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl<'a> Row<'a> {
    pub(crate) fn sqlite(row: &'a rusqlite::Row<'a>) -> Self {
        Self(RowEngine::Sqlite(row))
    }

    pub(crate) fn postgres(row: &'a tokio_postgres::Row) -> Self {
        Self(RowEngine::Postgres(row))
    }

    /// Returns a text, or `None` for null.
    pub fn opt_text(&self, column: usize) -> Result<Option<&str>> {
        match &self.0 {
            RowEngine::Sqlite(row) => match row.get_ref(column)? {
                ValueRef::Null => Ok(None),
                value => value.as_str().map(Some).map_err(Error::corrupt),
            },
            RowEngine::Postgres(row) => row.try_get(column).map_err(Error::corrupt),
        }
    }

    /// Returns an integer, or `None` for null.
    pub fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        match &self.0 {
            RowEngine::Sqlite(row) => match row.get_ref(column)? {
                ValueRef::Null => Ok(None),
                value => value.as_i64().map(Some).map_err(Error::corrupt),
            },
            RowEngine::Postgres(row) => row.try_get(column).map_err(Error::corrupt),
        }
    }

    /// Returns a text.
    pub fn text(&self, column: usize) -> Result<&str> {
        self.opt_text(column)?.ok_or_else(|| unexpected_null(column))
    }

    /// Returns an integer.
    pub fn int(&self, column: usize) -> Result<i64> {
        self.opt_int(column)?.ok_or_else(|| unexpected_null(column))
    }

    /// Returns a boolean.
    pub fn bool(&self, column: usize) -> Result<bool> {
        match &self.0 {
            RowEngine::Sqlite(row) => row.get(column).map_err(Error::corrupt),
            RowEngine::Postgres(row) => row.try_get(column).map_err(Error::corrupt),
        }
    }

    /// Returns bytes, or `None` for null.
    pub fn opt_bytes(&self, column: usize) -> Result<Option<Vec<u8>>> {
        match &self.0 {
            RowEngine::Sqlite(row) => row.get(column).map_err(Error::corrupt),
            RowEngine::Postgres(row) => row.try_get(column).map_err(Error::corrupt),
        }
    }

    /// Returns bytes.
    pub fn bytes(&self, column: usize) -> Result<Vec<u8>> {
        self.opt_bytes(column)?.ok_or_else(|| unexpected_null(column))
    }

    /// Returns an owned text, or `None` for null.
    pub fn opt_owned(&self, column: usize) -> Result<Option<String>> {
        Ok(self.opt_text(column)?.map(ToOwned::to_owned))
    }

    /// Returns a time, or `None` for null.
    pub fn opt_time(&self, column: usize) -> Result<Option<Timestamp>> {
        Ok(self.opt_int(column)?.map(Timestamp::from_ms))
    }

    /// Returns a time.
    pub fn time(&self, column: usize) -> Result<Timestamp> {
        Ok(Timestamp::from_ms(self.int(column)?))
    }

    /// Parses a text, such as an identifier.
    pub fn parse<T>(&self, column: usize) -> Result<T>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        self.text(column)?.parse().map_err(Error::corrupt)
    }

    /// Parses a text, or returns `None` for null.
    pub fn opt_parse<T>(&self, column: usize) -> Result<Option<T>>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        self.opt_text(column)?.map(|text| text.parse().map_err(Error::corrupt)).transpose()
    }

    /// Parses a list that is stored as comma-separated items.
    pub fn parse_list<T>(&self, column: usize) -> Result<Vec<T>>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        self.opt_parse_list(column)?.ok_or_else(|| unexpected_null(column))
    }

    /// Parses a list that is stored as comma-separated items, or returns `None` for null.
    pub fn opt_parse_list<T>(&self, column: usize) -> Result<Option<Vec<T>>>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        let Some(text) = self.opt_text(column)? else { return Ok(None) };
        let items = text.split(',').filter(|item| !item.is_empty());
        items.map(|item| item.parse().map_err(Error::corrupt)).collect::<Result<_>>().map(Some)
    }
}

fn unexpected_null(column: usize) -> Error {
    Error::corrupt(format!("null in column {column} of the result"))
}
