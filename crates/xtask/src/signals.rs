//! Signals that request this program's termination.
//!
//! They are recorded instead of ending the program, so that every exit path stops the server and
//! removes its directory. SIGKILL alone bypasses this; [`crate::postgres`] describes the clean-up
//! in that case.

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

/// The last termination signal received, if any.
#[derive(Clone)]
pub(crate) struct Signals {
    latest: Arc<AtomicUsize>,
}

impl Signals {
    /// Installs the handlers, which record signals instead of ending the program.
    pub(crate) fn listen() -> Result<Self> {
        let latest = Arc::new(AtomicUsize::new(0));
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let number = usize::try_from(signal).expect("signal numbers are small and positive");
            signal_hook::flag::register_usize(signal, Arc::clone(&latest), number)
                .with_context(|| format!("cannot listen to signal {signal}"))?;
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

    /// Returns the signal to send to a running child because of the signal received.
    ///
    /// A terminal sends Ctrl-C to the children as well. A second one could request an immediate
    /// stop.
    pub(crate) fn to_pass_on(&self) -> Option<Signal> {
        let signal = self.received()?;
        let known_to_children = matches!(signal, SIGINT | SIGQUIT) && terminal_signals_children();
        // This is always SIGTERM, as a child started in the background of a shell ignores SIGINT.
        (!known_to_children).then_some(Signal::TERM)
    }
}

/// Returns true if there is a terminal that sends its signals to the children, too.
pub(crate) fn terminal_signals_children() -> bool {
    io::stdin().is_terminal()
}
