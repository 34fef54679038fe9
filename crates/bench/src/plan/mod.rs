//! The sections of the benchmark, and the yardstick of each.

mod reads;
mod writes;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};

use crate::assets;
use crate::load;
use crate::operations::Operations;
use crate::rows::{self, Comparison, Effort, HEADS};
use crate::searches::{GeneratedTexts, Searches};
use crate::server::{LOAD_CORE, PinnedServer};
use crate::store::BenchStore;
use crate::table::{self, median};

/// The number of pieces behind the lists of the console.
const CONSOLE_PIECES: usize = 100_000;

/// Measure Galley beside its yardsticks.
#[derive(Args)]
pub(crate) struct Plan {
    /// The program to measure.
    #[arg(long, value_name = "FILE")]
    galley: PathBuf,
    /// Keep stores in this directory between runs.
    #[arg(long, value_name = "DIR")]
    stores: PathBuf,
    /// The number of pieces in the small store.
    #[arg(long, default_value_t = 10_000)]
    few: usize,
    /// The number of pieces that are read once each.
    #[arg(long, default_value_t = 200_000)]
    once: usize,
    /// The number of pieces in the large store.
    #[arg(long, default_value_t = 1_000_000)]
    many: usize,
    /// The duration of each measurement in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The number of repetitions. The tables show medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// An empty PostgreSQL database for the measurements on PostgreSQL.
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// The number of pieces that are searched.
    #[arg(long, default_value_t = 100_000)]
    searched: usize,
    /// A folder with Markdown files, whose sentences are searched.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))]
    texts: PathBuf,
    /// Run only these sections.
    sections: Vec<Section>,
}

/// A section of the benchmark, with a table of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Reads that the response cache serves.
    Hot,
    /// Reads of each piece once.
    Cold,
    /// Reads from a store of many pieces, beside one of few.
    Many,
    /// Writes.
    Writes,
    /// Group commits.
    Groups,
    /// Reads with concurrent writes.
    Beside,
    /// Memory, and the start-up time.
    Sizes,
    /// PostgreSQL.
    Postgres,
    /// Files of assets, and renditions.
    Assets,
    /// Searches, and the index.
    Search,
    /// The console in a browser.
    Console,
}

