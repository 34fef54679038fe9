//! `galley import`: Markdown, HTML, and exports of other systems become content pieces.
//!
//! A piece is known by its source: a file's path below the folder that was named, or a post's id, kept as its
//! `filename`. So importing again updates what changed and repeats nothing. What can't be read is named, with
//! the line, and everything else is imported all the same.

mod autop;
mod front_matter;
mod ghost;
mod html;
mod load;
mod losses;
pub(crate) mod markdown;
mod raw;
mod read;
mod sources;
mod wordpress;

use std::process::ExitCode;

use anyhow::{Context, bail};
use galley_domain::tag::TagLabel;
use galley_domain::{ContentGroupId, WorkspaceId};
use galley_server::operations::Scope;
use galley_server::{Environment, Error};
use galley_storage::{Database, Tx, content_groups};

use crate::cli::ImportArguments;
use crate::out::say;
use crate::settings::Settings;
use crate::{progress, store};
use load::{Loader, Outcome, Target};
use losses::Losses;

/// What came of the files.
#[derive(Debug, Default)]
struct Report {
    created: usize,
    updated: usize,
    unchanged: usize,
    problems: Vec<String>,
    losses: Losses,
}

pub(crate) async fn run(
    settings: &Settings,
    arguments: &ImportArguments,
) -> anyhow::Result<ExitCode> {
    for language in &arguments.variants {
        load::variant_key(language).map_err(|problem| anyhow::anyhow!("--variants: {problem}"))?;
    }
    let found = sources::find(&arguments.sources, &arguments.variants)?;
    let labels = arguments.tags.iter().map(|label| {
        TagLabel::parse(label.as_str()).map_err(|invalid| anyhow::anyhow!("--tag {invalid}"))
    });
    let labels = labels.collect::<anyhow::Result<_>>()?;
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let workspace = store::workspace(&database, arguments.workspace.as_deref()).await?;
    let target = Target {
        scope: Scope::whole(workspace),
        group: find_group(&database, workspace, &arguments.group).await?,
        labels,
        groups: arguments.groups,
        language: arguments.variants.first().cloned(),
    };
    let mut loader = Loader::new(database.clone(), environment, target).await?;
    let mut report = Report { problems: found.problems, ..Report::default() };
    let bar = progress::bar("pieces", found.files.len() as u64);
    let mut units = read::units(found.files);
    let mut some = Vec::new();
    while units.recv_many(&mut some, load::BATCH).await > 0 {
        let mut count = some.len() as u64;
        let mut documents = Vec::new();
        for outcome in read::all(std::mem::take(&mut some)).await {
            match outcome {
                read::Outcome::Document(document) if document.draft && arguments.no_drafts => {
                    report.losses.leave_out("drafts".to_owned());
                }
                read::Outcome::Document(document) => {
                    report.losses.add(&document);
                    documents.push(*document);
                }
                read::Outcome::More(more) => {
                    bar.inc_length(more);
                    count -= 1;
                }
                read::Outcome::LeftOut(what) => report.losses.leave_out(what),
                read::Outcome::Problem(problem) => report.problems.push(problem),
            }
        }
        let outcomes = if arguments.dry_run {
            loader.compare(&documents)
        } else {
            loader.load(documents).await?
        };
        report.count(outcomes);
        bar.inc(count);
    }
    bar.finish_and_clear();
    database.close().await;
    Ok(report.print(arguments.dry_run))
}

/// The group of this id, or the oldest one at the top of this name.
pub(crate) async fn find_group(
    database: &Database,
    workspace: WorkspaceId,
    wanted: &str,
) -> anyhow::Result<ContentGroupId> {
    let read = async move |tx: &Tx<'_>| {
        let most = 10_000;
        Ok::<_, Error>(content_groups::list_children(tx, workspace, None, None, most, 0).await?)
    };
    let top = database.read("content_groups.list_children", read).await?;
    if let Ok(id) = wanted.parse::<ContentGroupId>() {
        let find = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(content_groups::existing(tx, workspace, &[id], None).await?)
        };
        let found = database.read("content_groups.existing", find).await?;
        return found.into_iter().next().with_context(|| format!("there is no content group {id}"));
    }
    if let Some(group) = top.iter().find(|group| group.name.as_str() == wanted) {
        return Ok(group.id);
    }
    let names: Vec<_> = top.iter().map(|group| group.name.as_str()).collect();
    bail!("there is no content group {wanted:?} at the top; there are {names:?}")
}

impl Report {
    fn count(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            match outcome {
                Outcome::Created => self.created += 1,
                Outcome::Updated => self.updated += 1,
                Outcome::Unchanged => self.unchanged += 1,
                Outcome::Refused(problem) => self.problems.push(problem),
            }
        }
    }

    /// Says what was done, and what could not be; the exit status tells, too.
    fn print(&mut self, dry_run: bool) -> ExitCode {
        let (created, known, problems) =
            (self.created, self.updated + self.unchanged, self.problems.len());
        if dry_run {
            say!(
                "{created} would be imported, {known} are there already, {problems} with problems"
            );
        } else {
            let (updated, unchanged) = (self.updated, self.unchanged);
            say!(
                "{created} imported, {updated} updated, {unchanged} unchanged, {problems} with problems"
            );
        }
        self.losses.print();
        for problem in &self.problems {
            eprintln!("{problem}");
        }
        if self.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
