//! Invalid requests of every kind. Each gets a 4xx response that names the error, and changes
//! nothing.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use crate::response_validation::DOCUMENT;
use crate::service::{Service, TestResponse};

/// An invalid request and its expected response.
struct InvalidRequest {
    method: Method,
    path: String,
    body: InvalidBody,
    status: u16,
    reason: &'static str,
    issues: &'static [&'static str],
}

enum InvalidBody {
    None,
    Json(String),
    Bytes(Vec<u8>),
    Typed(&'static str, &'static str),
}

/// The identifiers that requests of the table use.
struct ExistingIds {
    piece: String,
    group: String,
    tag: String,
    /// A variant whose key is `de`.
    variant: String,
    member: String,
    /// The id of an existing role.
    role: String,
    token: String,
    /// The id of a webhook for added members.
    webhook: String,
}

/// Returns a piece's body with `fields` set or added.
fn piece(names: &ExistingIds, fields: &str) -> InvalidBody {
    let group = &names.group;
    let all = [
        ("title", "\"t\"".to_owned()),
        ("slug", "\"s\"".to_owned()),
        ("tags", "[]".to_owned()),
        ("members", "[]".to_owned()),
        ("contentGroupId", format!("\"{group}\"")),
    ];
    let kept: Vec<String> = all
        .iter()
        .filter(|(name, _)| !fields.contains(&format!("\"{name}\":")))
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .chain((!fields.is_empty()).then(|| fields.to_owned()))
        .collect();
    InvalidBody::Json(format!("{{{}}}", kept.join(",")))
}

