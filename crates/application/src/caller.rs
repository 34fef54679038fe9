//! The caller of operations.

use std::fmt::Display;
use std::sync::Arc;

use galley_domain::audit::{AuditAction, RequestOrigin};
use galley_domain::trash::Deletion;
use galley_domain::{Permission, WorkspaceId};
use galley_storage::authentication::Authentication;
use galley_storage::{Tx, WriteKey, WriteTx};

use crate::audit::{self, AuditChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::rejection::Rejection;
use crate::scope::Scope;
use crate::service::Service;
use crate::staleness::StalenessBound;

/// An authenticated token that calls operations of a service. Clones share it.
#[derive(Debug, Clone)]
pub struct Caller {
    service: Service,
    token: Arc<Authentication>,
    request: Option<RequestOrigin>,
    staleness: StalenessBound,
}

impl Caller {
    /// Creates the caller of a request.
    pub fn new(service: Service, token: Arc<Authentication>) -> Self {
        Self { service, token, request: None, staleness: StalenessBound::default() }
    }

    /// Sets the request, for the audit log.
    pub fn with_request(self, request: RequestOrigin) -> Self {
        Self { request: Some(request), ..self }
    }

    /// Allows stale reads within a bound.
    pub fn with_staleness(self, staleness: StalenessBound) -> Self {
        Self { staleness, ..self }
    }

    /// Returns the token as it was authenticated.
    pub fn token(&self) -> &Authentication {
        &self.token
    }

    /// Returns the workspace of the token.
    pub fn workspace(&self) -> WorkspaceId {
        self.token.workspace
    }

    /// Returns true if reads may be stale.
    pub(crate) fn allows_stale(&self) -> bool {
        self.staleness.allows_stale()
    }

    /// Returns the part of the workspace that the token may access.
    pub(crate) fn scope(&self) -> Scope {
        Scope { request: self.request.clone(), ..Scope::of_token(&self.token) }
    }

    /// Records a change in the audit log.
    pub(crate) fn record(
        &self,
        tx: &WriteTx<'_>,
        action: AuditAction,
        target: impl Display,
        changes: AuditChanges,
    ) {
        audit::record(tx, self.environment(), &self.scope(), action, target, changes);
    }

    /// Returns the service.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// Rejects a token that lacks a permission.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), Error> {
        if self.token.permissions.allows(permission) {
            return Ok(());
        }
        Err(Rejection::insufficient_permissions(&[permission]).into())
    }

    /// Returns the kind of deletions that don't request another one.
    pub(crate) fn usual_deletion(&self) -> Deletion {
        Deletion::with_retention(self.service.settings().trash_retention_days)
    }

    /// Returns the source of time and randomness.
    pub(crate) fn environment(&self) -> &Environment {
        self.service.environment()
    }

    /// Runs `operation` in a read transaction, which may be stale within the request's bound.
    pub(crate) fn read<T, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: AsyncFn(&Tx<'_>) -> Result<T, Error> + Send + Sync + 'static,
    {
        self.staleness.read(self.service.database(), name, operation)
    }

    /// Like [`Caller::read`], and never stale.
    pub(crate) fn read_current<T, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: AsyncFn(&Tx<'_>) -> Result<T, Error> + Send + Sync + 'static,
    {
        self.service.database().read(name, operation)
    }

    /// Like [`Caller::read`], for reads that are known to take long. They are never stale.
    pub(crate) fn read_long<T, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: AsyncFn(&Tx<'_>) -> Result<T, Error> + Send + Sync + 'static,
    {
        self.service.database().read_long(name, operation)
    }

    /// Runs `operation` in a write transaction.
    pub(crate) fn write<T, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, Error> + Send + Sync + 'static,
    {
        self.service.database().write(name, operation)
    }

    /// Like [`Caller::write`], for short writes that many clients send. Without `keys`, it is the
    /// same ([`galley_storage::Database::write_grouped`]).
    pub(crate) fn write_grouped<T, F>(
        &self,
        name: &'static str,
        keys: Option<Vec<WriteKey>>,
        operation: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, Error> + Send + Sync + 'static,
    {
        self.service.database().write_grouped(name, keys, operation)
    }
}
