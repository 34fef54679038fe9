//! Both stores: a folder, and a bucket of an S3-compatible server.

use bytes::Bytes;
use futures_util::TryStreamExt;
use galley_assets::{
    AssetStore, BucketCredentials, BucketLocation, FileName, StoreError, StoreLocation,
};
use galley_domain::{AssetFileId, WorkspaceId};
use galley_testing::BucketServer;
use tempfile::TempDir;

/// A store, and the folder or server behind it.
struct TestedStore {
    store: AssetStore,
    folder: Option<TempDir>,
    server: Option<BucketServer>,
}

impl TestedStore {
    fn in_folder() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::Folder(folder.path().join("assets"));
        let store = AssetStore::open(&location).unwrap();
        Self { store, folder: Some(folder), server: None }
    }

    async fn in_bucket() -> Self {
        let server = BucketServer::start().await;
        let store = AssetStore::open(&StoreLocation::Bucket(bucket_of(&server))).unwrap();
        Self { store, folder: None, server: Some(server) }
    }

    async fn both() -> [Self; 2] {
        [Self::in_folder(), Self::in_bucket().await]
    }
}

fn bucket_of(server: &BucketServer) -> BucketLocation {
    BucketLocation {
        bucket: BucketServer::BUCKET.to_owned(),
        prefix: "galley/assets".to_owned(),
        endpoint: Some(server.endpoint.clone()),
        region: Some("eu-central-1".to_owned()),
        credentials: Some(BucketCredentials {
            access_key_id: BucketServer::ACCESS_KEY_ID.to_owned(),
            secret_access_key: BucketServer::SECRET_ACCESS_KEY.to_owned(),
        }),
    }
}

fn name(workspace: u128, file: u128) -> FileName {
    FileName::original(WorkspaceId::new(workspace), AssetFileId::new(file))
}

/// Returns bytes that differ at every position.
fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from((at * 31 + at / 251) % 251).unwrap()).collect()
}

async fn write(store: &AssetStore, name: &FileName, bytes: &[u8]) -> galley_assets::WrittenFile {
    let mut writer = store.writer(name);
    for chunk in bytes.chunks(100_000) {
        writer.write(Bytes::copy_from_slice(chunk)).await.unwrap();
    }
    writer.finish().await.unwrap()
}

async fn read(
    store: &AssetStore,
    name: &FileName,
    range: std::ops::Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    store.stream(name, range).await?.try_concat_bytes().await
}

trait ConcatBytes {
    async fn try_concat_bytes(self) -> Result<Vec<u8>, StoreError>;
}

