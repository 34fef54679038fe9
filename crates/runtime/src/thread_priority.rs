//! The scheduling priority of threads.

/// Raises the niceness of this thread, so that on a busy processor other threads run first.
pub fn lower_priority(niceness: i32) {
    if let Err(error) =
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), niceness)
    {
        tracing::debug!(%error, "a thread's priority could not be lowered");
    }
}
