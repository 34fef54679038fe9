//! Invalid content pieces, batches, import sources, and queries.

use super::table::Table;

/// Fields that are set or added in a valid piece.
const PIECES: &str = r#"
    POST /content-pieces
        "title":3 -> title
        "title":["a"] -> title
        "title":true -> title
        "slug":{} -> slug
        "tags":"x" -> tags
        "tags":{} -> tags
        "tags":[1,null,[],{}] -> tags[0] tags[1] tags[2] tags[3]
        "members":false -> members
        "contentGroupId":7 -> contentGroupId
        "date":1763631000 -> date
        "description":[] -> description
        "coverUrl":1 -> coverUrl
        "coverAlt":1,"coverWidth":2 -> coverAlt coverWidth
        "customData":1 -> customData
        "canonicalLink":{} -> canonicalLink
        "filename":[] -> filename
        "content":{"type":"doc"} -> content
        "referenceId":1 -> referenceId
        "title":null -> title
        "slug":null,"tags":null,"members":null -> slug tags members
        "contentGroupId":null -> contentGroupId
        "title":"" -> title
        "slug":"" -> slug
        "slug":"a b" -> slug
        "slug":"a\tb" -> slug
        "slug":"a\u00a0b" -> slug
        "date":"yesterday" -> date
        "date":"2026-02-30" -> date
        "date":"2026-11-20T25:00" -> date
        "coverUrl":"javascript:alert(1)" -> coverUrl
        "coverUrl":"ftp://example.org/a" -> coverUrl
        "canonicalLink":"data:text/html,x" -> canonicalLink
        "canonicalLink":"http://" -> canonicalLink
        "customData":"{" -> customData
        "customData":"{a:1}" -> customData
        "title":1,"slug":" ","date":"x","coverUrl":"x:y" -> title slug date coverUrl
        "tags":["$group"] -> 400 unknown_reference tags[0]
        "tags":["$tag",{"id":"$piece"}] -> 400 unknown_reference tags[1]
        "members":["$tag"] -> 400 unknown_reference members[0]
        "members":["$MEMBER"] -> 400 unknown_reference members[0]
        "contentGroupId":"$tag" -> 400 unknown_reference contentGroupId
        "contentGroupId":"" -> 400 unknown_reference contentGroupId
        "contentGroupId":"cg_00000000000000000000000000" -> 400 unknown_reference contentGroupId
        "referenceId":"$group" -> 400 unknown_reference referenceId
        "referenceId":"cp_00000000000000000000000000" -> 400 unknown_reference referenceId
        "title":"$x*1025" -> title
        "slug":"$x*513" -> slug
        "coverAlt":"$x*1025" -> coverAlt
        "coverWidth":"$x*1025" -> coverWidth
        "filename":"$x*1025" -> filename
        "coverUrl":"$x*2049" -> coverUrl
        "canonicalLink":"$x*2049" -> canonicalLink
        "description":"$x*65537" -> description
        "content":"$x*2097153" -> content
"#;

/// Updates of a variant of a piece.
const OVERRIDES: &str = r#"
    PUT /content-pieces
        "title":"" -> title
        "title":1,"slug":" " -> title slug
        "tags":{} -> tags
        "tags":["x"] -> 400 unknown_reference tags[0]
        "tags":["$variant"] -> 400 unknown_reference tags[0]
        "title":null,"members":["wm_00000000000000000000000000"] -> 400 unknown_reference members[0]
        "contentGroupId":null -> contentGroupId
        "customData":"{" -> customData
        "content":{} -> content
        "title":"x","referenceId":"$piece" -> referenceId
"#;

