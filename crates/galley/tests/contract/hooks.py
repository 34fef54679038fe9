"""What schemathesis must know of Galley beyond its OpenAPI document.

1. It must not lock itself out: its own token and its own membership are never what a change is about.
2. It should get further than 404: identifiers that name nothing become such as were seen in answers, most of the
   time; keys of idempotency are new, most of the time; a cursor is one that a `Link` gave; an invite's code is one
   of a mail that was "sent" into the outbox.
3. What a document can't say is no failure: `STATE` and `is_inexpressible` below are all that is let pass.
4. Three checks of its own, since those of schemathesis (`use_after_free`, `ensure_resource_availability`) look at
   identifiers in paths only, and Galley's stand in the query.
"""

import email
import json
import os
import re
import string
import zlib
from collections import defaultdict, deque
from pathlib import Path

import requests
import schemathesis
from schemathesis.core.parameters import ParameterLocation
from hypothesis import strategies as st

BASE = os.environ["GALLEY_URL"]
TOKEN = os.environ["GALLEY_TOKEN"]
OUTBOX = os.environ["GALLEY_OUTBOX"]

UPLOADS = "/assets/uploads"

api = requests.Session()
api.headers["Authorization"] = "Bearer " + TOKEN


# Requests to resumable uploads have it.
api.headers["Tus-Resumable"] = "1.0.0"


def get(path):
    return api.get(BASE + path, timeout=30)


def status_of(path):
    return (api.head if path.startswith(UPLOADS) else api.get)(BASE + path, timeout=30).status_code


# --- 1. What is its own ---------------------------------------------------------------------------------------------

OWN_TOKEN = next(t["id"] for t in get("/tokens/list").json() if t["name"] == "first token")
OWN_MEMBER = next(m["id"] for m in get("/workspace-memberships/list-members").json() if not m["pendingInvite"])
OWN = {OWN_TOKEN, OWN_MEMBER}
SPARED = {("PUT", "/tokens"), ("DELETE", "/tokens")} | {
    (method, "/workspace-memberships") for method in ("PUT", "DELETE")
}

# --- 2. What is there -----------------------------------------------------------------------------------------------

