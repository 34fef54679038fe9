//! Responses that may be large: their memory is reserved before they are built.

use std::io;

use axum::body::Bytes;
use axum::response::Response;
use galley_application::Rejection;
use galley_domain::WorkspaceId;
use galley_runtime::{Overloaded, UNCOUNTED};
use serde::Serialize;

use crate::app::{App, COPIES};
use crate::problem::Problem;
use crate::resources::request_memory::WorkspaceReservation;
use crate::respond::response;

/// Reserves memory for a response that shows `bytes` bytes of a workspace.
pub(crate) fn reserve(
    app: &App,
    workspace: WorkspaceId,
    bytes: usize,
) -> Result<WorkspaceReservation, Overloaded> {
    let mut reservation = app.response_memory().reservation(Some(workspace));
    reservation.resize(bytes.saturating_mul(COPIES))?;
    Ok(reservation)
}

/// Serializes a body, and shrinks the reservation to its size. Returns `None` if the body exceeds
/// the limit on bytes of a page.
pub(crate) fn json(
    app: &App,
    reservation: WorkspaceReservation,
    body: &impl Serialize,
) -> Result<Option<Bytes>, Overloaded> {
    written(app, reservation, |out| Ok(serde_json::to_writer(out, body)?))
}

/// Like [`json`], for a body that `write` writes.
pub(crate) fn written(
    app: &App,
    mut reservation: WorkspaceReservation,
    write: impl FnOnce(&mut ResponseBuffer) -> io::Result<()>,
) -> Result<Option<Bytes>, Overloaded> {
    let mut buffer = ResponseBuffer::new(app.limits().response_size_limit);
    if write(&mut buffer).is_err() {
        return Ok(None);
    }
    let bytes = buffer.into_bytes();
    reservation.resize(bytes.len())?;
    Ok(Some(reservation.attach(bytes)))
}

/// Returns 200 with a resource of this version, or with a list of version 0. If the body exceeds
/// the limit on bytes of a page, rejects the request with an issue of the parameter `field`.
pub(crate) fn resource(
    app: &App,
    workspace: WorkspaceId,
    version: i64,
    body: &impl Serialize,
    field: &str,
) -> Result<Response, Problem> {
    let bytes = json(app, reserve(app, workspace, 0)?, body)?;
    let bytes = bytes
        .ok_or_else(|| Rejection::response_too_large(field, app.limits().response_size_limit))?;
    Ok(response::reserved_resource(version, bytes))
}

/// A writer that fails beyond a number of bytes.
pub(crate) struct ResponseBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl ResponseBuffer {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::with_capacity(1_024), limit }
    }

    fn into_bytes(mut self) -> Vec<u8> {
        // A small body is sent soon, so its spare capacity does not matter.
        if self.bytes.len() > UNCOUNTED {
            self.bytes.shrink_to_fit();
        }
        self.bytes
    }
}

impl io::Write for ResponseBuffer {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
