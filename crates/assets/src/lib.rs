//! Files of assets: the stores that keep them, the detection of their types, and the renditions of
//! images. The database and HTTP are unknown here.
//!
//! - [`AssetStore`] keeps files in a local folder or in a bucket of an S3-compatible service.
//! - [`FileType`] is detected from the first bytes of a file.
//! - [`image`] reads the size and a placeholder of an image, and renders it in other sizes.

mod bucket_client;
mod file_stream;
mod file_type;
mod hashing_reader;
pub mod image;
mod store;

pub use file_type::{FileType, HEAD_SIZE, ImageFormat};
pub use hashing_reader::HashingReader;
pub use store::{
    AssetStore, BucketCredentials, BucketLocation, FileName, FileWriter, InvalidLocation,
    ListedFile, StoreError, StoreLocation, WrittenFile,
};