const OTHERS: &str = r#"
    PUT /content-pieces
        {} -> id
        {"id":null} -> id
        {"id":7} -> id
        {"id":"$tag"} -> 404 not_found
        {"id":"x","title":3} -> title
        {"id":"$piece","title":null} -> title
        {"id":"$piece","tags":["x"]} -> 400 unknown_reference tags[0]
        {"id":"$piece","variant":"fr"} -> 404 not_found
        {"id":"$piece","variant":"FR"} -> 404 not_found
        {"id":"$piece","variant":"$tag"} -> 404 not_found
        {"id":"$piece","variant":[]} -> variant
        {"variant":"de"} -> id
        {"id":"$tag","variant":"de"} -> 404 not_found
        {"id":"$piece","variant":1} -> variant
        {"id":"$piece","referenceId":"$piece"} -> referenceId
        {"id":"$piece","autosave":"yes","note":1} -> autosave note
        {"id":"$piece","autosave":null} -> autosave
        {"id":"$piece","note":"a\nb"} -> note
        {"id":"$piece","note":"$x*256"} -> note
    PUT /content-pieces/revision
        {} -> id revision
        {"id":"$piece","revision":1,"note":[]} -> revision note
        {"id":"$piece","revision":"x"} -> 404 not_found
        {"id":"$piece","revision":"$tag","note":"x"} -> 404 not_found
    POST /content-pieces/restore
        {} -> id revision
        {"id":"$piece","revision":"x","fields":[]} -> fields
        {"id":"$piece","revision":"x","fields":["title","name",1]} -> fields[1] fields[2]
        {"id":"$piece","revision":"x"} -> 404 not_found
    POST /content-pieces/publish
        {} -> id
        {"id":7,"at":"soon","unpublishAt":[],"subtree":1} -> id at unpublishAt subtree
        {"id":"x"} -> 404 not_found
        {"id":"$tag"} -> 404 not_found
        {"id":"$piece","revision":"x"} -> 404 not_found
        {"id":"$piece","revision":"$tag"} -> 404 not_found
        {"id":"$piece","contentGroupId":"$group"} -> contentGroupId
        {"id":"$piece","subtree":true} -> subtree
        {"id":"$piece","at":"2027-01-02","unpublishAt":"2027-01-01"} -> unpublishAt
        {"contentGroupId":null} -> contentGroupId
        {"contentGroupId":"x"} -> 400 unknown_reference contentGroupId
        {"contentGroupId":"$tag"} -> 400 unknown_reference contentGroupId
        {"contentGroupId":"$group","at":"2027-01-01"} -> at
        {"contentGroupId":"$group","revision":null} -> revision
        {"contentGroupId":"$group","unpublishAt":null} -> unpublishAt
    POST /content-pieces/preview
        {} -> id
        {"id":[]} -> id
        {"id":"x"} -> 404 not_found
        {"id":"$tag"} -> 404 not_found
    POST /content-pieces/unpublish
        {} -> id
        {"id":7,"at":7} -> id at
        {"id":"x"} -> 404 not_found
        {"id":"$piece","at":"yesterday"} -> at
    POST /content-pieces/undelete
        {} -> id
        {"id":7,"contentGroupId":[]} -> id contentGroupId
        {"id":null} -> id
        {"id":"x"} -> 404 not_found
        {"id":"$tag"} -> 404 not_found
        {"id":"$piece"} -> 404 not_found
        {"id":"$group"} -> 404 not_found
    GET /content-pieces
        -> id
        ?id= -> id
        ?id=a&id=b -> id
        ?id=%00 -> id
        ?content=x -> id content
        ?variant=de -> id
        ?id=x&fields=titel -> fields
        /revisions -> id
        /revisions?id=x&lastId=1 -> lastId
        /trash?perPage=0 -> perPage
        /trash?cursor=W10 -> cursor
        /revisions?id=x&perPage=0 -> perPage
        /revision?id=x -> revision
        /revision?id=x&revision=a&revision=b -> revision
        /diff?id=x&from=y -> to
        /diff?id=x&from=y&to=z&format=xml -> format
        /search?perPage=0 -> perPage
        /search?perPage=101 -> perPage
        /search?query=a&query=b -> query
        /search?query=a&cursor=W10 -> cursor
        /search?query=a&state=gone -> state
        /list?page=-1 -> page
        /list?page=1.5 -> page
        /list?page=1e3 -> page
        /list?page=99999999999999999999 -> page
        /list?page=%2B1 -> page
        /list?perPage=0 -> perPage
        /list?perPage=1001 -> perPage
        /list?perPage=10&perPage=20 -> perPage
        /list?lastOrder=%27 -> lastOrder
        /list?cursor=W10 -> cursor
        /list?sort=;drop -> sort
        /list?state=gone -> state
        /list?state=draft&state=changed -> state
        /list?updatedSince=yesterday -> updatedSince
        /list?dateFrom=2026-13-01&dateTo=2026-02-30 -> dateFrom dateTo
        /list?dateTo=2026-11-20T09:30:00+01:00 -> dateTo
        /list?dateFrom=2026&dateFrom=2027 -> dateFrom
        /list?variant=de&variant=fr -> variant
        /list?hasVariant=de&hasVariant=fr -> hasVariant
        /list?withoutVariant=de&withoutVariant=fr -> withoutVariant
        /list?memberId=a&memberId=b -> memberId
        /list?allTags=all&total=yes -> allTags total
        /list?hasVariant=%00&withoutVariant=%00 -> hasVariant withoutVariant
        /list?tagId=%00&memberId=%00 -> tagId memberId
        /list?variant=%00 -> variant
        /list?variant=fr -> 404 not_found
        /list?variant=fr&contentGroupId=x -> 404 not_found
    DELETE /content-pieces
        -> id
        ?id=1&permanent=perhaps -> permanent
        ?id=1&permanent=true -> 404 not_found
        ?id=$group&permanent=true -> 404 not_found
        /revision?id=1 -> revision
        /revision?revision=1&id= -> id
        /revision?id=$piece&revision=1 -> 404 not_found
        ?id=1 -> 404 not_found
    POST /content-pieces/batch
        {} -> pieces
        {"pieces":null} -> pieces
        {"pieces":{}} -> pieces
        {"pieces":[]} -> pieces
    POST /content-pieces/convert
        {} -> content
        {"content":null} -> content
        {"content":1} -> content
        {"content":"x","contentFormat":"xml"} -> contentFormat
        {"content":{"type":"doc"},"contentFormat":"html"} -> contentFormat
        {"content":{"type":"doc"}} -> content
    POST /imports
        {} -> contentGroupId files
        {"contentGroupId":"$group","files":[]} -> files
        {"contentGroupId":"$group","files":[1]} -> files[0]
        {"contentGroupId":"$group","files":[{"name":"a/../b.md"}]} -> files[0].name files[0].content
        {"contentGroupId":"$group","files":[{"name":"/a.md","content":"x"}]} -> files[0].name
        {"contentGroupId":"cg_1","files":[{"name":"a.md","content":"x"}]} -> 400 unknown_reference contentGroupId
        {"contentGroupId":"$group","files":[{"name":"a.md","content":"x"}],"tagLabels":[1],"variants":["x y"]} -> tagLabels[0] variants[0]
        {"contentGroupId":"$group","files":[{"name":"a.md","content":"x"}],"dryRun":1,"groups":"x"} -> groups dryRun
        {"contentGroupId":"$group","files":[{"name":"a.md","content":"x"}],"assets":[{"name":"../a","hash":"x"},1]} -> assets[1]
        {"contentGroupId":"$group","files":[{"name":"a.md","content":"x"}],"assets":[{"name":"../a","hash":"x"}]} -> assets[0].name assets[0].hash
    PUT /content-pieces/sources
        {} -> sources
        {"sources":[]} -> sources
        {"sources":{}} -> sources
        {"sources":[{},1]} -> sources[1]
    GET /content-pieces/sources
        ?lastId=x -> lastId
        ?cursor=x -> cursor
        ?perPage=1001 -> perPage