fn table(names: &ExistingIds) -> Vec<InvalidRequest> {
    let ExistingIds { piece: id, group, tag, variant, member, .. } = names;
    let mut table = Vec::new();
    let mut add = |method: &str, path: &str, body: InvalidBody, status, reason, issues| {
        let method = method.parse().unwrap();
        table.push(InvalidRequest { method, path: path.to_owned(), body, status, reason, issues });
    };
    let pieces = "/content-pieces";

    // Bodies that are not JSON objects.
    for body in [
        "",
        " ",
        "{",
        "[]",
        "null",
        "\"text\"",
        "3",
        "true",
        "{}{}",
        "{a:1}",
        "{\"a\":1,}",
        "{'a':1}",
        "{\"title\":\"a\",\"title\":\"b\"}",
        "{\"x\":{\"a\":1,\"a\":1}}",
        "{\"title\":\"\\ud800\"}",
        "{\"title\":\"\\udc00\\ud800\"}",
        "{\"title\":\"a\\u0000b\"}",
        "{\"a\\u0000\":1}",
        "{\"title\":\"a\nb\"}",
        "{\"n\":01}",
        "{\"n\":1e999}",
        "{\"n\":NaN}",
        "\u{feff}{}",
    ] {
        add("POST", pieces, InvalidBody::Json(body.to_owned()), 400, "malformed_body", &[]);
    }
    let nested = format!("{{\"x\":{}{}}}", "[".repeat(128), "]".repeat(128));
    add("POST", pieces, InvalidBody::Json(nested), 400, "malformed_body", &[]);
    add(
        "PUT",
        pieces,
        InvalidBody::Bytes(b"{\"title\":\"\xff\"}".to_vec()),
        400,
        "malformed_body",
        &[],
    );
    add("POST", pieces, InvalidBody::Bytes(vec![b'['; 100_000]), 400, "malformed_body", &[]);
    add("POST", pieces, InvalidBody::Typed("text/plain", "{}"), 415, "unsupported_media_type", &[]);
    add(
        "PUT",
        "/tags",
        InvalidBody::Typed("application/xml", "<a/>"),
        415,
        "unsupported_media_type",
        &[],
    );

    // Types.
    for (fields, issues) in [
        ("\"title\":3", &["title"][..]),
        ("\"title\":[\"a\"]", &["title"]),
        ("\"title\":true", &["title"]),
        ("\"slug\":{}", &["slug"]),
        ("\"tags\":\"x\"", &["tags"]),
        ("\"tags\":{}", &["tags"]),
        ("\"tags\":[1,null,[],{}]", &["tags[0]", "tags[1]", "tags[2]", "tags[3]"]),
        ("\"members\":false", &["members"]),
        ("\"contentGroupId\":7", &["contentGroupId"]),
        ("\"date\":1763631000", &["date"]),
        ("\"description\":[]", &["description"]),
        ("\"coverUrl\":1", &["coverUrl"]),
        ("\"coverAlt\":1,\"coverWidth\":2", &["coverAlt", "coverWidth"]),
        ("\"customData\":1", &["customData"]),
        ("\"canonicalLink\":{}", &["canonicalLink"]),
        ("\"filename\":[]", &["filename"]),
        ("\"content\":{\"type\":\"doc\"}", &["content"]),
        ("\"referenceId\":1", &["referenceId"]),
        // Missing and null.
        ("\"title\":null", &["title"]),
        ("\"slug\":null,\"tags\":null,\"members\":null", &["slug", "tags", "members"]),
        ("\"contentGroupId\":null", &["contentGroupId"]),
        // Values.
        ("\"title\":\"\"", &["title"]),
        ("\"slug\":\"\"", &["slug"]),
        ("\"slug\":\"a b\"", &["slug"]),
        ("\"slug\":\"a\\tb\"", &["slug"]),
        ("\"slug\":\"a\\u00a0b\"", &["slug"]),
        ("\"date\":\"yesterday\"", &["date"]),
        ("\"date\":\"2026-02-30\"", &["date"]),
        ("\"date\":\"2026-11-20T25:00\"", &["date"]),
        ("\"coverUrl\":\"javascript:alert(1)\"", &["coverUrl"]),
        ("\"coverUrl\":\"ftp://example.org/a\"", &["coverUrl"]),
        ("\"canonicalLink\":\"data:text/html,x\"", &["canonicalLink"]),
        ("\"canonicalLink\":\"http://\"", &["canonicalLink"]),
        ("\"customData\":\"{\"", &["customData"]),
        ("\"customData\":\"{a:1}\"", &["customData"]),
        (
            "\"title\":1,\"slug\":\" \",\"date\":\"x\",\"coverUrl\":\"x:y\"",
            &["title", "slug", "date", "coverUrl"],
        ),
    ] {
        add("POST", pieces, piece(names, fields), 400, "validation", issues);
    }

    // Batches.
    let InvalidBody::Json(good) = piece(names, "") else { unreachable!("it is JSON") };
    for (text, reason, issues) in [
        ("{}".to_owned(), "validation", &["pieces"][..]),
        ("{\"pieces\":null}".to_owned(), "validation", &["pieces"]),
        ("{\"pieces\":{}}".to_owned(), "validation", &["pieces"]),
        ("{\"pieces\":[]}".to_owned(), "validation", &["pieces"]),
        (format!("{{\"pieces\":[{}]}}", vec!["{}"; 101].join(",")), "validation", &["pieces"]),
        (format!("{{\"pieces\":[1,{good},null]}}"), "validation", &["pieces[0]", "pieces[2]"]),
        (
            format!(
                "{{\"pieces\":[{good},{{\"title\":\"\",\"slug\":\"s\",\"tags\":[\"{group}\"],\"members\":[]}}]}}"
            ),
            "validation",
            &["pieces[1].title", "pieces[1].tags[0]", "pieces[1].contentGroupId"],
        ),
        (
            format!("{{\"pieces\":[{good},{}]}}", good.replace(group.as_str(), tag)),
            "unknown_reference",
            &["pieces[1].contentGroupId"],
        ),
        (
            format!(
                "{{\"pieces\":[{good},{}]}}",
                good.replacen('{', "{\"referenceId\":\"cp_x\",", 1)
            ),
            "unknown_reference",
            &["pieces[1].referenceId"],
        ),
    ] {
        add("POST", "/content-pieces/batch", InvalidBody::Json(text), 400, reason, issues);
    }
    for query in ["dryRun=true", "dryRun=yes", "dryRun=true&dryRun=true", "dryRun=%FF"] {
        let one = InvalidBody::Json(format!("{{\"pieces\":[{good}]}}"));
        let path = format!("/content-pieces/batch?{query}");
        add("POST", &path, one, 400, "validation", &["dryRun"]);
    }

    let source = "{\"contentPieceId\":\"cp_x\",\"sourceHash\":\"a\",\"importedHash\":\"b\"}";
    for (text, issues) in [
        ("{}".to_owned(), &["sources"][..]),
        ("{\"sources\":[]}".to_owned(), &["sources"]),
        ("{\"sources\":{}}".to_owned(), &["sources"]),
        (format!("{{\"sources\":[{}]}}", vec![source; 101].join(",")), &["sources"]),
        ("{\"sources\":[{},1]}".to_owned(), &["sources[1]"]),
        (
            "{\"sources\":[{}]}".to_owned(),
            &["sources[0].contentPieceId", "sources[0].sourceHash", "sources[0].importedHash"],
        ),
    ] {
        add("PUT", "/content-pieces/sources", InvalidBody::Json(text), 400, "validation", issues);
    }
    for hash in ["\"\"", "1", "null", "\"a b\"", "\"\u{e9}\""] {
        let text = source.replace("\"a\"", hash).replace("cp_x", id);
        let text = format!("{{\"sources\":[{text}]}}");
        let issues = &["sources[0].sourceHash"];
        add("PUT", "/content-pieces/sources", InvalidBody::Json(text), 400, "validation", issues);
    }
    let text = format!("{{\"sources\":[{source}]}}");
    let issues = &["sources[0].contentPieceId"];
    add(
        "PUT",
        "/content-pieces/sources",
        InvalidBody::Json(text),
        400,
        "unknown_reference",
        issues,
    );
    let text = source.replace("cp_x", id).replacen('{', "{\"variant\":\"none\",", 1);
    let text = format!("{{\"sources\":[{text}]}}");
    let issues = &["sources[0].variant"];
    add(
        "PUT",
        "/content-pieces/sources",
        InvalidBody::Json(text),
        400,
        "unknown_reference",
        issues,
    );
    for (query, issues) in
        [("lastId=x", &["lastId"]), ("cursor=x", &["cursor"]), ("perPage=1001", &["perPage"])]
    {
        let path = format!("/content-pieces/sources?{query}");
        add("GET", &path, InvalidBody::Json(String::new()), 400, "validation", issues);
    }

    // Too long.
    for (name, length) in [
        ("title", 1_025),
        ("slug", 513),
        ("coverAlt", 1_025),
        ("coverWidth", 1_025),
        ("filename", 1_025),
        ("coverUrl", 2_049),
        ("canonicalLink", 2_049),
        ("description", 65_537),
        ("content", 2_097_153),
    ] {
        let fields = format!("\"{name}\":\"{}\"", "x".repeat(length));
        let issues: &'static [&'static str] = match name {
            "title" => &["title"],
            "slug" => &["slug"],
            "coverAlt" => &["coverAlt"],
            "coverWidth" => &["coverWidth"],
            "filename" => &["filename"],
            "coverUrl" => &["coverUrl"],
            "canonicalLink" => &["canonicalLink"],
            "description" => &["description"],
            _ => &["content"],
        };
        add("POST", pieces, piece(names, &fields), 400, "validation", issues);
    }
    let fields = format!("\"customData\":\"[{}1]\"", "1,".repeat(131_072));
    add("POST", pieces, piece(names, &fields), 400, "validation", &["customData"]);
    let many = vec![format!("\"{tag}\""); 101].join(",");
    add("POST", pieces, piece(names, &format!("\"tags\":[{many}]")), 400, "validation", &["tags"]);
    let deep = format!("\"content\":\"{}\"", "<blockquote>".repeat(300));
    add("POST", pieces, piece(names, &deep), 400, "content_too_deep", &["content"]);

    // References: unknown ids, and ids of another kind.
    for (fields, issues) in [
        (format!("\"tags\":[\"{group}\"]"), &["tags[0]"][..]),
        (format!("\"tags\":[\"{tag}\",{{\"id\":\"{id}\"}}]"), &["tags[1]"]),
        (format!("\"members\":[\"{tag}\"]"), &["members[0]"]),
        (format!("\"members\":[\"{}\"]", member.to_uppercase()), &["members[0]"]),
        (format!("\"contentGroupId\":\"{tag}\""), &["contentGroupId"]),
        ("\"contentGroupId\":\"\"".to_owned(), &["contentGroupId"]),
        ("\"contentGroupId\":\"cg_00000000000000000000000000\"".to_owned(), &["contentGroupId"]),
        (format!("\"referenceId\":\"{group}\""), &["referenceId"]),
        ("\"referenceId\":\"cp_00000000000000000000000000\"".to_owned(), &["referenceId"]),
    ] {
        add("POST", pieces, piece(names, &fields), 400, "unknown_reference", issues);
    }

    // Updates.
    for (fields, status, reason, issues) in [
        (String::new(), 400, "validation", &["id"][..]),
        ("\"id\":null".to_owned(), 400, "validation", &["id"]),
        ("\"id\":7".to_owned(), 400, "validation", &["id"]),
        (format!("\"id\":\"{tag}\""), 404, "not_found", &[]),
        ("\"id\":\"x\",\"title\":3".to_owned(), 400, "validation", &["title"]),
        (format!("\"id\":\"{id}\",\"title\":null"), 400, "validation", &["title"]),
        (format!("\"id\":\"{id}\",\"tags\":[\"x\"]"), 400, "unknown_reference", &["tags[0]"]),
        (format!("\"id\":\"{id}\",\"variant\":\"fr\""), 404, "not_found", &[]),
        (format!("\"id\":\"{id}\",\"variant\":\"DE\""), 404, "not_found", &[]),
        (format!("\"id\":\"{id}\",\"variant\":\"{tag}\""), 404, "not_found", &[]),
        (format!("\"id\":\"{id}\",\"variant\":[]"), 400, "validation", &["variant"]),
        ("\"variant\":\"de\"".to_owned(), 400, "validation", &["id"]),
        (format!("\"id\":\"{tag}\",\"variant\":\"de\""), 404, "not_found", &[]),
        (format!("\"id\":\"{id}\",\"variant\":1"), 400, "validation", &["variant"]),
        (format!("\"id\":\"{id}\",\"referenceId\":\"{id}\""), 400, "validation", &["referenceId"]),
    ] {
        add("PUT", pieces, InvalidBody::Json(format!("{{{fields}}}")), status, reason, issues);
    }

    // Updates of a variant.
    for (fields, reason, issues) in [
        ("\"title\":\"\"".to_owned(), "validation", &["title"][..]),
        ("\"title\":1,\"slug\":\" \"".to_owned(), "validation", &["title", "slug"]),
        ("\"tags\":{}".to_owned(), "validation", &["tags"]),
        ("\"tags\":[\"x\"]".to_owned(), "unknown_reference", &["tags[0]"]),
        (format!("\"tags\":[\"{variant}\"]"), "unknown_reference", &["tags[0]"]),
        (
            "\"title\":null,\"members\":[\"wm_00000000000000000000000000\"]".to_owned(),
            "unknown_reference",
            &["members[0]"],
        ),
        ("\"contentGroupId\":null".to_owned(), "validation", &["contentGroupId"]),
        ("\"customData\":\"{\"".to_owned(), "validation", &["customData"]),
        ("\"content\":{}".to_owned(), "validation", &["content"]),
        (format!("\"title\":\"x\",\"referenceId\":\"{id}\""), "validation", &["referenceId"]),
    ] {
        for name in ["de", variant] {
            let body = format!("{{\"id\":\"{id}\",\"variant\":\"{name}\",{fields}}}");
            add("PUT", pieces, InvalidBody::Json(body), 400, reason, issues);
        }
    }

    // Queries.
    for (path, status, reason, issues) in [
        ("/content-pieces", 400, "validation", &["id"][..]),
        ("/content-pieces?id=", 400, "validation", &["id"]),
        ("/content-pieces?id=a&id=b", 400, "validation", &["id"]),
        ("/content-pieces?id=%00", 400, "validation", &["id"]),
        ("/content-pieces?content=x", 400, "validation", &["id", "content"]),
        ("/content-pieces/list?page=-1", 400, "validation", &["page"]),
        ("/content-pieces/list?page=1.5", 400, "validation", &["page"]),
        ("/content-pieces/list?page=1e3", 400, "validation", &["page"]),
        ("/content-pieces/list?page=99999999999999999999", 400, "validation", &["page"]),
        ("/content-pieces/list?page=%2B1", 400, "validation", &["page"]),
        ("/content-pieces/list?perPage=0", 400, "validation", &["perPage"]),
        ("/content-pieces/list?perPage=1001", 400, "validation", &["perPage"]),
        ("/content-pieces/list?perPage=10&perPage=20", 400, "validation", &["perPage"]),
        ("/content-pieces/list?lastOrder=%27", 400, "validation", &["lastOrder"]),
        ("/content-pieces/list?cursor=W10", 400, "validation", &["cursor"]),
        ("/content-pieces/list?sort=;drop", 400, "validation", &["sort"]),
        ("/content-groups/list?lastId=1", 400, "validation", &["lastId"]),
        ("/tags?id=%F0%9F%92%A9", 404, "not_found", &[]),
        ("/variants", 400, "validation", &["id"]),
        ("/variants?id=de", 404, "not_found", &[]),
        ("/variants?id=var_0", 404, "not_found", &[]),
        ("/variants/list?lastId=de", 400, "validation", &["lastId"]),
        ("/variants/list?perPage=0", 400, "validation", &["perPage"]),
        ("/content-pieces?variant=de", 400, "validation", &["id"]),
        ("/content-pieces/list?variant=de&variant=fr", 400, "validation", &["variant"]),
        ("/content-pieces/list?variant=%00", 400, "validation", &["variant"]),
        ("/content-pieces/list?variant=fr", 404, "not_found", &[]),
        ("/content-pieces/list?variant=fr&contentGroupId=x", 404, "not_found", &[]),
    ] {
        add("GET", path, InvalidBody::None, status, reason, issues);
    }
    for (path, issues) in [
        ("/content-groups", &["id"][..]),
        ("/content-groups?subtree=2", &["id", "subtree"]),
        ("/content-groups/list?ancestor=a&ancestor=b", &["ancestor"]),
        ("/tags", &["id"]),
        ("/tags/list?page=0&perPage=x", &["page", "perPage"]),
    ] {
        add("GET", path, InvalidBody::None, 400, "validation", issues);
    }
    for path in ["/content-groups", "/tags"] {
        add("DELETE", path, InvalidBody::None, 400, "validation", &["id"]);
        add("DELETE", &format!("{path}?id={id}"), InvalidBody::None, 404, "not_found", &[]);
        add("PUT", path, InvalidBody::Json("{}".to_owned()), 400, "validation", &["id"]);
        let missing = format!("{{\"id\":\"{id}\"}}");
        add("PUT", path, InvalidBody::Json(missing), 404, "not_found", &[]);
    }
    let kept = format!("/content-groups?id={group}");
    add("DELETE", &kept, InvalidBody::None, 409, "not_empty", &[]);
    let circle = format!("{{\"id\":\"{group}\",\"ancestor\":\"{group}\"}}");
    add("PUT", "/content-groups", InvalidBody::Json(circle), 400, "circle", &["ancestor"]);
    add("DELETE", "/content-pieces", InvalidBody::None, 400, "validation", &["id"]);
    add("DELETE", "/content-pieces?id=1", InvalidBody::None, 404, "not_found", &[]);

    add("DELETE", "/variants", InvalidBody::None, 400, "validation", &["id"]);
    add("DELETE", "/variants?id=de", InvalidBody::None, 404, "not_found", &[]);
    for (fields, status, reason, issues) in [
        (String::new(), 400, "validation", &["id"][..]),
        ("\"id\":\"de\",\"label\":\"x\"".to_owned(), 404, "not_found", &[]),
        (
            format!("\"id\":\"{variant}\",\"key\":null,\"label\":null"),
            400,
            "validation",
            &["key", "label"],
        ),
        (format!("\"id\":\"{variant}\",\"key\":\"\""), 400, "validation", &["key"]),
        (format!("\"id\":\"{variant}\",\"description\":[]"), 400, "validation", &["description"]),
    ] {
        add("PUT", "/variants", InvalidBody::Json(format!("{{{fields}}}")), status, reason, issues);
    }
    let taken = "{\"key\":\"de\",\"label\":\"again\"}".to_owned();
    add("POST", "/variants", InvalidBody::Json(taken), 409, "key_taken", &[]);
    let long =
        format!("{{\"key\":\"k\",\"label\":\"l\",\"description\":\"{}\"}}", "é".repeat(1_025));
    add("POST", "/variants", InvalidBody::Json(long), 400, "validation", &["description"]);

    // Groups, tags and variants.
    for (path, body, issues) in [
        ("/tags", "{}", &["label"][..]),
        ("/tags", "{\"label\":\"\",\"color\":\"\"}", &["label", "color"]),
        ("/tags", "{\"label\":\"a\\nb\"}", &["label"]),
        ("/tags", "{\"label\":1,\"color\":2}", &["label", "color"]),
        ("/variants", "{}", &["key", "label"]),
        ("/variants", "{\"key\":\"\",\"label\":\"\"}", &["key", "label"]),
        ("/variants", "{\"key\":\"De\",\"label\":\"a\\tb\"}", &["key", "label"]),
        ("/variants", "{\"key\":\"de-at\",\"label\":\"x\"}", &["key"]),
        ("/variants", "{\"key\":\"abcdefghijklmnopqrstu\",\"label\":\"x\"}", &["key"]),
        (
            "/variants",
            "{\"key\":1,\"label\":2,\"description\":3}",
            &["key", "label", "description"],
        ),
        ("/content-groups", "{}", &["name"]),
        ("/content-groups", "{\"name\":\"\"}", &["name"]),
        ("/content-groups", "{\"name\":\"a\\tb\",\"ancestor\":1}", &["name", "ancestor"]),
    ] {
        add("POST", path, InvalidBody::Json(body.to_owned()), 400, "validation", issues);
    }
    table.extend(table_of_people(names));
    table.extend(table_of_webhooks(names));
    table.extend(table_of_deliveries(names));
    table
}