ID = re.compile(r"\b(ws|usr|wm|role|tag|var|ast|cg|cp|wh|evt|dlv|tok)_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
pool = defaultdict(lambda: deque(maxlen=40))
ever = {OWN_TOKEN}
cursors = {}
codes = deque(maxlen=20)
mails = set()
count = 0


def meet(text):
    for match in ID.finditer(text):
        name, kind = match.group(), match.group(1)
        if name not in ever:
            ever.add(name)
            pool[kind].append(name)


def known(name, kind):
    """An identifier that names something, fifteen times out of sixteen; one that once did is left as it is."""
    named = zlib.crc32(name.encode())
    if name in ever or not pool[kind] or named % 16 == 0:
        return name
    return pool[kind][named % len(pool[kind])]


def enliven(value):
    if isinstance(value, dict):
        return {
            # Most pieces are in another group than the one that is named.
            key: None if key == "referenceId" and type(item) is str and ID.fullmatch(item) and count % 4 else enliven(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [enliven(item) for item in value]
    if type(value) is str and (match := ID.fullmatch(value)):
        return known(value, match.group(1))
    return value


def code():
    """The code of an invite whose mail lies in the outbox."""
    for path in sorted(Path(OUTBOX).glob("*.eml"))[-20:]:
        if path.name not in mails:
            mails.add(path.name)
            for part in email.message_from_bytes(path.read_bytes()).walk():
                text = (part.get_payload(decode=True) or b"").decode(errors="replace")
                codes.extend(re.findall(r"/invite\?code=([\w-]+)", text)[:1])
    return codes[-1 - count % min(len(codes), 4)] if codes else None


def is_positive(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


def is_upload(case):
    return case.path == "/assets" and case.method.upper() == "POST"


@schemathesis.serializer("application/offset+octet-stream")
def part_of_upload(context, value):
    bytes_ = getattr(value, "data", value)
    return bytes_ if isinstance(bytes_, bytes) else json.dumps(bytes_).encode()


def is_about_headers(case):
    """Whether a header is what is wrong, or missing, in the request."""
    return case.meta is not None and case.meta.is_negative_at(ParameterLocation.HEADER)


@schemathesis.hook
def before_call(context, case, kwargs):
    global count
    count += 1
    if count % 500 == 0:
        tidy()
    # What is assigned is looked at anew, so only what differs is.
    if isinstance(case.query, dict) and (query := enliven(case.query)) != case.query:
        case.query = query
    if isinstance(case.body, dict) and (body := enliven(case.body)) != case.body:
        case.body = body
    headers = case.headers
    if headers is not None and not is_about_headers(case):
        key = headers.get("Idempotency-Key")
        if isinstance(key, str) and 1 <= len(key) <= 200 and key.isascii() and count % 8:
            headers["Idempotency-Key"] = f"{key}-{count}"
        if "If-Match" in headers and count % 4:
            headers["If-Match"] = "*"
    if is_positive(case):
        if is_upload(case) and isinstance(case.query, dict) and count % 4:
            # Without any name of the file, nothing else of the request is read.
            case.query = {"filename": "photo.jpg", **case.query}
        if isinstance(case.query, dict) and "cursor" in case.query and count % 4 and case.path in cursors:
            case.query["cursor"] = cursors[case.path]
        if case.path in ("/invite", "/invites/accept") and count % 2:
            for part in (case.query, case.body):
                if isinstance(part, dict) and "code" in part and (found := code()):
                    part["code"] = found
    if (case.method.upper(), case.path) in SPARED:
        for part in (case.query, case.body):
            if isinstance(part, dict) and any(str(part.get("id")) == own for own in OWN):
                part["id"] = part["id"][:-4] + "0000"


@schemathesis.hook
def after_call(context, case, response):
    if not 200 <= response.status_code < 300:
        return
    if len(response.content) < 100_000:
        meet(response.content.decode(errors="replace"))
    if case.method.upper() == "DELETE" and isinstance(case.query, dict):
        name = str(case.query.get("id"))
        if name in pool[name.split("_")[0]]:
            pool[name.split("_")[0]].remove(name)
    for link in response.headers.get("link", []):
        if found := re.search(r"[?&]cursor=([^&>]+)", link):
            cursors[case.path] = found.group(1)


LISTS = {
    "cg": "/content-groups/list",
    "cp": "/content-pieces/list",
    "tag": "/tags/list",
    "var": "/variants/list",
    "ast": "/assets/list",
    "role": "/roles/list",
    "tok": "/tokens/list",
    "wm": "/workspace-memberships/list-members",
    "wh": "/webhooks/list",
}


def tidy():
    """Looks what is there, and keeps little of it: each webhook gets a delivery of each event."""
    for kind, path in LISTS.items():
        names = [item["id"] for item in get(f"{path}?perPage=1000").json()]
        for name in [name for name in names if name not in OWN][: -10 if kind == "wh" else -200]:
            recursive = "&recursive=true" if kind == "cg" else ""
            api.delete(f"{BASE}{path.rpartition('/')[0]}?id={name}{recursive}", timeout=30)
            names.remove(name)
        pool[kind].clear()
        meet(" ".join(names[-40:]))
        pool[kind].extend(name for name in names[-40:] if name != OWN_TOKEN and name not in pool[kind])
    assert get("/profile").status_code == 200, "locked out"


tidy()
meet(get("/workspace").text)

# --- 3. What a document can't say -----------------------------------------------------------------------------------

# The paths whose parameter `fields` selects fields of the response.
SELECTABLE = {"/content-pieces", "/content-pieces/list", "/content-pieces/revision"}

# Whether something is there, or may be, depends on what was done before.
STATE = {"unknown_reference", "circle", "invalid_cursor"}


def is_inexpressible(case, issue):
    path, code, message = issue["path"], issue["code"], issue["message"]
    query = case.query or {}
    is_with_content = str(query.get("content")).lower() in ("true", "1")
    return (
        # A bound that depends on another parameter.
        (case.path == "/content-pieces/list" and path == ["perPage"] and is_with_content)
        # JSON and queries may have a NUL anywhere.
        or message.endswith("must not contain NUL")
        # JSON within a text.
        or (code == "invalid_json" and path[-1] == "customData")
        # JSON within a text, the order of children, and safe addresses.
        or code == "invalid_content"
        # What other fields say, or what is there already.
        or code == "invalid_reference"
        or (case.method == "PUT" and path == ["metadata", "contentGroupId"] and code == "required")
        or (case.method == "PUT" and path == ["wholeWorkspace"] and code == "conflict")
        # Fields that exclude one another, or are required without another one.
        or (case.path == "/content-pieces/publish" and code in ("conflict", "required"))
        or (case.path == "/tokens" and path == ["permissions"] and code == "conflict")
        or (case.path == "/webhooks" and path in (["event"], ["events"]) and code == "conflict")
        # A view that differs from the present one.
        or (case.path == "/webhooks" and path == ["view"] and code == "immutable_field")
        # A link to an id that is null in the response.
        or (case.method.upper() in ("GET", "DELETE") and code == "required" and path == ["id"] and not query.get("id"))
        # A document that is itself a JSON Schema.
        or (path[:1] == ["customDataSchema"] and code in ("invalid_schema", "recursive_schema", "schema_too_complex", "unsupported"))
        # A placeholder in the host of a template, and a host that is no name.
        or (path == ["previewUrl"] and code == "invalid_url")
        # The present.
        or (code == "invalid_date" and message.endswith("must be in the future"))
        # The name of a file is in the query, in a header or in a part of the form.
        or (is_upload(case) and code in ("required", "repeated"))
        # The form of a digest, and the names and values in a header.
        or path[:1] == ["Upload-Metadata"]
        or path in (["Content-Digest"], ["Repr-Digest"])
        # A length in bytes.
        or (code == "too_long" and "bytes" in message)
    )


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if type(failure).__name__ == "JsonSchemaError" and response.status_code == 200 and case.path in SELECTABLE:
        # A selection leaves out fields that are required otherwise.
        return not (case.query or {}).get("fields")
    if type(failure).__name__ == "AcceptedNegativeData" and response.status_code == 403 and case.path == "/profile/sessions":
        # An access token is rejected before the parameters are read.
        return response.json()["reason"] != "session_required"
    if type(failure).__name__ == "AcceptedNegativeData" and is_upload(case) and isinstance(case.body, dict):
        # A form has texts only: a value of another type arrives as its text.
        return False
    if case.path == UPLOADS and response.status_code == 412 and type(failure).__name__ in ("AcceptedNegativeData", "MissingHeaderNotRejected"):
        # By tus, another version of the protocol is rejected so.
        return False
    if type(failure).__name__ == "RejectedPositiveData" and response.status_code == 413 and case.path == UPLOADS:
        # The size limit is a setting, and the rest of an upload depends on what was sent.
        return False
    if type(failure).__name__ != "RejectedPositiveData" or response.status_code != 400:
        return True
    if case.path == "/invite":
        # Whether a name is needed depends on whom the invite is for.
        return not response.headers["content-type"][0].startswith("text/html")
    if response.headers["content-type"][0].startswith("text/html"):
        return True
    problem = response.json()
    issues = problem.get("issues")
    if issues:
        return not all(issue["code"] in STATE or is_inexpressible(case, issue) for issue in issues)
    # The digest of a body that is generated.
    if problem["reason"] == "digest_mismatch":
        return False
    # JSON may have a NUL anywhere; no schema can forbid one in the name of an unknown field, or a repeated field of a form.
    inexpressible = "NUL" in problem["detail"] or problem["detail"].endswith(" twice")
    # The generator writes control characters into the names of a form's parts.
    inexpressible |= is_upload(case) and problem["detail"].endswith("failed to read headers")
    return not (problem["reason"] == "malformed_body" and inexpressible)


# --- 4. Checks of its own -------------------------------------------------------------------------------------------


@schemathesis.check
def what_was_made_is_there(ctx, response, case):
    """A 201 with a `Location` leads to the resource."""
    location = response.headers.get("location")
    if response.status_code == 201 and location:
        replayed = "idempotency-replayed" in response.headers
        status = status_of(location[0])
        assert status == 200 or (replayed and status == 404), f"{location[0]} is {status} after its creation"


@schemathesis.check
def what_was_deleted_is_gone(ctx, response, case):
    """After a DELETE its GET is 404, and so is a second DELETE."""
    if case.method.upper() != "DELETE" or response.status_code != 204:
        return
    name = "&".join(f"{field}={case.query[field]}" for field in ("id", "revision") if field in case.query)
    if case.path != "/workspace-memberships":
        status = status_of(f"{case.path}?{name}")
        assert status == 404, f"{name} is {status} after its deletion"
    status = api.delete(f"{BASE}{case.path}?{name}", timeout=30).status_code
    assert status == 404, f"{name} is {status} when it is deleted again"


@schemathesis.check
def every_answer_has_its_headers(ctx, response, case):
    """`X-Request-Id` and `X-Content-Type-Options` are on every answer, `Allow` on a 405."""
    assert response.headers.get("x-request-id"), "no X-Request-Id"
    assert response.headers.get("x-content-type-options") == ["nosniff"], "no X-Content-Type-Options"
    if response.status_code == 405:
        assert response.headers.get("allow"), "no Allow"


# Addresses of webhooks that lead nowhere (RFC 5737), and whose names nobody has to look up.
host = st.builds("{}.{}".format, st.sampled_from(["192.0.2", "198.51.100", "203.0.113"]), st.integers(0, 255))
tail = st.text(string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@/?#", max_size=20)
schemathesis.openapi.format("uri-template", st.builds("https://{}/{}?id={{id}}&token={{token}}".format, host, st.text(string.ascii_letters, max_size=20)))
schemathesis.openapi.format("uri", st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "HTTPS"]), host, tail))
