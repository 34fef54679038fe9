//! `dryRun=true`: a write that is carried out and then rolled back.

use galley_storage::{Error as StorageError, Failure, WriteTx};

use crate::error::Error;
use crate::service::Service;

/// The error that rolls the transaction back: the operation's own, or its result on success.
#[derive(Debug)]
enum RollbackResult<T> {
    Failed(Error),
    Succeeded(T),
}

impl<T> From<StorageError> for RollbackResult<T> {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.into())
    }
}

impl<T: Send + 'static> Failure for RollbackResult<T> {
    fn storage_error(&self) -> Option<&StorageError> {
        match self {
            Self::Failed(error) => error.storage_error(),
            Self::Succeeded(_) => None,
        }
    }
}

/// Returns the result that `operation` would have, or its error. Its changes are rolled back.
pub async fn dry_run<T, F>(service: &Service, name: &'static str, operation: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, Error> + Send + Sync + 'static,
{
    let run_and_roll_back = async move |tx: &WriteTx<'_>| {
        let done = operation(tx).await.map_err(RollbackResult::Failed)?;
        Err::<(), _>(RollbackResult::Succeeded(done))
    };
    match service.database().write::<(), RollbackResult<T>, _>(name, run_and_roll_back).await {
        Err(RollbackResult::Succeeded(done)) => Ok(done),
        Err(RollbackResult::Failed(error)) => Err(error),
        Ok(()) => unreachable!("it never ends well"),
    }
}
