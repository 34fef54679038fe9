//! Invalid webhooks, and requests for deliveries and events.

use super::table::Table;

const ROWS: &str = r#"
    POST /webhooks
        {} -> url name event
        {"url":"ftp://a/","name":"","event":"pieceAdded"} -> url name event
        {"url":1,"name":2,"event":3,"description":4,"secret":5,"metadata":6,"enabled":7} ->
            url name event description secret metadata enabled
        {"url":"https://u:p@hooks.invalid/","name":"w","event":"memberAdded","url2":1} -> url
        {"url":"http:hooks.invalid","name":"w","event":"memberAdded","x":1} -> url
        {"url":"https://hooks.invalid/","name":"w","event":"contentPieceAdded","x":1} ->
            metadata.contentGroupId
    PUT /webhooks
        {"id":"$webhook","secret":"another"} -> 400 immutable_field secret
        {"id":"$webhook","secret":null} -> 400 immutable_field secret
        {"id":"$webhook","event":"contentPieceAdded"} -> metadata.contentGroupId
        {"id":"$webhook","url":null,"name":null,"event":null,"enabled":null} ->
            url name event enabled
        {"id":"$webhook","metadata":{"contentGroupId":"cg_00000000000000000000000000"}} ->
            400 unknown_reference metadata.contentGroupId
        {"id":"$webhook","metadata":"$group"} -> metadata
        {"id":"$tag","name":"x"} -> 404 not_found
        {"id":"$webhook","events":null,"wholeWorkspace":null} -> events wholeWorkspace
        {"id":"$webhook","events":["tagChanged",1,"x"]} -> events[1] events[2]
        {"id":"$webhook","events":[]} -> events
        {"id":"$webhook","wholeWorkspace":false} -> wholeWorkspace
        {"id":"$webhook","wholeWorkspace":true,"metadata":{"contentGroupId":"$group"}} ->
            wholeWorkspace
    POST /webhooks/test /webhooks/deliveries/retry
        {} -> id
        {"id":1} -> id
        {"id":"$tag"} -> 404 not_found
        [] -> 400 malformed_body
    POST /webhooks/rotate-secret
        {} -> id secret
        {"id":"$webhook","secret":null} -> secret
        {"id":"$webhook","secret":"whsec_AAAA"} -> secret
        {"id":"$webhook","secret":"$x*256"} -> secret
        {"id":"$tag","secret":"x"} -> 404 not_found
    POST /webhooks/recover
        {} -> id since
        {"id":"$webhook","since":1} -> since
        {"id":"$webhook","since":null} -> since
        {"id":"$webhook","since":""} -> since
        {"id":"$webhook","since":"soon"} -> since
        {"id":"$webhook","since":"2026-13-01"} -> since
        {"id":"$tag","since":"2026-11-20"} -> 404 not_found
    GET /webhooks/deliveries
        ?status=sent -> status
        ?perPage=101 -> perPage
        ?perPage=0&page=0 -> perPage page
        ?cursor=x -> cursor
        ?lastId=x -> lastId
        ?webhookId=$tag -> 404 not_found
    GET /audit
        ?action=tag.renamed -> action
        ?since=yesterday&until=2026-13-01 -> since until
        ?cursor=W10 -> cursor
        ?perPage=1001 -> perPage
        ?target=a&target=b -> target
    GET /events
        ?after=-1 -> after
        ?after=x&perPage=1001 -> after perPage
        ?after=1&after=2 -> after
        ?ticket=a&ticket=b -> ticket
        ?after=99999999999999999999 -> after
"#;

/// Fields that are added to a valid webhook.
const FIELDS: &str = r#"
    POST /webhooks
        "secret":"$x*256" -> secret
        "secret":"whsec_AAAA" -> secret
        "wholeWorkspace":false -> wholeWorkspace
        "events":["memberAdded","?"],"wholeWorkspace":1 -> events[1] wholeWorkspace
        "events":["memberAdded","contentPieceAdded"] -> metadata.contentGroupId
        "wholeWorkspace":true,"metadata":{"contentGroupId":"$group"} -> wholeWorkspace
        "secret":[] -> secret
        "metadata":{"contentGroupId":1} -> metadata.contentGroupId
        "metadata":{"contentGroupId":"x"} -> 400 unknown_reference metadata.contentGroupId
        "metadata":{"contentGroupId":"$tag"},"enabled":1 -> metadata.contentGroupId enabled
"#;

pub(super) fn add(table: &mut Table<'_>) {
    table.rows(ROWS);
    table.rows_in(FIELDS, |fields| {
        let valid = r#""url":"https://hooks.invalid/","name":"w","event":"memberAdded""#;
        format!("{{{valid},{fields}}}")
    });
}