/// Returns invalid requests for members, roles, tokens, the profile and the workspace.
fn table_of_people(names: &ExistingIds) -> Vec<InvalidRequest> {
    let ExistingIds { group, tag, member, role, token, .. } = names;
    let mut table = Vec::new();
    let mut add = |method: &str, path: &str, body: String, status, reason, issues| {
        let (method, body) = (method.parse().unwrap(), body_of(body));
        table.push(InvalidRequest { method, path: path.to_owned(), body, status, reason, issues });
    };
    let none = String::new;
    let long = "x".repeat(256);
    let members = "/workspace-memberships";
    for (body, reason, issues) in [
        ("{}".to_owned(), "validation", &["email", "name", "roleId"][..]),
        (
            "{\"email\":null,\"name\":null,\"roleId\":null}".to_owned(),
            "validation",
            &["email", "name", "roleId"],
        ),
        (
            "{\"email\":1,\"name\":[],\"roleId\":{}}".to_owned(),
            "validation",
            &["email", "name", "roleId"],
        ),
        (
            format!("{{\"email\":\"ann\",\"name\":\"\",\"roleId\":\"{role}\"}}"),
            "validation",
            &["email", "name"],
        ),
        (
            format!("{{\"email\":\"a@b\\r\\nBcc: c@d\",\"name\":\"a\",\"roleId\":\"{role}\"}}"),
            "validation",
            &["email"],
        ),
        (
            format!("{{\"email\":\"{long}@b.example\",\"name\":\"{long}\",\"roleId\":\"{role}\"}}"),
            "validation",
            &["email", "name"],
        ),
        (
            "{\"email\":\"ann@example.org\",\"name\":\"Ann\",\"roleId\":\"Admin\"}".to_owned(),
            "unknown_reference",
            &["roleId"],
        ),
        (
            format!("{{\"email\":\"x\",\"name\":\"Ann\",\"roleId\":\"{tag}\"}}"),
            "validation",
            &["email", "roleId"],
        ),
        (
            "{\"email\":\"x\",\"name\":\"Ann\",\"roleId\":\"role_00000000000000000000000000\"}"
                .to_owned(),
            "validation",
            &["email", "roleId"],
        ),
    ] {
        add("POST", members, body, 400, reason, issues);
    }
    let body = format!("{{\"email\":\"HOME@example.org\",\"name\":\"a\",\"roleId\":\"{role}\"}}");
    add("POST", members, body, 409, "already_member", &[]);
    for (body, status, reason, issues) in [
        ("{}".to_owned(), 400, "validation", &["id", "roleId"][..]),
        (format!("{{\"id\":\"{member}\"}}"), 400, "validation", &["roleId"]),
        (format!("{{\"roleId\":\"{role}\"}}"), 400, "validation", &["id"]),
        (format!("{{\"id\":3,\"roleId\":\"{role}\"}}"), 400, "validation", &["id"]),
        (format!("{{\"id\":\"{tag}\",\"roleId\":\"{role}\"}}"), 404, "not_found", &[]),
        (format!("{{\"id\":\"{member}\",\"roleId\":\"\"}}"), 400, "unknown_reference", &["roleId"]),
        (format!("{{\"id\":\"{member}\",\"roleId\":\"{role}\"}}"), 409, "last_admin", &[]),
    ] {
        add("PUT", members, body, status, reason, issues);
    }
    for (query, status, reason, issues) in [
        (String::new(), 400, "validation", &["id"][..]),
        ("?id=".to_owned(), 400, "validation", &["id"]),
        ("?id=a&id=b".to_owned(), 400, "validation", &["id"]),
        ("?id=%ff".to_owned(), 400, "validation", &["id"]),
        (format!("?id={tag}"), 404, "not_found", &[]),
        (format!("?id={member}"), 409, "last_admin", &[]),
    ] {
        add("DELETE", &format!("{members}{query}"), none(), status, reason, issues);
    }
    for list in [
        "/workspace-memberships/list-members",
        "/workspace-memberships/list-workspaces",
        "/roles/list",
        "/tokens/list",
        "/webhooks/list",
    ] {
        for (query, issues) in [
            ("?page=0", &["page"][..]),
            ("?perPage=1001", &["perPage"]),
            ("?page=x&perPage=-1&lastId=y", &["page", "perPage", "lastId"]),
            ("?cursor=!", &["cursor"]),
            ("?lastId=%ff", &["lastId"]),
        ] {
            add("GET", &format!("{list}{query}"), none(), 400, "validation", issues);
        }
    }

    for (body, issues) in [
        ("{}".to_owned(), &["name", "permissions"][..]),
        (
            "{\"name\":1,\"permissions\":{},\"description\":2}".to_owned(),
            &["name", "permissions", "description"],
        ),
        ("{\"name\":\"\",\"permissions\":[\"tags\"]}".to_owned(), &["name", "permissions[0]"]),
        (
            "{\"name\":\"a\\nb\",\"permissions\":[null,\"tags:READ\"]}".to_owned(),
            &["name", "permissions[0]", "permissions[1]"],
        ),
        (format!("{{\"name\":\"{long}\",\"permissions\":[]}}"), &["name"]),
        (
            format!(
                "{{\"name\":\"a\",\"permissions\":[],\"description\":\"{}\"}}",
                "x".repeat(1_025)
            ),
            &["description"],
        ),
    ] {
        add("POST", "/roles", body, 400, "validation", issues);
    }
    add(
        "POST",
        "/roles",
        "{\"name\":\"Editor\",\"permissions\":[]}".to_owned(),
        409,
        "name_taken",
        &[],
    );
    for (body, status, reason, issues) in [
        ("{}".to_owned(), 400, "validation", &["id"][..]),
        (
            format!("{{\"id\":\"{role}\",\"name\":null,\"permissions\":null}}"),
            400,
            "validation",
            &["name", "permissions"],
        ),
        (format!("{{\"id\":\"{tag}\",\"name\":\"x\"}}"), 404, "not_found", &[]),
        (format!("{{\"id\":\"{role}\",\"name\":\"Viewer\"}}"), 409, "name_taken", &[]),
    ] {
        add("PUT", "/roles", body, status, reason, issues);
    }

    for (body, reason, issues) in [
        ("{}".to_owned(), "validation", &["name", "permissions"][..]),
        (
            "{\"name\":[],\"permissions\":\"all\",\"contentGroupIds\":{},\"extension\":1,\"expiresAt\":2}"
                .to_owned(),
            "validation",
            &["name", "permissions", "contentGroupIds", "extension", "expiresAt"],
        ),
        ("{\"name\":\"a\",\"permissions\":[],\"contentGroupIds\":[]}".to_owned(), "validation",
            &["contentGroupIds"]),
        ("{\"name\":\"a\",\"permissions\":[],\"expiresAt\":\"2001-01-01\"}".to_owned(), "validation",
            &["expiresAt"]),
        (format!("{{\"name\":\"a\",\"permissions\":[],\"extension\":\"{long}\"}}"), "validation",
            &["extension"]),
        (format!("{{\"name\":\"a\",\"permissions\":[],\"contentGroupIds\":[\"{group}\",\"{tag}\"]}}"),
            "unknown_reference", &["contentGroupIds[1]"]),
        (format!("{{\"name\":\"\",\"permissions\":[],\"contentGroupIds\":[\"{group}\",3,\"x\"]}}"),
            "validation", &["name", "contentGroupIds[1]", "contentGroupIds[2]"]),
        (
            format!(
                "{{\"name\":\"a\",\"permissions\":[],\"contentGroupIds\":[{}]}}",
                vec![format!("\"{group}\""); 101].join(",")
            ),
            "validation",
            &["contentGroupIds"],
        ),
    ] {
        add("POST", "/tokens", body, 400, reason, issues);
    }
    for (body, status, reason, issues) in [
        ("{}".to_owned(), 400, "validation", &["id"][..]),
        (
            format!("{{\"id\":\"{token}\",\"name\":null,\"permissions\":null}}"),
            400,
            "validation",
            &["name", "permissions"],
        ),
        (
            format!("{{\"id\":\"{token}\",\"contentGroupIds\":[\"x\"]}}"),
            400,
            "unknown_reference",
            &["contentGroupIds[0]"],
        ),
        (
            format!("{{\"id\":\"{token}\",\"expiresAt\":\"never\"}}"),
            400,
            "validation",
            &["expiresAt"],
        ),
        (format!("{{\"id\":\"{tag}\",\"name\":\"x\"}}"), 404, "not_found", &[]),
    ] {
        add("PUT", "/tokens", body, status, reason, issues);
    }
    for path in ["/roles", "/tokens", "/webhooks"] {
        for method in ["GET", "DELETE"] {
            add(method, path, none(), 400, "validation", &["id"]);
            add(method, &format!("{path}?id={tag}"), none(), 404, "not_found", &[]);
        }
    }

    for (body, issues) in [
        (
            "{\"fullName\":\"\",\"username\":\"\",\"avatar\":1}",
            &["fullName", "username", "avatar"][..],
        ),
        ("{\"username\":\"a b\"}", &["username"]),
        ("{\"username\":\"a\\u202eb\"}", &["username"]),
        ("{\"fullName\":null,\"username\":null}", &["fullName", "username"]),
        ("{\"avatar\":\"javascript:alert(1)\"}", &["avatar"]),
    ] {
        add("PUT", "/profile", body.to_owned(), 400, "validation", issues);
    }
    for (body, issues) in [
        ("{\"name\":\"\",\"description\":[],\"logo\":{}}", &["name", "description", "logo"][..]),
        ("{\"name\":null}", &["name"]),
        ("{\"logo\":\"data:image/png;base64,AAAA\"}", &["logo"]),
    ] {
        add("PUT", "/workspace", body.to_owned(), 400, "validation", issues);
    }
    table
}

