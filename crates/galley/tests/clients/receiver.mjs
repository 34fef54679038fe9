/** Receives webhook requests on a real port, verifies them, and prints the outcome of each. */
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const { GALLEY_CLIENT, GALLEY_URL, GALLEY_TOKEN, RECEIVER_PORT } = process.env;
const { createClient, verifyWebhook } = await import(pathToFileURL(GALLEY_CLIENT).href);
const secret = `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64")}`;
const galley = createClient({ url: GALLEY_URL, token: GALLEY_TOKEN });
const requests = [];
let resolve;
const received = new Promise((settle) => (resolve = settle));

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  requests.push({ headers: request.headers, body: Buffer.concat(chunks) });
  response.end();
  if (requests.length === 1) resolve();
});
await new Promise((listening) => server.listen(Number(RECEIVER_PORT), "127.0.0.1", listening));
await galley.createWebhook({ url: `http://127.0.0.1:${RECEIVER_PORT}/`, name: "Verified", event: "tagChanged", secret });
await galley.createTag({ label: "Verified" });
await received;

const [{ headers, body }] = requests;
const outcome = async (...given) => verifyWebhook(...given).then((event) => event.type, (error) => error.message);
const late = { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) - 301) };
const rotated = { ...headers, "webhook-signature": `v1,${btoa("wrong")} v2,x ${headers["webhook-signature"]}` };
const request = new Request("http://receiver/", { method: "POST", headers, body });
console.log(JSON.stringify({
  verified: await outcome({ headers, body }, secret),
  fetched: await outcome(request, secret),
  text: await outcome({ headers, body: body.toString() }, secret),
  rotated: await outcome({ headers: rotated, body }, ["another secret", secret]),
  label: (await verifyWebhook({ headers, body }, secret)).data.label,
  changed: await outcome({ headers, body: `${body} ` }, secret),
  other: await outcome({ headers, body }, "another secret"),
  late: await outcome({ headers: late, body }, secret),
  unsigned: await outcome({ headers: {}, body }, secret),
}));
process.exit(0);