"#;

/// Returns a valid piece's body with `fields` set or added.
fn piece_with(fields: &str) -> String {
    let valid = [
        ("title", "\"t\""),
        ("slug", "\"s\""),
        ("tags", "[]"),
        ("members", "[]"),
        ("contentGroupId", "\"$group\""),
    ];
    let other = valid.iter().filter(|(name, _)| !fields.contains(&format!("\"{name}\":")));
    let other = other.map(|(name, value)| format!("\"{name}\":{value}"));
    let given = (!fields.is_empty()).then(|| fields.to_owned());
    format!("{{{}}}", other.chain(given).collect::<Vec<_>>().join(","))
}

pub(super) fn add(table: &mut Table<'_>) {
    table.rows_in(PIECES, piece_with);
    for variant in ["de", "$variant"] {
        table.rows_in(OVERRIDES, |fields| {
            format!("{{\"id\":\"$piece\",\"variant\":\"{variant}\",{fields}}}")
        });
    }
    table.rows(OTHERS);
    let mut add = |fields: &str, expected| {
        table.json("POST", "/content-pieces", &piece_with(fields), expected);
    };
    add(&format!("\"customData\":\"[{}1]\"", "1,".repeat(131_072)), "customData");
    add(&format!("\"tags\":[{}]", vec!["\"$tag\""; 101].join(",")), "tags");
    let deep = "<blockquote>".repeat(300);
    add(&format!("\"content\":\"{deep}\""), "400 content_too_deep content");
    batches(table);
    sources(table);
}

