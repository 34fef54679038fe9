//! Room for the bodies of requests, while they come in and are worked on, and for those of answers, until they are sent: all
//! of them together have a bound, and those of one workspace a lower one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::Method;
use axum::response::Response;
use galley_domain::WorkspaceId;
use galley_storage::Error as StorageError;
use serde::Serialize;

use crate::http::overload::UnderWay;
use crate::http::response;

/// What a body may have without being counted, as most do.
const UNCOUNTED: usize = 16 * 1024;

/// The room that there is. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Bounds>);

#[derive(Debug)]
struct Bounds {
    all_max: usize,
    each_max: usize,
    taken: Mutex<Taken>,
}

/// How many bytes are taken.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by: HashMap<WorkspaceId, usize>,
}

impl Room {
    /// For so many bytes, of which no workspace has more than half.
    pub(super) fn new(bytes: usize) -> Self {
        let (all_max, each_max) = (bytes, bytes.div_ceil(2));
        Self(Arc::new(Bounds { all_max, each_max, taken: Mutex::default() }))
    }

    /// Space for nothing yet, which is a workspace's if it is known whose.
    pub(super) fn space(&self, workspace: Option<WorkspaceId>) -> Space {
        Space { room: self.clone(), workspace, counted: 0 }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some of the room, until it is dropped.
#[derive(Debug)]
pub(crate) struct Space {
    room: Room,
    workspace: Option<WorkspaceId>,
    counted: usize,
}

impl Space {
    /// Has it be for so many bytes, or says that there is no room for them.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), StorageError> {
        self.set(bytes, |all, own, bounds| all <= bounds.all_max && own <= bounds.each_max)
    }

    /// The same for what has to be answered, whether there is room or not.
    fn insist(&mut self, bytes: usize) {
        self.set(bytes, |_, _, _| true).expect("it fits");
    }

    /// Takes more, if that `fits` with what all have then, and the workspace, or gives some back.
    fn set(
        &mut self,
        bytes: usize,
        fits: impl FnOnce(usize, usize, &Bounds) -> bool,
    ) -> Result<(), StorageError> {
        let counted = bytes.saturating_sub(UNCOUNTED);
        let change = |taken: usize| taken.saturating_add(counted).saturating_sub(self.counted);
        let mut taken = self.room.taken();
        let all = change(taken.all);
        let own = self
            .workspace
            .map_or(0, |workspace| change(taken.by.get(&workspace).copied().unwrap_or_default()));
        if counted > self.counted && !fits(all, own, &self.room.0) {
            return Err(StorageError::Overloaded);
        }
        taken.all = all;
        match self.workspace {
            Some(workspace) if own > 0 => drop(taken.by.insert(workspace, own)),
            Some(workspace) => drop(taken.by.remove(&workspace)),
            None => {}
        }
        drop(taken);
        self.counted = counted;
        Ok(())
    }

    /// The bytes, which have the space until nobody needs them any more.
    pub(super) fn hold(self, bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static) -> Bytes {
        if self.counted == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Spaced { bytes, _space: self })
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.insist(0);
        }
    }
}

/// Bytes in their space.
struct Spaced<B> {
    bytes: B,
    _space: Space,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Spaced<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Bytes that are written, up to a number of them.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl Bounded {
    /// The JSON of a resource, if it has no more bytes.
    pub(super) fn json(body: &impl Serialize, max: usize) -> Option<Vec<u8>> {
        let mut bounded = Self { bytes: Vec::with_capacity(1_024), max };
        serde_json::to_writer(&mut bounded, body).ok()?;
        let mut bytes = bounded.bytes;
        // What is small is soon sent.
        if bytes.len() > UNCOUNTED {
            bytes.shrink_to_fit();
        }
        Some(bytes)
    }
}

impl std::io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + more.len() > self.max {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The place of a request and its body, until all clones are gone.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<PlaceParts>);

#[derive(Debug)]
struct PlaceParts {
    /// Of the body, once some of it has come.
    body: Mutex<Option<Space>>,
    under_way: UnderWay,
    workspace: OnceLock<WorkspaceId>,
}

impl Place {
    /// Of a request without a body yet.
    pub(super) fn new(under_way: UnderWay) -> Self {
        let workspace = OnceLock::new();
        Self(Arc::new(PlaceParts { body: Mutex::default(), under_way, workspace }))
    }

    /// Works on the request.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.under_way.during(work).await
    }

    /// Notes whose request it is.
    pub(super) fn belongs_to(&self, workspace: WorkspaceId) {
        self.0.workspace.get_or_init(|| workspace);
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.0.workspace.get().copied()
    }

