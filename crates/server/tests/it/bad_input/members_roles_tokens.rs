//! Invalid members, roles, tokens, profiles and workspaces.

use super::table::Table;

const ROWS: &str = r#"
    POST /workspace-memberships
        {} -> email name roleId
        {"email":null,"name":null,"roleId":null} -> email name roleId
        {"email":1,"name":[],"roleId":{}} -> email name roleId
        {"email":"ann","name":"","roleId":"$role"} -> email name
        {"email":"a@b\r\nBcc: c@d","name":"a","roleId":"$role"} -> email
        {"email":"$x*256@b.example","name":"$x*256","roleId":"$role"} -> email name
        {"email":"ann@example.org","name":"Ann","roleId":"Admin"} -> 400 unknown_reference roleId
        {"email":"x","name":"Ann","roleId":"$tag"} -> email roleId
        {"email":"x","name":"Ann","roleId":"role_00000000000000000000000000"} -> email roleId
        {"email":"HOME@example.org","name":"a","roleId":"$role"} -> 409 already_member
    PUT /workspace-memberships
        {} -> id roleId
        {"id":"$member"} -> roleId
        {"roleId":"$role"} -> id
        {"id":3,"roleId":"$role"} -> id
        {"id":"$tag","roleId":"$role"} -> 404 not_found
        {"id":"$member","roleId":""} -> 400 unknown_reference roleId
        {"id":"$member","roleId":"$role"} -> 409 last_admin
    DELETE /workspace-memberships
        -> id
        ?id= -> id
        ?id=a&id=b -> id
        ?id=%ff -> id
        ?id=$tag -> 404 not_found
        ?id=$member -> 409 last_admin
    GET /workspace-memberships/list-members /workspace-memberships/list-workspaces
        ?page=0 -> page
        ?perPage=1001 -> perPage
        ?page=x&perPage=-1&lastId=y -> page perPage lastId
        ?cursor=! -> cursor
        ?lastId=%ff -> lastId
    GET /roles/list /tokens/list /webhooks/list
        ?page=0 -> page
        ?perPage=1001 -> perPage
        ?page=x&perPage=-1&lastId=y -> page perPage lastId
        ?cursor=! -> cursor
        ?lastId=%ff -> lastId
    GET DELETE /roles /tokens /webhooks
        -> id
        ?id=$tag -> 404 not_found
    POST /roles
        {} -> name permissions
        {"name":1,"permissions":{},"description":2} -> name permissions description
        {"name":"","permissions":["tags"]} -> name permissions[0]
        {"name":"a\nb","permissions":[null,"tags:READ"]} -> name permissions[0] permissions[1]
        {"name":"$x*256","permissions":[]} -> name
        {"name":"a","permissions":[],"description":"$x*1025"} -> description
        {"name":"Editor","permissions":[]} -> 409 name_taken
    PUT /roles
        {} -> id
        {"id":"$role","name":null,"permissions":null} -> name permissions
        {"id":"$tag","name":"x"} -> 404 not_found
        {"id":"$role","name":"Viewer"} -> 409 name_taken
    POST /tokens
        {} -> name permissions
        {"name":"a","permissions":[],"contentGroupIds":[]} -> contentGroupIds
        {"name":"a","permissions":[],"expiresAt":"2001-01-01"} -> expiresAt
        {"name":"a","permissions":[],"extension":"$x*256"} -> extension
        {"name":"a","permissions":[],"contentGroupIds":["$group","$tag"]} ->
            400 unknown_reference contentGroupIds[1]
        {"name":"","permissions":[],"contentGroupIds":["$group",3,"x"]} ->
            name contentGroupIds[1] contentGroupIds[2]
        {"name":[],"permissions":"all","contentGroupIds":{},"extension":1,"expiresAt":2} ->
            name permissions contentGroupIds extension expiresAt
    PUT /tokens
        {} -> id
        {"id":"$token","name":null,"permissions":null} -> name permissions
        {"id":"$token","contentGroupIds":["x"]} -> 400 unknown_reference contentGroupIds[0]
        {"id":"$token","expiresAt":"never"} -> expiresAt
        {"id":"$tag","name":"x"} -> 404 not_found
    PUT /profile
        {"fullName":"","username":"","avatar":1} -> fullName username avatar
        {"username":"a b"} -> username
        {"username":"a\u202eb"} -> username
        {"fullName":null,"username":null} -> fullName username
        {"avatar":"javascript:alert(1)"} -> avatar
    POST /workspace-memberships/invite-link /workspace-memberships/resend-invite
        {} -> id
        {"id":1} -> id
        {"id":"$tag"} -> 404 not_found
        {"id":"$member"} -> 409 already_member
    GET /profile/sessions
        ?perPage=0 -> perPage
        ?lastId=x -> lastId
    DELETE /profile/sessions
        ? -> id
        ?all=x -> all
    PUT /workspace
        {"name":"","description":[],"logo":{}} -> name description logo
        {"name":null} -> name
        {"logo":"data:image/png;base64,AAAA"} -> logo
"#;

pub(super) fn add(table: &mut Table<'_>) {
    table.rows(ROWS);
    let many = vec!["\"$group\""; 101].join(",");
    let body = format!("{{\"name\":\"a\",\"permissions\":[],\"contentGroupIds\":[{many}]}}");
    table.json("POST", "/tokens", &body, "contentGroupIds");
}
