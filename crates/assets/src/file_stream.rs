//! A stream of a part of a local file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;

/// The bytes that are read at once. The store's own stream reads 8 KiB, each on a blocking thread.
const CHUNK: u64 = 256 * 1024;

/// Returns the bytes of `range` in chunks.
pub(crate) fn file_stream(
    file: File,
    range: Range<u64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let file = Arc::new(file);
    try_unfold(range, move |rest| {
        let file = Arc::clone(&file);
        async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let size = CHUNK.min(rest.end - rest.start);
            let start = rest.start;
            let read = move || {
                let mut chunk = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
                file.read_exact_at(&mut chunk, start).map(|()| Bytes::from(chunk))
            };
            let chunk = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
            Ok(Some((chunk, start + size..rest.end)))
        }
    })
}
