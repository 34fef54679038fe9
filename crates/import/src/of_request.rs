//! An import of files that a request contains.

use std::collections::HashSet;
use std::sync::Arc;

use galley_api_types::import::NewImport;
use galley_application::operations::imports;
use galley_application::{Caller, Error};
use galley_domain::Permission;
use galley_domain::asset::FileHash;
use galley_domain::import_source::SourcePath;
use galley_domain::permission::Resource;
use galley_storage::{Cause, Error as StorageError};

use crate::assets::AssetImporter;
use crate::database::DatabaseDestination;
use crate::language::language_form;
use crate::report::Report;
use crate::run::{ImportOptions, import_into};
use crate::sources;

/// A file of a request by its name, with its text or its hash.
pub type Named<T> = (SourcePath, T);

/// Imports files with the permissions of the caller. An import that stops in the middle has kept
/// its earlier batches, and a repeated request continues it.
pub async fn import_files(
    caller: &Caller,
    new: NewImport,
    files: Vec<Named<String>>,
    assets: Vec<Named<FileHash>>,
) -> Result<Report, Error> {
    let mut seen = HashSet::new();
    let keys = new.variants.map_or_else(Vec::new, |texts| texts.0).into_iter();
    let keys = keys.filter(|key| seen.insert(language_form(key)));
    let languages: Vec<_> = keys.map(|key| key.as_str().to_owned()).collect();
    let publishes = new.publish.unwrap_or(true);
    let groups = new.groups.unwrap_or(false);
    let needed = [
        (groups, Resource::ContentGroups),
        (!languages.is_empty(), Resource::Variants),
        (publishes, Resource::Publishing),
    ];
    let needed = needed.into_iter().filter(|(is_needed, _)| *is_needed);
    let mut needed: Vec<_> = needed.map(|(_, resource)| Permission::write(resource)).collect();
    needed.extend((!assets.is_empty()).then_some(Permission::read(Resource::Assets)));
    let access = imports::authorize(caller, new.content_group_id, &needed).await?;
    let named = (!assets.is_empty()).then(|| {
        let names = assets.into_iter().map(|(name, hash)| (name.as_str().to_owned(), hash));
        let importer = AssetImporter::into_database(access.assets.clone(), new.content_group_id);
        let is_dry_run = new.dry_run.unwrap_or(false);
        Arc::new(importer.with_named(names).as_dry_run(is_dry_run))
    });
    let options = ImportOptions {
        group: new.content_group_id,
        groups,
        labels: new.tag_labels.map_or_else(Vec::new, |texts| texts.0),
        no_drafts: !new.drafts.unwrap_or(true),
        no_publish: !publishes,
        overwrite: new.overwrite.unwrap_or(false),
        dry_run: new.dry_run.unwrap_or(false),
        lists_documents: true,
        assets: named,
        languages,
    };
    let files = files.into_iter().map(|(name, text)| (name.as_str().to_owned(), text));
    let found = sources::named(files.collect(), &options.languages);
    let place = DatabaseDestination::new(access.database, access.environment, access.scope, true);
    let imported = import_into(place, options, found, |_| {}).await;
    let (mut report, done) = imported.map_err(into_error)?;
    done.map_err(into_error)?;
    report.sort();
    Ok(report)
}

/// Returns the error of the store, or of an operation.
fn into_error(error: anyhow::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(other) => StorageError::Engine(Cause::new(other)).into(),
    }
}