fn batches(table: &mut Table<'_>) {
    let good = piece_with("");
    let mut add = |pieces: &str, expected: &str| {
        table.json(
            "POST",
            "/content-pieces/batch",
            &format!("{{\"pieces\":[{pieces}]}}"),
            expected,
        );
    };
    add(&vec!["{}"; 101].join(","), "pieces");
    add(&format!("1,{good},null"), "pieces[0] pieces[2]");
    let second = r#"{"title":"","slug":"s","tags":["$group"],"members":[]}"#;
    let issues = "pieces[1].title pieces[1].tags[0] pieces[1].contentGroupId";
    add(&format!("{good},{second}"), issues);
    let second = good.replace("$group", "$tag");
    add(&format!("{good},{second}"), "400 unknown_reference pieces[1].contentGroupId");
    let second = good.replacen('{', "{\"referenceId\":\"cp_x\",", 1);
    add(&format!("{good},{second}"), "400 unknown_reference pieces[1].referenceId");
    for query in ["dryRun=true", "dryRun=yes", "dryRun=true&dryRun=true", "dryRun=%FF"] {
        let path = format!("/content-pieces/batch?{query}");
        table.json("POST", &path, &format!("{{\"pieces\":[{good}]}}"), "dryRun");
    }
}

fn sources(table: &mut Table<'_>) {
    let mut add = |sources: &str, expected: &str| {
        let body = format!("{{\"sources\":[{sources}]}}");
        table.json("PUT", "/content-pieces/sources", &body, expected);
    };
    let unknown = r#"{"contentPieceId":"cp_x","sourceHash":"a","importedHash":"b"}"#;
    let known = unknown.replace("cp_x", "$piece");
    add(&vec![unknown; 101].join(","), "sources");
    add("{}", "sources[0].contentPieceId sources[0].sourceHash sources[0].importedHash");
    for hash in ["\"\"", "1", "null", "\"a b\"", "\"\u{e9}\""] {
        add(&known.replace("\"a\"", hash), "sources[0].sourceHash");
    }
    add(unknown, "400 unknown_reference sources[0].contentPieceId");
    let of_variant = known.replacen('{', "{\"variant\":\"none\",", 1);
    add(&of_variant, "400 unknown_reference sources[0].variant");
}
