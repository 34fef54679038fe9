//! The arguments that commands share.

use std::ffi::OsString;

/// The arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Skip the tests that need PostgreSQL.
    #[arg(long, conflicts_with = "require_postgres")]
    pub(crate) no_postgres: bool,
    /// Fail if no PostgreSQL is available, instead of skipping the tests that need it.
    #[arg(long)]
    pub(crate) require_postgres: bool,
    /// Arguments for `cargo test`: `-- --package galley-storage some_name -- --nocapture`.
    #[arg(last = true)]
    pub(crate) cargo_arguments: Vec<OsString>,
}

/// The arguments of `cargo xtask reliability`.
#[derive(clap::Args)]
pub(crate) struct ReliabilityArguments {
    /// The extent: `short` takes twenty minutes, `long` some hours.
    #[arg(value_enum, default_value_t = Size::Short)]
    pub(crate) size: Size,
    /// Run only these parts.
    pub(crate) parts: Vec<String>,
}

/// The extent of the reliability suite.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Size {
    /// For every change.
    Short,
    /// For a release.
    Long,
}

impl Size {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
        }
    }
}