fn table_of_webhooks(names: &ExistingIds) -> Vec<InvalidRequest> {
    let ExistingIds { group, tag, webhook, .. } = names;
    let mut table = Vec::new();
    let mut add = |method: &str, body: String, status, reason, issues| {
        let (method, body) = (method.parse().unwrap(), body_of(body));
        table.push(InvalidRequest {
            method,
            path: "/webhooks".to_owned(),
            body,
            status,
            reason,
            issues,
        });
    };
    let made = |fields: &str| {
        format!(
            "{{\"url\":\"https://hooks.invalid/\",\"name\":\"w\",\"event\":\"memberAdded\",{fields}}}"
        )
    };
    let long = "x".repeat(256);
    for (body, reason, issues) in [
        ("{}".to_owned(), "validation", &["url", "name", "event"][..]),
        (
            "{\"url\":1,\"name\":2,\"event\":3,\"description\":4,\"secret\":5,\"metadata\":6,\"enabled\":7}"
                .to_owned(),
            "validation",
            &["url", "name", "event", "description", "secret", "metadata", "enabled"],
        ),
        ("{\"url\":\"ftp://a/\",\"name\":\"\",\"event\":\"pieceAdded\"}".to_owned(), "validation",
            &["url", "name", "event"]),
        (made("\"url2\":1").replace("https://hooks.invalid/", "https://u:p@hooks.invalid/"), "validation", &["url"]),
        (made("\"x\":1").replace("https://hooks.invalid/", "http:hooks.invalid"), "validation", &["url"]),
        (made(&format!("\"secret\":\"{long}\"")), "validation", &["secret"]),
        (made("\"secret\":\"whsec_AAAA\""), "validation", &["secret"]),
        (made("\"secret\":[]"), "validation", &["secret"]),
        (made("\"metadata\":{\"contentGroupId\":1}"), "validation", &["metadata.contentGroupId"]),
        (made("\"metadata\":{\"contentGroupId\":\"x\"}"), "unknown_reference", &["metadata.contentGroupId"]),
        (
            made(&format!("\"metadata\":{{\"contentGroupId\":\"{tag}\"}},\"enabled\":1")),
            "validation",
            &["metadata.contentGroupId", "enabled"],
        ),
        (made("\"x\":1").replace("memberAdded", "contentPieceAdded"), "validation",
            &["metadata.contentGroupId"]),
    ] {
        add("POST", body, 400, reason, issues);
    }
    for (fields, reason, issues) in [
        ("\"secret\":\"another\"".to_owned(), "immutable_field", &["secret"][..]),
        ("\"secret\":null".to_owned(), "immutable_field", &["secret"]),
        ("\"event\":\"contentPieceAdded\"".to_owned(), "validation", &["metadata.contentGroupId"]),
        (
            "\"url\":null,\"name\":null,\"event\":null,\"enabled\":null".to_owned(),
            "validation",
            &["url", "name", "event", "enabled"],
        ),
        (
            "\"metadata\":{\"contentGroupId\":\"cg_00000000000000000000000000\"}".to_owned(),
            "unknown_reference",
            &["metadata.contentGroupId"],
        ),
        (format!("\"metadata\":\"{group}\""), "validation", &["metadata"]),
    ] {
        add("PUT", format!("{{\"id\":\"{webhook}\",{fields}}}"), 400, reason, issues);
    }
    add("PUT", format!("{{\"id\":\"{tag}\",\"name\":\"x\"}}"), 404, "not_found", &[]);
    table
}