impl<S: futures_util::Stream<Item = Result<Bytes, StoreError>>> ConcatBytes for S {
    async fn try_concat_bytes(self) -> Result<Vec<u8>, StoreError> {
        let append = async |mut all: Vec<u8>, chunk: Bytes| {
            all.extend_from_slice(&chunk);
            Ok(all)
        };
        self.try_fold(Vec::new(), append).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_all_sizes_are_read_as_they_were_written() {
    for TestedStore { store, .. } in &TestedStore::both().await {
        store.check().await.unwrap();
        for (file, size) in [0, 1, 300_000, 8 * 1024 * 1024, 21_000_001].into_iter().enumerate() {
            let (name, bytes) = (name(1, file as u128), pattern(size));
            let written = write(store, &name, &bytes).await;
            assert_eq!(written.size, size as u64);
            assert_eq!(written.head, bytes[..size.min(galley_assets::HEAD_SIZE)]);
            assert_eq!(store.read(&name).await.unwrap(), bytes, "{size}");
            let end = size as u64;
            for range in [0..end, 0..end.min(1), end / 3..end / 2, end.saturating_sub(5)..end] {
                let place =
                    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                let part = read(store, &name, range).await.unwrap();
                assert_eq!(part, bytes[place.clone()], "{size} {place:?}");
            }
        }
        let empty = write(store, &name(1, 9), b"").await;
        let sha256: String = empty.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_removes_the_renditions_of_one_file() {
    for TestedStore { store, .. } in &TestedStore::both().await {
        let (one, two, other) = (name(1, 1), name(1, 2), name(2, 1));
        for name in [&one, &two, &other] {
            write(store, name, b"original").await;
            let rendition = FileName { rendition: Some("640.webp".to_owned()), ..name.clone() };
            store.put(&rendition, Bytes::from_static(b"small")).await.unwrap();
            store.put(&rendition, Bytes::from_static(b"other")).await.unwrap();
            assert_eq!(store.read(&rendition).await.unwrap(), "other");
        }
        for _ in 0..2 {
            store.delete(&one).await.unwrap();
        }
        assert!(matches!(store.read(&one).await, Err(StoreError::NotFound)));
        for range in [0..8, 0..0] {
            assert!(matches!(read(store, &one, range).await, Err(StoreError::NotFound)));
        }
        let listed: Vec<_> = store.list().try_collect().await.unwrap();
        let mut names: Vec<_> = listed.iter().map(|file| file.name.to_string()).collect();
        names.sort();
        let expected = [&two, &other].map(|name| {
            [FileName { rendition: Some("640.webp".to_owned()), ..name.clone() }, name.clone()]
        });
        let expected: Vec<_> = expected.iter().flatten().map(ToString::to_string).collect();
        assert_eq!(names, expected);
        assert!(listed.iter().all(|file| file.created_at_ms > 1_700_000_000_000), "{listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_finished_does_not_exist() {
    for TestedStore { store, folder, server } in &TestedStore::both().await {
        for size in [10, 20_000_000] {
            let name = name(1, size as u128);
            let mut writer = store.writer(&name);
            writer.write(Bytes::from(pattern(size))).await.unwrap();
            assert_eq!(writer.size(), size as u64);
            assert!(matches!(store.read(&name).await, Err(StoreError::NotFound)));
            writer.abort().await;
            assert!(matches!(store.read(&name).await, Err(StoreError::NotFound)));
        }
        let listed: Vec<_> = store.list().try_collect().await.unwrap();
        assert_eq!(listed, []);
        let _ = (folder, server);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_files_in_a_store_are_left_out() {
    let tested = TestedStore::in_folder();
    let root = tested.folder.as_ref().unwrap().path().join("assets");
    std::fs::write(root.join("README"), "x").unwrap();
    std::fs::create_dir_all(root.join("a/b/c")).unwrap();
    std::fs::write(root.join("a/b/c/d"), "x").unwrap();
    let name = name(1, 1);
    write(&tested.store, &name, b"x").await;
    let listed: Vec<_> = tested.store.list().try_collect().await.unwrap();
    assert_eq!(listed.into_iter().map(|file| file.name).collect::<Vec<_>>(), [name]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_or_bucket_is_noticed_at_the_start() {
    let server = BucketServer::start().await;
    let right = bucket_of(&server);
    let wrong_key = BucketCredentials {
        access_key_id: BucketServer::ACCESS_KEY_ID.to_owned(),
        secret_access_key: "wrong".to_owned(),
    };
    for location in [
        BucketLocation { bucket: "other".to_owned(), ..right.clone() },
        BucketLocation { credentials: Some(wrong_key), ..right.clone() },
    ] {
        let store = AssetStore::open(&StoreLocation::Bucket(location)).unwrap();
        assert!(store.check().await.is_err());
    }
}

#[test]
fn locations_are_folders_or_buckets() {
    let parsed = |text: &str| StoreLocation::parse(text, None);
    assert_eq!(parsed("/var/lib/x"), Ok(StoreLocation::Folder("/var/lib/x".into())));
    let text = "s3://files/galley/assets/?endpoint=http://127.0.0.1:9000&region=garage";
    let bucket = BucketLocation {
        bucket: "files".to_owned(),
        prefix: "galley/assets".to_owned(),
        endpoint: Some("http://127.0.0.1:9000".to_owned()),
        region: Some("garage".to_owned()),
        credentials: None,
    };
    assert_eq!(parsed(text), Ok(StoreLocation::Bucket(bucket)));
    for bad in ["s3:", "s3://", "s3:///x", "s3://key@b/x", "s3://b:1/", "s3://b/?acl=x", "gs://b/x"]
    {
        assert!(parsed(bad).is_err(), "{bad}");
    }
}
