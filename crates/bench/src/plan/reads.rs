//! The sections of reads: from SQLite and PostgreSQL, alone and beside writes.

use std::fs;
use std::time::Duration;

use galley_testing::open_loop::OpenLoopClient;

use super::Plan;
use crate::load;
use crate::operations::Operations;
use crate::rows::{self, Comparison, Effort, HEADS};
use crate::server::LOAD_CORE;
use crate::table::{self, median};
use crate::yardsticks;

impl Plan {
    pub(super) fn hot(&self) -> anyhow::Result<()> {
        let store = self.store(self.few)?;
        let names = store.names(self.few)?;
        let galley = store.serve(&self.galley, &[])?;
        let rows = Operations::new(&store, &names).hot(&galley, &store)?;
        self.rows(rows, "constant", &galley, &Self::constant()?)
    }

    pub(super) fn cold(&self) -> anyhow::Result<()> {
        let store = self.store(self.once)?;
        let names = store.names(self.once)?;
        let file = store.file().display().to_string();
        let floor = Self::yardstick(|address| vec!["floor".to_owned(), address.to_string(), file])?;
        for row in Operations::new(&store, &names).cold() {
            // The server restarts for each round, so that its response cache is empty.
            let (mut rounds, one) = (Vec::new(), Effort { rounds: 1, ..self.effort() });
            for _ in 0..self.rounds {
                let galley = store.serve(&self.galley, &[])?;
                rounds.extend(rows::measure(&self.work(), one, &row, &galley, &floor)?);
            }
            table::print(&HEADS, &[rows::line(&row, "floor", &rounds)]);
        }
        Ok(())
    }

    /// Compares stores of different sizes. The response cache is off, as it would hide the
    /// difference.
    pub(super) fn many(&self) -> anyhow::Result<()> {
        let forgetful = [("GALLEY_RESPONSE_CACHE_SIZE", "0".to_owned())];
        let (few, many) = (self.store(self.few)?, self.store(self.many)?);
        let of_few = few.serve(&self.galley, &forgetful)?;
        let of_many = many.serve(&self.galley, &forgetful)?;
        let (few_names, many_names) = (few.names(self.few)?, many.names(self.few)?);
        let (few, many) = (Operations::new(&few, &few_names), Operations::new(&many, &many_names));
        let mut rows = Vec::new();
        for ((name, _, few_paths), (_, _, many_paths)) in few.reads().into_iter().zip(many.reads())
        {
            rows.push(Comparison {
                name: name.to_owned(),
                bar: 1.0 / 1.3,
                requests: many.gets(&many_paths),
                yardstick: few.gets(&few_paths),
            });
        }
        self.rows(rows, "few pieces", &of_many, &of_few)
    }

    /// Measures the latency of gets at a steady rate, alone and beside 32 writing clients.
    pub(super) fn beside(&self) -> anyhow::Result<()> {
        let store = self.store(self.few)?.copy_to(&self.work())?;
        let names = store.names(self.few)?;
        let galley = store.serve(&self.galley, &[])?;
        let (host, token) = (galley.address, &store.token);
        let requests = names.pieces.iter().take(1_000).map(|(id, _)| {
            format!("GET /content-pieces?id={id}&content=true HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n")
                .into_bytes()
        });
        let reader =
            OpenLoopClient::new(host.to_string(), requests.collect()).polling_without_sleep();
        let operations = Operations::new(&store, &names);
        let gets = operations.gets(&operations.reads()[1].2);
        let time = Duration::from_secs(self.seconds);
        let peak = load::run(&self.work(), &galley, &gets, time)?.per_second;
        // There are two titles for each piece, so that each write changes a value.
        let writes: Vec<_> = (0..2_000).map(|number| {
            let body = format!(r#"{{"id":"{}","title":"Title {number}"}}"#, names.pieces[number % 1_000].0);
            let length = body.len();
            format!("PUT /content-pieces HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
                .into_bytes()
        }).collect();
        let mut lines = Vec::new();
        for part in [0.3, 0.1, 0.03] {
            let (mut alone, mut beside, mut written) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                let (times, _) = reader.measure_beside_clients(peak * part, time, &[]);
                alone.push(times.p99.as_secs_f64() * 1e3);
                let (times, count) = reader.measure_beside_clients(peak * part, time, &writes);
                beside.push(times.p99.as_secs_f64() * 1e3);
                written.push(count as f64 / time.as_secs_f64());
            }
            let ratios = beside.iter().zip(&alone).map(|(beside, alone)| beside / alone).collect();
            lines.push(vec![
                format!("{:.0} gets per second, {part} of the peak", peak * part),
                format!("{:.2}", median(alone)),
                format!("{:.2}", median(beside)),
                format!("{:.1}", median(ratios)),
                format!("{:.0}", median(written)),
            ]);
        }
        table::print(
            &[
                "open loop",
                "p99 ms alone",
                "p99 ms beside 32 writers",
                "ratio",
                "writes per second",
            ],
            &lines,
        );
        Ok(())
    }

    pub(super) fn postgres(&self) -> anyhow::Result<()> {
        let Some(url) = &self.postgres else {
            println!("PostgreSQL: skipped, as --postgres is not set.\n");
            return Ok(());
        };
        let store = self.store(self.few)?;
        let names = store.names(self.few)?;
        self.copy_to_postgres(&store, url)?;
        let key = fs::read_to_string(store.folder.join("galley.key"))?;
        match yardsticks::postgres::keep_to(LOAD_CORE, url) {
            Ok(()) => println!("PostgreSQL shares the core of the load.\n"),
            Err(error) => println!("PostgreSQL is not pinned to a core: {error:#}\n"),
        }
        let floor = Self::yardstick(|address| {
            vec!["postgres-floor".to_owned(), address.to_string(), url.clone()]
        })?;
        let row = Operations::new(&store, &names).cold().remove(0);
        let hot = Comparison {
            name: "the same from the response cache".to_owned(),
            bar: 1.0,
            ..row.clone()
        };
        for (row, answers_max) in [(row, "0"), (hot, "1024")] {
            let settings = [
                ("GALLEY_DATABASE_URL", url.clone()),
                ("GALLEY_KEY", key.trim().to_owned()),
                ("GALLEY_RESPONSE_CACHE_SIZE", answers_max.to_owned()),
            ];
            let galley = store.serve(&self.galley, &settings)?;
            self.rows(vec![row], "floor", &galley, &floor)?;
        }
        Ok(())
    }
}
