//! `dryRun=true`: a write that is carried out and then rolled back.

use galley_storage::{Error as StorageError, Failure, WriteTx};

use crate::error::Error;
use crate::service::Service;

/// The error that rolls the transaction back: the operation's own, or its result on success.
#[derive(Debug)]
enum Undone<T> {
    Failed(Error),
    Done(T),
}

impl<T> From<StorageError> for Undone<T> {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.into())
    }
}

impl<T: Send + 'static> Failure for Undone<T> {
    fn storage_error(&self) -> Option<&StorageError> {
        match self {
            Self::Failed(error) => error.storage_error(),
            Self::Done(_) => None,
        }
    }
}

/// Returns the result that `operation` would have, or its error. Its changes are rolled back.
pub async fn dry_run<T, F>(service: &Service, name: &'static str, operation: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, Error> + Send + Sync + 'static,
{
    let undo = async move |tx: &WriteTx<'_>| {
        let done = operation(tx).await.map_err(Undone::Failed)?;
        Err::<(), _>(Undone::Done(done))
    };
    match service.database().write::<(), Undone<T>, _>(name, undo).await {
        Err(Undone::Done(done)) => Ok(done),
        Err(Undone::Failed(error)) => Err(error),
        Ok(()) => unreachable!("it never ends well"),
    }
}
