# Verifies messages with the published Python library, for tests/it/verifiers.rs:
#
#   python3 -m venv <DIR> && <DIR>/bin/pip install standardwebhooks
#   GALLEY_TEST_VERIFIER="<DIR>/bin/python $PWD/verify.py" cargo test -p galley-delivery --test it -- verifier

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    message = json.loads(line)
    secret = message["secret"]
    webhook = Webhook(secret if secret.startswith("whsec_") else secret.encode())
    try:
        webhook.verify(message["body"], message["headers"], json_parse=False)
        print("taken")
    except WebhookVerificationError:
        print("refused")