    /// Has it be for so many bytes of a body, or says that there is no room for them.
    pub(super) fn widen(&self, room: &Room, bytes: usize) -> Result<(), StorageError> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.get_or_insert_with(|| room.space(self.workspace())).resize(bytes)
    }
}

/// Marks an answer whose bytes have their space, or need none, as there are no others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasSpace;

/// Gives an answer the space that it takes until it is sent, or says that there is none. What was done is answered in any
/// case: without the representation, where there is no room for it.
pub(super) async fn give_space(
    room: &Room,
    method: &Method,
    place: &Place,
    response: &mut Response,
) -> Result<(), StorageError> {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let is_counted = response.extensions_mut().remove::<HasSpace>().is_some();
    let Some(size) = size.filter(|&size| size > UNCOUNTED && !is_counted) else { return Ok(()) };
    let mut space = room.space(place.workspace());
    let given = space.resize(size);
    let has_changed = !method.is_safe() && response.status().is_success();
    if !has_changed {
        given?;
    } else if given.is_err() && !response::leave_out_representation(response).await {
        space.insist(size);
    }
    let body = std::mem::take(response.body_mut());
    let bytes = to_bytes(body, size).await.expect("its bytes are there already");
    *response.body_mut() = Body::from(space.hold(bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::http::overload::Overload;
    use crate::http::prefer::APPLIED;

    const ROOM: usize = 1_000_000;
    const ANSWER: usize = 300_000;

    fn answer(size: usize) -> Response {
        Response::new(Body::from(vec![b'x'; size]))
    }

    #[tokio::test]
    async fn what_is_answered_takes_room_until_it_is_sent() {
        let (room, overload) = (Room::new(ROOM), Overload::new());
        let of = |workspace| {
            let place = Place::new(overload.count());
            place.belongs_to(WorkspaceId::new(workspace));
            place
        };
        let give = async |method: Method, place: &Place, mut answer: Response| {
            give_space(&room, &method, place, &mut answer).await?;
            Ok::<_, StorageError>(to_bytes(answer.into_body(), usize::MAX).await.unwrap())
        };
        let first = give(Method::GET, &of(1), answer(ANSWER)).await.unwrap();
        assert_eq!(first, vec![b'x'; ANSWER]);
        // No workspace has more than half.
        let refused = give(Method::GET, &of(1), answer(ANSWER)).await;
        assert!(matches!(refused, Err(StorageError::Overloaded)));
        give(Method::GET, &of(1), answer(UNCOUNTED)).await.unwrap();
        let second = give(Method::HEAD, &of(2), answer(ANSWER)).await.unwrap();
        // What was done is answered in any case.
        let whole = serde_json::json!({"id": "tag_1", "label": "x".repeat(2 * ROOM)});
        for (status, reduced) in [(StatusCode::OK, ""), (StatusCode::CREATED, r#"{"id":"tag_1"}"#)]
        {
            let mut preferred = Response::new(Body::from(whole.to_string()));
            *preferred.status_mut() = status;
            preferred.headers_mut().insert(APPLIED, "return=representation".try_into().unwrap());
            assert_eq!(give(Method::PUT, &of(3), preferred).await.unwrap(), reduced);
        }
        let mut wrong = answer(2 * ROOM);
        *wrong.status_mut() = StatusCode::BAD_REQUEST;
        assert!(give(Method::POST, &of(3), wrong).await.is_err());
        let third = give(Method::POST, &of(3), answer(2 * ROOM)).await.unwrap();
        assert!(give(Method::GET, &of(4), answer(ANSWER)).await.is_err());
        let mut marked = answer(ANSWER);
        marked.extensions_mut().insert(HasSpace);
        give(Method::GET, &of(4), marked).await.unwrap();
        drop(third);
        give(Method::GET, &of(4), answer(ANSWER)).await.unwrap();
        drop((first, second));
        give(Method::GET, &of(1), answer(ANSWER)).await.unwrap();
        let taken = room.taken();
        assert_eq!((taken.all, taken.by.len()), (0, 0));
    }

    #[test]
    fn space_grows_and_shrinks() {
        let room = Room::new(ROOM);
        let mut space = room.space(None);
        space.resize(ROOM + UNCOUNTED).unwrap();
        assert!(space.resize(ROOM + UNCOUNTED + 1).is_err());
        assert_eq!(room.taken().all, ROOM);
        space.resize(UNCOUNTED + 1).unwrap();
        assert_eq!(room.taken().all, 1);
        drop(space);
        assert_eq!(room.taken().all, 0);
    }
}
