//! The signals that ask this program to end.
//!
//! They are noted, not obeyed at once, so that every way out passes by the code that stops the
//! server and removes its directory. Only SIGKILL goes round it; see [`crate::postgres`] for what
//! is left then.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Which signal, if any, has asked this program to end.
#[derive(Clone)]
pub(crate) struct Signals {
    latest: Arc<AtomicUsize>,
}

impl Signals {
    /// Starts to note signals, in place of dying of them.
    pub(crate) fn listen() -> Result<Self> {
        let latest = Arc::new(AtomicUsize::new(0));
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let number = usize::try_from(signal).expect("signal numbers are small and positive");
            signal_hook::flag::register_usize(signal, Arc::clone(&latest), number)
                .with_context(|| format!("signal {signal} cannot be listened to"))?;
        }
        Ok(Self { latest })
    }

    /// Returns the number of the signal received last.
    pub(crate) fn received(&self) -> Option<i32> {
        match self.latest.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }

    /// Returns what a running child must be sent because of the signal received.
    ///
    /// A terminal gives Ctrl-C to the children as well, and a second one could mean "at once" to
    /// them.
    pub(crate) fn to_pass_on(&self) -> Option<Signal> {
        let signal = self.received()?;
        let known_to_children = matches!(signal, SIGINT | SIGQUIT) && terminal_signals_children();
        // Always SIGTERM: a child started in the background of a shell ignores SIGINT.
        (!known_to_children).then_some(Signal::TERM)
    }
}

/// Tells whether there is a terminal that gives its signals to the children too.
pub(crate) fn terminal_signals_children() -> bool {
    io::stdin().is_terminal()
}