/// Returns invalid requests for deliveries and events.
fn table_of_deliveries(names: &ExistingIds) -> Vec<InvalidRequest> {
    let ExistingIds { tag, webhook, .. } = names;
    let mut table = Vec::new();
    let mut add = |method: &str, path: &str, body: String, status, reason, issues| {
        let (method, path) = (method.parse().unwrap(), path.to_owned());
        table.push(InvalidRequest { method, path, body: body_of(body), status, reason, issues });
    };
    for path in ["/webhooks/test", "/webhooks/deliveries/retry"] {
        add("POST", path, "{}".to_owned(), 400, "validation", &["id"][..]);
        add("POST", path, "{\"id\":1}".to_owned(), 400, "validation", &["id"]);
        add("POST", path, format!("{{\"id\":\"{tag}\"}}"), 404, "not_found", &[]);
        add("POST", path, "[]".to_owned(), 400, "malformed_body", &[]);
    }
    let path = "/webhooks/recover";
    add("POST", path, "{}".to_owned(), 400, "validation", &["id", "since"]);
    for since in ["1", "null", "\"\"", "\"soon\"", "\"2026-13-01\""] {
        let body = format!("{{\"id\":\"{webhook}\",\"since\":{since}}}");
        add("POST", path, body, 400, "validation", &["since"]);
    }
    let body = format!("{{\"id\":\"{tag}\",\"since\":\"2026-11-20\"}}");
    add("POST", path, body, 404, "not_found", &[]);
    for (query, issues) in [
        ("status=sent", &["status"][..]),
        ("perPage=101", &["perPage"]),
        ("perPage=0&page=0", &["perPage", "page"]),
        ("cursor=x", &["cursor"]),
        ("lastId=x", &["lastId"]),
    ] {
        let path = format!("/webhooks/deliveries?{query}");
        add("GET", &path, String::new(), 400, "validation", issues);
    }
    let path = format!("/webhooks/deliveries?webhookId={tag}");
    add("GET", &path, String::new(), 404, "not_found", &[]);
    for (query, issues) in [
        ("after=-1", &["after"][..]),
        ("after=x&perPage=1001", &["after", "perPage"]),
        ("after=1&after=2", &["after"]),
        ("after=99999999999999999999", &["after"]),
    ] {
        add("GET", &format!("/events?{query}"), String::new(), 400, "validation", issues);
    }
    table
}

