//! Progress bars for long operations, shown only on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Creates a bar that counts `what`, with the rate and the remaining time.
pub(crate) fn bar(what: &str, all: u64) -> ProgressBar {
    with_template(
        all,
        &format!("{{bar:40}} {{pos}}/{{len}} {what}  {{msg}}  {{per_sec}}  {{eta}} left"),
    )
}

fn with_template(all: u64, template: &str) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(all), target);
    let style = ProgressStyle::with_template(template).expect("the template is right");
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Creates a bar that counts bytes, with the rate and the remaining time.
pub(crate) fn bytes_bar(all: u64) -> ProgressBar {
    with_template(all, "{bar:40} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left")
}

/// Creates a bar for an operation on a whole store, and the callback that updates it.
pub(crate) fn for_store(
    what: &str,
) -> (ProgressBar, impl FnMut(galley_storage::Progress) + Send + use<>) {
    let bar = bar(what, 0);
    let shown = bar.clone();
    let tell = move |so_far: galley_storage::Progress| {
        shown.set_length(so_far.all);
        shown.set_position(so_far.done);
    };
    (bar, tell)
}
