//! The requests of each operation.

use anyhow::Context;
use serde_json::Value;

use crate::client::SetupClient;
use crate::load::Requests;
use crate::rows::Comparison;
use crate::server::PinnedServer;
use crate::store::{BenchStore, StoreIds, piece};

/// The number of pieces that requests repeat when responses are cached.
const HOT: usize = 1_000;

/// The number of pages of a list.
const PAGES: usize = 50;

/// The operations on a store.
pub(crate) struct Operations<'s> {
    names: &'s StoreIds,
    authorization: String,
}

impl<'s> Operations<'s> {
    pub(crate) fn new(store: &BenchStore, names: &'s StoreIds) -> Self {
        Self { names, authorization: format!("Bearer {}", store.token) }
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("Authorization", &self.authorization), ("Content-Type", "application/json")]
    }

    /// Returns GETs of `paths` with the token.
    pub(crate) fn gets(&self, paths: &[String]) -> Requests {
        Requests::gets(paths, &self.headers()[..1])
    }

    /// Returns each kind of read: its name, its lowest acceptable ratio, and its paths.
    pub(crate) fn reads(&self) -> Vec<(&'static str, f64, Vec<String>)> {
        let StoreIds { pieces, tags, group, .. } = self.names;
        let each = |path: fn(&str) -> String| -> Vec<String> {
            pieces.iter().take(HOT).map(|(id, _)| path(id)).collect()
        };
        let pages = |more: &str| -> Vec<String> {
            (1..=PAGES).map(|page| format!("/content-pieces/list?page={page}{more}")).collect()
        };
        let last = pieces.len() / 20;
        vec![
            ("get", 0.7, each(|id| format!("/content-pieces?id={id}"))),
            ("get with content", 0.7, each(|id| format!("/content-pieces?id={id}&content=true"))),
            ("list of 20", 0.5, pages("")),
            ("list of 20 with content", 0.7, pages("&content=true")),
            (
                "list of 20 by tag",
                0.5,
                tags.iter().map(|tag| format!("/content-pieces/list?tagId={tag}")).collect(),
            ),
            (
                "by slug",
                0.5,
                (0..HOT)
                    .map(|number| format!("/content-pieces/list?slug=piece-{number}"))
                    .collect(),
            ),
            (
                "deep page",
                0.5,
                (1..=PAGES)
                    .map(|page| {
                        format!(
                            "/content-pieces/list?contentGroupId={group}&page={}",
                            (last - page).max(1)
                        )
                    })
                    .collect(),
            ),
        ]
    }

    /// Returns reads that the response cache serves, with a constant response of the same size as
    /// yardstick.
    pub(crate) fn hot(
        &self,
        galley: &PinnedServer,
        store: &BenchStore,
    ) -> anyhow::Result<Vec<Comparison>> {
        let mut client = SetupClient::connect(galley.address, &store.token)?;
        let mut rows = Vec::new();
        for (name, bar, paths) in self.reads() {
            let size = client.send("GET", &paths[0], None)?.1.len();
            let (requests, yardstick) = (self.gets(&paths), self.gets(&[format!("/{size}")]));
            rows.push(Comparison { name: format!("{name}, hot"), bar, requests, yardstick });
        }
        let path = format!("/content-pieces?id={}&content=true", self.names.pieces[0].0);
        let (head, _) = client.send("GET", &path, None)?;
        let tag = head
            .lines()
            .find_map(|line| line.strip_prefix("etag: "))
            .context("the response has no ETag")?;
        let known = [self.headers()[0], ("If-None-Match", tag)];
        rows.push(Comparison {
            name: "304".to_owned(),
            bar: 0.85,
            requests: Requests::gets(&[path], &known),
            yardstick: Requests::gets(&["/not-modified".to_owned()], &known),
        });
        Ok(rows)
    }

    /// Returns reads of each piece once, with the floor as yardstick.
    pub(crate) fn cold(&self) -> Vec<Comparison> {
        let pieces = &self.names.pieces;
        let gets = pieces.iter().map(|(id, _)| format!("/content-pieces?id={id}&content=true"));
        let lists =
            pieces.iter().map(|(_, order)| format!("/content-pieces/list?lastOrder={order}"));
        let row = |name: &str, bar, paths: Vec<String>| {
            let requests = self.gets(&paths);
            Comparison { name: format!("{name}, cold"), bar, yardstick: requests.clone(), requests }
        };
        vec![row("get with content", 0.7, gets.collect()), row("list of 20", 0.6, lists.collect())]
    }

    /// Returns updates of some pieces' titles.
    pub(crate) fn update(&self) -> Requests {
        let ids = self.names.pieces.iter().take(HOT).map(|(id, _)| format!("'{id}'"));
        let body = format!(
            "local ids = {{{}}}\nfunction body(number)\n  return '{{\"id\":\"' .. ids[number % #ids + 1] .. \
             '\",\"title\":\"Title ' .. number .. '\"}}'\nend",
            ids.collect::<Vec<_>>().join(",")
        );
        Requests::generated("PUT", "/content-pieces", &self.headers(), &body)
    }

    fn create(&self) -> anyhow::Result<Requests> {
        let StoreIds { group, tags, member, .. } = self.names;
        let mut new = piece(0, group, tags, member);
        new["title"] = Value::from("TITLE");
        let text = new.to_string();
        let (before, after) = text.split_once("TITLE").context("a title")?;
        let body = format!(
            "local before, after = [==[{before}]==], [==[{after}]==]\n\
             function body(number)\n  return before .. 'Title ' .. number .. after\nend"
        );
        Ok(Requests::generated("POST", "/content-pieces", &self.headers(), &body))
    }

    /// Returns nineteen reads for each title update.
    fn mixed(&self) -> Requests {
        let ids = self.names.pieces.iter().take(HOT).map(|(id, _)| format!("'{id}'"));
        let lua = format!(
            "local headers = {{['Authorization'] = '{}', ['Content-Type'] = 'application/json'}}\n\
             local ids = {{{}}}\nlocal number = 0\nnext_request = function()\n  number = number + 1\n  \
             local id = ids[number * 7 % #ids + 1]\n  if number % 20 == 0 then\n    \
             return wrk.format('PUT', '/content-pieces', headers, '{{\"id\":\"' .. id .. '\",\"title\":\"Title ' .. number .. '\"}}')\n  end\n  \
             return wrk.format('GET', '/content-pieces?content=true&id=' .. id, headers)\nend\n",
            self.authorization,
            ids.collect::<Vec<_>>().join(",")
        );
        Requests { lua }
    }

    /// Returns writes, with a constant response of 4.6 KB as yardstick.
    pub(crate) fn writes(&self) -> anyhow::Result<Vec<Comparison>> {
        let row = |name: &str, bar, requests| {
            let yardstick = self.gets(&["/4600".to_owned()]);
            Comparison { name: name.to_owned(), bar, requests, yardstick }
        };
        Ok(vec![
            row("title update", 0.08, self.update()),
            row("new piece, with an event for a webhook", 0.05, self.create()?),
            row("95 reads, 5 title updates", 0.0, self.mixed()),
        ])
    }
}