fn body_of(text: String) -> InvalidBody {
    if text.is_empty() { InvalidBody::None } else { InvalidBody::Json(text) }
}

async fn send(service: &Service, bad: &InvalidRequest) -> TestResponse {
    let request = service.request(bad.method.clone(), &bad.path).bearer_auth(&service.home.token);
    let json = "application/json";
    let request = match &bad.body {
        InvalidBody::None => request,
        InvalidBody::Json(text) => request.header("content-type", json).body(text.clone()),
        InvalidBody::Bytes(bytes) => request.header("content-type", json).body(bytes.clone()),
        InvalidBody::Typed(kind, text) => request.header("content-type", *kind).body(*text),
    };
    TestResponse::of(request).await
}

#[on_both_engines]
async fn every_invalid_request_is_rejected_and_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let variant = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let piece = service.create("/content-pieces", &service.piece("kept")).await;
    let token = service.create("/tokens", &json!({"name": "t", "permissions": []})).await;
    let hook = json!({"url": "https://hooks.invalid/", "name": "w", "event": "memberAdded"});
    let webhook = service.create("/webhooks", &hook).await;
    let [_, role, _] = service.roles();
    let names = ExistingIds {
        role,
        token,
        webhook,
        piece,
        tag,
        variant,
        group: service.home.group.clone(),
        member: service.home.made.member.to_string(),
    };
    let before = service.workspace_state().await;
    let table = table(&names);
    assert!(table.len() >= 200, "{}", table.len());
    // The table has a row for every route with parameters or a body.
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let takes =
                ["requestBody", "parameters"].iter().any(|part| operation.get(part).is_some());
            let mut tried = table.iter().map(|bad| {
                (bad.method.as_str().to_lowercase(), bad.path.split('?').next().unwrap())
            });
            let open = operation["security"] == json!([]);
            let only_headers =
                matches!(path.as_str(), "/profile" | "/workspace") && method == "get";
            assert!(
                !takes
                    || open
                    || only_headers
                    || tried.any(|one| one == (method.clone(), path.as_str())),
                "{method} {path} is not tried"
            );
        }
    }
    for (index, bad) in table.iter().enumerate() {
        let answer = send(&service, bad).await;
        let shown = match &bad.body {
            InvalidBody::Json(text) => text.chars().take(120).collect(),
            _ => String::new(),
        };
        eprintln!("{index}: {} {} {shown}", bad.method, bad.path);
        answer.assert_problem(bad.status, bad.reason, bad.issues);
        if bad.reason == "malformed_body" && bad.status == 400 {
            let detail = answer.body["detail"].as_str().unwrap();
            let says_where = detail.contains("line") && detail.contains("column");
            assert!(says_where || detail.contains("must be a JSON object"), "{detail}");
        }
        assert_eq!(service.workspace_state().await, before, "{index} changed something");
    }
}
