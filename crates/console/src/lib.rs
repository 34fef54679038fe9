//! The files of the web console, as its build wrote them, compressed by gzip. Without Node.js
//! and npm there are none.

include!(concat!(env!("OUT_DIR"), "/files.rs"));
