"""A mail server for tests: aiosmtpd, which says on standard output what it takes, a mail on each line.

smtp_server.py PORT [CA_FILE [implicit]]: with a file, into which it writes the certificate of its authority, it
demands STARTTLS, or speaks TLS from the start, and that who sends logs in as `user` with `pass word`. To `refused@…` it
says 550, to `policy@…` 550 because of a policy, to `later@…` 451, and to a mail for `quoted@…` 550 with all of it.
"""

import json
import ssl
import sys
import threading

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address.startswith("refused@"):
            return "550 5.1.1 nobody of this name"
        if address.startswith("policy@"):
            return "550 5.7.1 relay access denied \x1b[31m"
        if address.startswith("later@"):
            return "451 4.3.0 not now"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if envelope.rcpt_tos[0].startswith("quoted@"):
            start = envelope.content.find(b"http")
            return "554 5.6.0 not wanted: " + envelope.content[start : start + 150].decode().replace("\r\n", " ")
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "content": envelope.content.decode(),
            "encrypted": session.ssl is not None,
            "authenticated": session.authenticated,
        }
        print(json.dumps(mail), flush=True)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    known = (data.login, data.password) == (b"user", b"pass word")
    return AuthResult(success=known, handled=False)


def main():
    port, *ca_file = sys.argv[1:3]
    implicit = sys.argv[3:] == ["implicit"]
    settings = {}
    if ca_file:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(ca_file[0])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost").configure_cert(context)
        if implicit:
            settings = {"ssl_context": context, "auth_require_tls": False}
        else:
            settings = {"tls_context": context, "require_starttls": True}
        settings |= {
            "auth_required": True,
            "authenticator": authenticate,
        }
    Controller(Handler(), hostname="127.0.0.1", port=int(port), **settings).start()
    print("ready", flush=True)
    threading.Event().wait()


main()
