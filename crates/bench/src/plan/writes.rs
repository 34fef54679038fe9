//! The sections of writes: requests, and group commits beside bare loops.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;

use super::Plan;
use crate::load;
use crate::operations::Operations;
use crate::server::{LOAD_CORE, PinnedServer, SERVER_CORE};
use crate::store::BenchStore;
use crate::table::{self, median};

impl Plan {
    pub(super) fn writes(&self) -> anyhow::Result<()> {
        let store = self.store(self.few)?.copy_to(&self.work())?;
        let names = store.names(self.few)?;
        let constant = Self::constant()?;
        let galley = store.serve(&self.galley, &[])?;
        let mut client = crate::client::SetupClient::connect(galley.address, &store.token)?;
        // The receiver runs on the load's core, as it represents another machine.
        let receiver = PinnedServer::start_on(
            LOAD_CORE,
            std::env::current_exe()?,
            |address| vec!["constant".to_owned(), address.to_string()],
            &[],
        )?;
        let webhook = serde_json::json!({
            "url": format!("http://{}/webhook", receiver.address), "name": "Bench", "event": "contentPieceAdded",
            "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "metadata": {"contentGroupId": names.group},
        });
        client.post("/webhooks", &webhook)?;
        let operations = Operations::new(&store, &names);
        self.rows(operations.writes()?, "constant", &galley, &constant)
    }

    /// Compares Galley's title updates over HTTP with bare loops that write the same rows, in
    /// groups and with a commit for each.
    pub(super) fn groups(&self) -> anyhow::Result<()> {
        let slow = [
            "strace",
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync,fdatasync",
            "-e",
            "inject=fsync,fdatasync:delay_exit=1000",
        ];
        let mut lines = Vec::new();
        for (what, wrapper) in
            [("unmodified disk", &[][..]), ("1 ms more for each sync", &slow[..])]
        {
            let store = self.store(self.few)?.copy_to(&self.work())?;
            let names = store.names(self.few)?;
            let mut figures = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..self.rounds {
                let grouped = self.commits(wrapper, &store, 32)?;
                let single = self.commits(wrapper, &store, 1)?;
                let update = Operations::new(&store, &names).update();
                let time = Duration::from_secs(self.seconds);
                let behind = {
                    let copy = store.copy_to(&self.work().join("commits"))?;
                    let server = Self::commits_server(wrapper, &copy)?;
                    load::run(&self.work(), &server, &update, time)?.per_second
                };
                let galley = store.serve_by(wrapper, &self.galley, &[])?;
                let own = load::run(&self.work(), &galley, &update, time)?.per_second;
                eprintln!(
                    "{what}: Galley {own:.0}/s, group commits {grouped:.0}/s, group commits behind \
                     axum {behind:.0}/s, single commits {single:.0}/s"
                );
                for (figures, figure) in
                    figures.iter_mut().zip([own, own / grouped, own / behind, own / single])
                {
                    figures.push(figure);
                }
            }
            let [own, grouped, behind, single] = figures.map(median);
            lines.push(vec![
                what.to_owned(),
                format!("{own:.0}"),
                format!("{grouped:.2}"),
                format!("{behind:.2}"),
                format!("{single:.2}"),
            ]);
        }
        let heads = [
            "title updates by 32 clients",
            "per second",
            "of a bare loop in groups of 32",
            "of bare groups behind axum",
            "of a bare loop with a commit for each",
        ];
        table::print(&heads, &lines);
        Ok(())
    }

    fn commits_server(wrapper: &[&str], store: &BenchStore) -> anyhow::Result<PinnedServer> {
        let mut words: Vec<String> = wrapper.iter().map(|&word| word.to_owned()).collect();
        words.push(std::env::current_exe()?.display().to_string());
        let (first, file) = (words.remove(0), store.file().display().to_string());
        let arguments = |address: SocketAddr| {
            words.extend(["commits-server".to_owned(), address.to_string(), file]);
            words
        };
        PinnedServer::start(first, arguments, &[])
    }

    fn commits(&self, wrapper: &[&str], store: &BenchStore, group: usize) -> anyhow::Result<f64> {
        let copy = store.copy_to(&self.work().join("commits"))?;
        let output = Command::new("taskset")
            .args(["-c", SERVER_CORE])
            .args(wrapper)
            .arg(std::env::current_exe()?)
            .arg("commits")
            .arg(copy.file())
            .args([group.to_string(), self.seconds.to_string()])
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    }
}
