// Resumable uploads by a published client of the protocol.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import * as tus from "tus-js-client";
import { startProxy } from "./proxy.mjs";

const url = process.env.GALLEY_URL;
const headers = { authorization: `Bearer ${process.env.GALLEY_TOKEN}` };
const bytes = randomBytes(12_000_000);

/** The bytes of requests after which the first connections end. */
const cuts = [];
let connections = 0;
const proxy = await startProxy(url, ({ end, send }) => {
  connections += 1;
  let rest = cuts.shift() ?? Infinity;
  return (bytes) => {
    rest -= bytes.length;
    if (rest < 0) end();
    else send(bytes);
  };
});
const endpoint = `http://127.0.0.1:${proxy.port}/assets/uploads`;

/** Uploads the file. Returns the address of the upload. */
async function uploaded(more) {
  return await new Promise((resolve, reject) => {
    const upload = new tus.Upload(bytes, {
      endpoint,
      headers,
      metadata: { filename: "Föhr.bin", alt: "An island" },
      retryDelays: [0, 50, 50, 50],
      storeFingerprintForResuming: false,
      onError: reject,
      onSuccess: () => resolve(upload.url),
      ...more,
    });
    upload.start();
  });
}

for (const more of [
  { chunkSize: Infinity },
  { chunkSize: 1_000_000 },
  { chunkSize: 1_000_000, uploadDataDuringCreation: true },
  { chunkSize: 4_000_000, overridePatchMethod: true },
]) {
  // The client would keep the connection of the upload before.
  proxy.disconnect();
  cuts.splice(0, cuts.length, 5_000_000, 3_000_000);
  connections = 0;
  const id = new URL(await uploaded(more)).searchParams.get("id");
  assert.ok(connections >= 3, `${connections} connections`);
  const response = await fetch(`${url}/assets?id=${id}`, { headers });
  assert.equal(response.status, 200);
  const asset = await response.json();
  assert.equal(asset.filename, "Föhr.bin");
  assert.equal(asset.alt, "An island");
  assert.equal(asset.hash, createHash("sha256").update(bytes).digest("hex"));
}

// An upload that its client gives up.
const address = await new Promise((resolve, reject) => {
  const upload = new tus.Upload(bytes, {
    endpoint,
    headers,
    metadata: { filename: "a" },
    chunkSize: 1_000_000,
    storeFingerprintForResuming: false,
    onError: reject,
    onChunkComplete: () => upload.abort(true).then(() => resolve(upload.url), reject),
  });
  upload.start();
});
const head = await fetch(address, { method: "HEAD", headers: { ...headers, "tus-resumable": "1.0.0" } });
assert.equal(head.status, 404);
proxy.close();
process.exit();
