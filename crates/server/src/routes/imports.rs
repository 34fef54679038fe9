//! `/imports`

use galley_api_types::import::{
    ImportAsset, ImportFile, ImportFindingBody, ImportReportBody, ImportedDocumentBody, NewImport,
    ReferredFileBody,
};
use galley_api_types::problem::Step;
use galley_api_types::request::{Fields, IssueRecorded, Parsed, RequestBody};
use galley_domain::asset::FileHash;
use galley_import::{DocumentReport, FindingGroup, ImportOutcome, Named, Report};

use crate::extract::actor::WriteContentPieces;
use crate::extract::body::JsonBody;
use crate::extract::request;
use crate::resources::overload;
use crate::routes::prelude::*;

/// The limit on the sources of a kind of findings.
const SOURCES_MAX: usize = 100;

/// Import files
///
/// Imports Markdown with front matter, HTML, and exports of WordPress (`.xml`) and Ghost
/// (`.json`), as `galley import` does. A piece is identified by the name of its source, so a second
/// import updates changed pieces and creates no duplicates. Each file that can't be imported is
/// reported, and all others are imported. If the request is interrupted, a repeat continues it.
///
/// Images and linked files in `assets` are named by their hashes. A dry run reports those that are
/// to be uploaded first (`POST /assets`). Their addresses in documents become those of the assets.
///
/// Besides, the token needs `tags:write` and `workspaceMemberships:read`, `publishing:write`
/// unless `publish` is false, `contentGroups:write` with `groups`, `variants:write` with
/// `variants`, and `assets:read` with `assets`. It must not be limited to groups.
#[utoipa::path(
    post, path = "/imports", operation_id = "importFiles",
    request_body = NewImport,
    responses(
        (status = 200, body = ImportReportBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentPieces>,
    body: JsonBody,
) -> Result<Response, Problem> {
    let size = body.bytes.len();
    let (fields, parsed) = app.run_by_size(size, move || parse(body.fields)).await?;
    let (new, files, assets) = request::finish(actor.caller(), fields, parsed).await?;
    let dry_run = new.dry_run.unwrap_or(false);
    let _permit = app.import_permit().await;
    let import = galley_import::import_files(actor.caller(), new, files, assets);
    let report = overload::uncounted(Box::pin(import)).await?;
    Ok(response::ok(&body_of(&report, dry_run)))
}

type ParsedImport = (NewImport, Vec<Named<String>>, Vec<Named<FileHash>>);

/// Parses the choices and each file.
fn parse(mut fields: Fields) -> (Fields, Parsed<ParsedImport>) {
    let parsed = NewImport::parse(&mut fields).and_then(|mut new| {
        let files = items::<ImportFile>(&mut fields, "files", std::mem::take(&mut new.files.0));
        let assets = new.assets.take().map_or_else(Vec::new, |assets| assets.0);
        let assets = items::<ImportAsset>(&mut fields, "assets", assets);
        if fields.has_issues() {
            return Err(IssueRecorded);
        }
        let files = files.into_iter().map(|file| (file.name, file.content)).collect();
        let assets = assets.into_iter().map(|asset| (asset.name, asset.hash)).collect();
        Ok((new, files, assets))
    });
    (fields, parsed)
}

/// Parses the objects of a list. Issues have their places in the list.
fn items<B: RequestBody>(
    fields: &mut Fields,
    name: &str,
    objects: Vec<serde_json::Map<String, serde_json::Value>>,
) -> Vec<B> {
    let mut parsed = Vec::with_capacity(objects.len());
    for (index, object) in objects.into_iter().enumerate() {
        let mut own = Fields::new(object);
        match B::parse(&mut own) {
            Ok(item) if !own.has_issues() => parsed.push(item),
            _ => {
                let place = [Step::Field(name.to_owned()), Step::Item(index)];
                let (issues, _) = own.into_issues_and_references();
                fields.add_issues(issues.into_iter().map(|one| one.prefixed(&place)).collect());
            }
        }
    }
    parsed
}

fn body_of(report: &Report, dry_run: bool) -> ImportReportBody<'_> {
    ImportReportBody {
        dry_run,
        created: report.created,
        updated: report.updated,
        unchanged: report.unchanged,
        published: report.published,
        scheduled: report.scheduled,
        unpublished: report.unpublished,
        documents: report.documents.iter().map(document).collect(),
        problems: &report.problems,
        findings: report
            .kinds
            .iter()
            .map(|kind| ImportFindingBody {
                group: group_name(kind.group),
                what: &kind.what,
                count: kind.count,
                sources: kind
                    .places
                    .iter()
                    .map(|place| place.source.as_str())
                    .take(SOURCES_MAX)
                    .collect(),
            })
            .collect(),
        assets: report
            .referred_files
            .iter()
            .map(|(name, is_missing)| ReferredFileBody { name, is_missing: *is_missing })
            .collect(),
    }
}

fn document(report: &DocumentReport) -> ImportedDocumentBody<'_> {
    let (outcome, problem) = match &report.outcome {
        ImportOutcome::Created => ("created", None),
        ImportOutcome::Updated => ("updated", None),
        ImportOutcome::Unchanged => ("unchanged", None),
        ImportOutcome::Conflict => ("conflict", None),
        ImportOutcome::Rejected(problem) => ("rejected", Some(problem.as_str())),
    };
    ImportedDocumentBody { source: &report.source, outcome, problem }
}

fn group_name(group: FindingGroup) -> &'static str {
    match group {
        FindingGroup::LeftOut => "leftOut",
        FindingGroup::Unpublished => "unpublished",
        FindingGroup::Assumed => "assumed",
        FindingGroup::Missing => "missing",
        FindingGroup::Lost => "lost",
        FindingGroup::Unresolved => "dangling",
    }
}
