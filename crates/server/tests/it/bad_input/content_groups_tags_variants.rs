//! Invalid content groups, tags, variants and assets.

use super::table::Table;

const ROWS: &str = r#"
    PUT /content-groups /tags
        {} -> id
        {"id":"$piece"} -> 404 not_found
    DELETE /content-groups /tags
        -> id
        ?id=$piece -> 404 not_found
    POST /content-groups
        {} -> name
        {"name":""} -> name
        {"name":"a\tb","ancestor":1} -> name ancestor
        {"name":"a","uniqueSlugs":"yes"} -> uniqueSlugs
        {"name":"a","customDataSchema":[]} -> customDataSchema
        {"name":"a","previewUrl":"https://example.org/"} -> previewUrl
        {"name":"a","previewUrl":"/{token}"} -> previewUrl
        {"name":"a","previewUrl":"https://example.org/{token}{slug}"} -> previewUrl
    PUT /content-groups
        {"id":"$group","ancestor":"$group"} -> 400 circle ancestor
        {"id":"$group","uniqueSlugs":1} -> uniqueSlugs
        {"id":"$group","uniqueSlugs":null} -> uniqueSlugs
    DELETE /content-groups
        ?id=$group -> 409 not_empty
    GET /content-groups/schema
        -> id
        ?id=$piece -> 404 not_found
    GET /content-groups/schema/violations
        -> id
        ?perPage=101 -> id perPage
        ?id=$group&cursor=x&lastId=y -> cursor
        ?id=$piece -> 404 not_found
    GET /content-groups
        -> id
        ?subtree=2 -> id subtree
        /list?ancestor=a&ancestor=b -> ancestor
        /list?lastId=1 -> lastId
    POST /tags
        {} -> label
        {"label":"","color":""} -> label color
        {"label":"a\nb"} -> label
        {"label":1,"color":2} -> label color
    GET /tags
        -> id
        ?id=%F0%9F%92%A9 -> 404 not_found
        /list?page=0&perPage=x -> page perPage
    POST /variants
        {} -> key label
        {"key":"","label":""} -> key label
        {"key":"De_at","label":"a\tb"} -> key label
        {"key":"de--at","label":"x"} -> key
        {"key":"de-","label":"x"} -> key
        {"key":"de-abcdefghi","label":"x"} -> key
        {"key":"a-bcdefghi-bcdefghi-bcdefghi-bcdefghi","label":"x"} -> key
        {"key":"abcdefghijklmnopqrstu","label":"x"} -> key
        {"key":1,"label":2,"description":3} -> key label description
        {"key":"de","label":"again"} -> 409 key_taken
        {"key":"De","label":"again"} -> 409 key_taken
    PUT /variants
        {} -> id
        {"id":"de","label":"x"} -> 404 not_found
        {"id":"$variant","key":null,"label":null} -> key label
        {"id":"$variant","key":""} -> key
        {"id":"$variant","description":[]} -> description
    GET /variants
        -> id
        ?id=de -> 404 not_found
        ?id=var_0 -> 404 not_found
        /list?lastId=de -> lastId
        /list?perPage=0 -> perPage
    DELETE /variants
        -> id
        ?id=de -> 404 not_found
    POST /assets /assets?filename=a/b /assets?filename=a&filename=b /assets?filename=%00
        {} -> filename
    POST /assets?filename=a&contentGroupId=x /assets?filename=a&contentGroupId=$piece
        {} -> 400 unknown_reference contentGroupId
    PUT /assets
        {} -> id
        {"id":"$piece"} -> 404 not_found
        {"id":"$asset","filename":"","alt":[],"contentGroupId":1} -> filename alt contentGroupId
        {"id":"$asset","filename":".."} -> filename
        {"id":"$asset","contentGroupId":"$tag"} -> 400 unknown_reference contentGroupId
    GET /assets
        -> id
        ?id=$piece -> 404 not_found
        /list?lastId=$piece -> lastId
        /list?perPage=0 -> perPage
        /used-by -> id
        /used-by?id=$tag -> 404 not_found
    DELETE /assets
        -> id
        ?id=$piece -> 404 not_found
        ?id=$asset&force=perhaps -> force
    GET PATCH DELETE /assets/uploads
        -> id
        ?id=$piece -> 404 not_found
    POST /assets/uploads
        {} -> 415 unsupported_media_type
"#;

pub(super) fn add(table: &mut Table<'_>) {
    table.rows(ROWS);
    let long = "é".repeat(1_025);
    let body = format!("{{\"key\":\"k\",\"label\":\"l\",\"description\":\"{long}\"}}");
    table.json("POST", "/variants", &body, "description");
}
