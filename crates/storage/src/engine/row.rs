//! A row of a result, with the same methods for both engines.

use rusqlite::types::{FromSql, ValueRef};
use tokio_postgres::types::FromSqlOwned;

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

    /// Returns the value of a column.
    pub fn get<T: Column>(&self, column: usize) -> Result<T> {
        T::get(self, column)
    }

    /// Returns a text, without a copy of it.
    pub fn text(&self, column: usize) -> Result<&str> {
        self.opt_text(column)?.ok_or_else(|| unexpected_null(column))
    }

    /// Returns a text, without a copy of it, or `None` for null.
    pub fn opt_text(&self, column: usize) -> Result<Option<&str>> {
        match &self.0 {
            RowEngine::Sqlite(row) => match row.get_ref(column)? {
                ValueRef::Null => Ok(None),
                value => value.as_str().map(Some).map_err(Error::corrupt),
            },
            RowEngine::Postgres(row) => row.try_get(column).map_err(Error::corrupt),
        }
    }

    fn find<T: FromSql + FromSqlOwned>(&self, column: usize) -> Result<Option<T>> {
        match &self.0 {
            RowEngine::Sqlite(row) => row.get(column).map_err(Error::corrupt),
            RowEngine::Postgres(row) => row.try_get(column).map_err(Error::corrupt),
        }
    }
}

fn unexpected_null(column: usize) -> Error {
    Error::corrupt(format!("null in column {column} of the result"))
}

/// A type of values that columns have.
pub trait Column: Sized {
    /// Reads the value of a column, or returns `None` for null.
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>>;

    /// Reads the value of a column.
    fn get(row: &Row<'_>, column: usize) -> Result<Self> {
        Self::find(row, column)?.ok_or_else(|| unexpected_null(column))
    }
}

impl<T: Column> Column for Option<T> {
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
        T::find(row, column).map(Some)
    }
}

/// Reads values that both engines have.
macro_rules! engine_columns {
    ($($type:ty),*) => {$(
        impl Column for $type {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                row.find(column)
            }
        }
    )*};
}

engine_columns!(String, i64, bool, Vec<u8>);

/// Reads numbers that are never negative.
macro_rules! count_columns {
    ($($type:ty),*) => {$(
        impl Column for $type {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                let count = i64::find(row, column)?;
                count.map(Self::try_from).transpose().map_err(Error::corrupt)
            }
        }
    )*};
}

count_columns!(u32, u64, usize);

/// Reads a struct: its fields from consecutive columns, from `$first` on, and others as given.
macro_rules! read_row {
    ($row:expr, $first:expr => $type:ident {$($field:ident),+ $(,)? $(; $($rest:tt)+)?}) => {{
        let mut column: usize = $first;
        $type {
            $($field: { column += 1; $row.get(column - 1)? },)+
            $($($rest)+)?
        }
    }};
}
pub(crate) use read_row;
