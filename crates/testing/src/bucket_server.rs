//! An S3-compatible object store: s3s-fs, which keeps its objects in a folder and checks
//! signatures.

use std::path::PathBuf;

use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running object store with one bucket. It stops when it is dropped.
#[derive(Debug)]
pub struct BucketServer {
    /// The URL of the service.
    pub endpoint: String,
    folder: TempDir,
    server: JoinHandle<()>,
}

impl BucketServer {
    /// The name of its bucket.
    pub const BUCKET: &str = "galley";

    /// The id of its key.
    pub const ACCESS_KEY_ID: &str = "test-key";

    /// The secret of its key.
    pub const SECRET_ACCESS_KEY: &str = "test-secret";

    /// Starts a server with an empty bucket.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be created");
        std::fs::create_dir(folder.path().join(Self::BUCKET)).expect("a bucket can be created");
        let files = s3s_fs::FileSystem::new(folder.path()).expect("the folder exists");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(Self::ACCESS_KEY_ID, Self::SECRET_ACCESS_KEY));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("the listener is bound");
        let server = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let executor = hyper_util::rt::TokioExecutor::new();
                    let connection = auto::Builder::new(executor);
                    // A client may end a connection at any time.
                    drop(connection.serve_connection(TokioIo::new(socket), service).await);
                });
            }
        });
        Self { endpoint: format!("http://{address}"), folder, server }
    }

    /// Returns the folder with the objects of the bucket.
    pub fn objects(&self) -> PathBuf {
        self.folder.path().join(Self::BUCKET)
    }
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}
