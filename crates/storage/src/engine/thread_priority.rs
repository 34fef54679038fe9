//! Which threads go first where there is not enough of the processor for all.

/// Lets the threads of others go before this one, by that niceness.
pub fn stand_back(niceness: i32) {
    if let Err(error) =
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), niceness)
    {
        tracing::debug!(%error, "a thread that was to stand back doesn't");
    }
}
