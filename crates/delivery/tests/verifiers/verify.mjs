// Verifies messages with the published JavaScript library, for tests/it/verifiers.rs. In a copy of this
// folder:
//
//   npm install --no-save standardwebhooks
//   GALLEY_TEST_VERIFIER="node <COPY>/verify.mjs" cargo test -p galley-delivery --test it -- verifier

import { createInterface } from "node:readline";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  const webhook = secret.startsWith("whsec_")
    ? new Webhook(secret)
    : new Webhook(new TextEncoder().encode(secret), { format: "raw" });
  try {
    webhook.verify(body, headers, { jsonParse: false });
    console.log("taken");
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    console.log("refused");
  }
}
