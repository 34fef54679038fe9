//! galley
fn main() {}