impl Plan {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        fs::create_dir_all(self.work())?;
        // Child processes and load threads inherit this core, and so don't use the servers' core.
        let pid = std::process::id().to_string();
        let pinned = Command::new("taskset").args(["-cp", LOAD_CORE, &pid]).output();
        ensure!(pinned.context("taskset")?.status.success(), "the benchmark needs two cores");
        let all = [
            Section::Hot,
            Section::Cold,
            Section::Many,
            Section::Writes,
            Section::Groups,
            Section::Beside,
            Section::Sizes,
            Section::Postgres,
            Section::Assets,
            Section::Search,
            Section::Console,
        ];
        for section in all {
            if !self.sections.is_empty() && !self.sections.contains(&section) {
                continue;
            }
            match section {
                Section::Hot => self.hot()?,
                Section::Cold => self.cold()?,
                Section::Many => self.many()?,
                Section::Writes => self.writes()?,
                Section::Groups => self.groups()?,
                Section::Beside => self.beside()?,
                Section::Sizes => self.sizes()?,
                Section::Postgres => self.postgres()?,
                Section::Assets => self.assets()?,
                Section::Search => self.search()?,
                Section::Console => self.console()?,
            }
        }
        Ok(())
    }

    fn work(&self) -> PathBuf {
        self.stores.join("work")
    }

    fn effort(&self) -> Effort {
        Effort { rounds: self.rounds, time: Duration::from_secs(self.seconds) }
    }

    fn store(&self, pieces: usize) -> anyhow::Result<BenchStore> {
        let store = BenchStore::of(&self.stores, &self.galley, pieces)?;
        // This loads the file into the page cache, as after some time of operation.
        std::io::copy(&mut fs::File::open(store.file())?, &mut std::io::sink())?;
        Ok(store)
    }

    /// Starts a yardstick, which is a subcommand of this program.
    fn yardstick(
        arguments: impl FnOnce(SocketAddr) -> Vec<String>,
    ) -> anyhow::Result<PinnedServer> {
        PinnedServer::start(std::env::current_exe()?, arguments, &[])
    }

    fn constant() -> anyhow::Result<PinnedServer> {
        Self::yardstick(|address| vec!["constant".to_owned(), address.to_string()])
    }

    fn rows(
        &self,
        rows: Vec<Comparison>,
        beside: &str,
        galley: &PinnedServer,
        yardstick: &PinnedServer,
    ) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        for row in rows {
            let rounds = rows::measure(&self.work(), self.effort(), &row, galley, yardstick)?;
            lines.push(rows::line(&row, beside, &rounds));
        }
        table::print(&HEADS, &lines);
        Ok(())
    }

    fn sizes(&self) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        for pieces in [self.few, self.many] {
            let store = self.store(pieces)?;
            let names = store.names(self.few)?;
            let (mut starts, mut idle, mut loaded) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                let galley = store.serve(&self.galley, &[])?;
                starts.push(galley.started_in.as_secs_f64() * 1e3);
                std::thread::sleep(Duration::from_secs(1));
                idle.push(galley.memory()? / 1e6);
                let operations = Operations::new(&store, &names);
                for (_, _, paths) in operations.reads() {
                    load::run(
                        &self.work(),
                        &galley,
                        &operations.gets(&paths),
                        Duration::from_secs(2),
                    )?;
                }
                loaded.push(galley.memory()? / 1e6);
            }
            lines.push(vec![
                pieces.to_string(),
                format!("{:.1}", median(starts)),
                format!("{:.1}", median(idle)),
                format!("{:.1}", median(loaded)),
            ]);
        }
        table::print(&["pieces", "start to ready, ms", "MB idle", "MB under load"], &lines);
        let size = fs::metadata(&self.galley)?.len();
        println!("The program file has {:.1} MB.\n", size as f64 / 1e6);
        Ok(())
    }

    fn assets(&self) -> anyhow::Result<()> {
        let store = self.store(self.few)?.copy_to(&self.work())?;
        let galley = store.serve(&self.galley, &[])?;
        let row = assets::cached_image(&galley, &store)?;
        self.rows(vec![row], "constant", &galley, &Self::constant()?)?;
        if let Some(nginx) = assets::nginx(&self.work())? {
            self.rows(vec![assets::beside_nginx(&galley, &store)?], "nginx", &galley, &nginx)?;
        }
        assets::renditions(&self.work(), &galley, &store, self.rounds)
    }

    /// Measures searches, a rebuild of the index, and writes of pieces, on both engines.
    fn search(&self) -> anyhow::Result<()> {
        let (pieces, texts) = (self.searched, GeneratedTexts::read(&self.texts)?);
        let store = BenchStore::with_pieces(
            self.stores.join(format!("{pieces}-texts")),
            &self.galley,
            pieces,
            |number, ids| texts.body(number, &ids.group),
        )?;
        let searches = Searches { store: &store, texts: &texts, pieces };
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let metrics_setting = ("GALLEY_METRICS_ADDR", metrics.to_string());
        // The gets beside a rebuild read the store.
        let forgetful = ("GALLEY_RESPONSE_CACHE_SIZE", "0".to_owned());
        {
            let galley = store.serve(&self.galley, &[])?;
            let waited = searches.wait_for_index(&galley)?;
            println!("The index was complete after {:.0} s.\n", waited.as_secs_f64());
            searches.print_size()?;
            searches.measure(&galley, Some(&store.file()), 1.0)?;
        }
        if let Some(url) = &self.postgres {
            self.copy_to_postgres(&store, url)?;
            let key = fs::read_to_string(store.folder.join("galley.key"))?;
            let settings = [
                ("GALLEY_DATABASE_URL", url.clone()),
                ("GALLEY_KEY", key.trim().to_owned()),
                metrics_setting.clone(),
                forgetful.clone(),
            ];
            let galley = store.serve(&self.galley, &settings)?;
            let waited = searches.wait_for_index(&galley)?;
            println!("PostgreSQL: the index was complete after {:.0} s.\n", waited.as_secs_f64());
            searches.measure(&galley, None, 2.0)?;
            searches.rebuild(&self.galley, &galley, &settings)?;
            searches.create(&galley, metrics, Some(500.0), self.seconds * 4)?;
        }
        let copy = store.copy_to(&self.work())?;
        let searches = Searches { store: &copy, ..searches };
        let galley = copy.serve(&self.galley, &[metrics_setting, forgetful])?;
        searches.rebuild(&self.galley, &galley, &[])?;
        searches.create(&galley, metrics, Some(500.0), self.seconds * 4)?;
        searches.create(&galley, metrics, None, self.seconds * 2)
    }

    /// Runs the measurements of a script in a browser, beside plain pages with the same content.
    fn console(&self) -> anyhow::Result<()> {
        let Some(folder) = std::env::var_os("GALLEY_TEST_BROWSER") else {
            eprintln!("the console is not measured: it needs Node and Chromium");
            return Ok(());
        };
        let store = self.store(CONSOLE_PIECES)?.copy_to(&self.work())?;
        let galley = store.serve(&self.galley, &[])?;
        let url = format!("http://{}", galley.address);
        let mut links = Vec::new();
        for _ in 0..2 {
            let mut print = Command::new(&self.galley);
            print.args(["sign-in", "--email", "owner@localhost", "--public-url", &url]);
            print.arg("--data-dir").arg(&store.folder);
            let output = print.output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            links.push(String::from_utf8(output.stdout)?.trim().to_owned());
        }
        let mut script = Command::new("node");
        script.arg("bench.mjs").current_dir(folder).env("GALLEY_URL", url);
        script.env("GALLEY_TOKEN", &store.token);
        script.env("GALLEY_LINKS", serde_json::to_string(&links)?);
        let output = script.stderr(Stdio::inherit()).output().context("node")?;
        ensure!(output.status.success(), "the script has failed");
        let mut table_rows = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let row: serde_json::Value = serde_json::from_str(line)?;
            let cell = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            table_rows.push(vec![cell("what"), cell("found"), cell("limit")]);
        }
        table::print(&["console", "found", "limit"], &table_rows);
        Ok(())
    }

    fn copy_to_postgres(&self, store: &BenchStore, url: &str) -> anyhow::Result<()> {
        let from = store.file().display().to_string();
        let output =
            Command::new(&self.galley).args(["copy", "--from", &from, "--to", url]).output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        // The copy of an earlier run is the same.
        ensure!(output.status.success() || told.contains("empty"), "{told}");
        Ok(())
    }
}
