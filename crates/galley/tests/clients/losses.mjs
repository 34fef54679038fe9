/** Requests through a proxy that loses responses: each takes effect once, or its error says so. */
import { connect, createServer } from "node:net";
import { createServer as createHttpServer } from "node:http";
import { pathToFileURL } from "node:url";
import { same } from "./story.mjs";

const { GALLEY_CLIENT, GALLEY_URL, GALLEY_TOKEN } = process.env;
const { createClient, retryOnConflict } = await import(pathToFileURL(GALLEY_CLIENT).href);
const target = new URL(GALLEY_URL);

/** The next losses: the number of bytes of a response that arrive before its connection breaks. */
const losses = [];
const sockets = new Set();
const proxy = createServer((client) => {
  sockets.add(client);
  const server = connect(Number(target.port), target.hostname);
  client.pipe(server);
  server.on("data", (data) => {
    const passed = losses.shift();
    if (passed === undefined) return client.write(data);
    client.write(data.subarray(0, passed), () => client.resetAndDestroy());
    server.destroy();
  });
  const end = () => (client.destroy(), server.destroy(), sockets.delete(client));
  for (const socket of [client, server]) socket.on("error", end).on("close", end);
});
await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${proxy.address().port}`;
const direct = createClient({ url: GALLEY_URL, token: GALLEY_TOKEN });
const galley = createClient({ url, token: GALLEY_TOKEN });
const labels = async () => (await direct.listTags().all()).map(({ label }) => label);
const count = async (label) => (await labels()).filter((found) => found === label).length;

for (const passed of [0, 60]) {
  losses.push(passed);
  const label = `Created after ${passed} bytes`;
  same(typeof (await galley.createTag({ label })).id, "string", label);
  same([await count(label), losses.length], [1, 0], label);
}
const { token: second } = await direct.createToken({ name: "Second", permissions: ["tags:write"] });
const tokens = [GALLEY_TOKEN, second];
losses.push(0);
await createClient({ url, token: () => tokens.shift() }).createTag({ label: "By two tokens" });
same([await count("By two tokens"), tokens.length], [1, 1], "a creation with changing tokens");

const tag = await direct.createTag({ label: "A" }, { return: "representation" });
losses.push(0);
same((await galley.getTag({ id: tag.id })).label, "A", "a read without a response is repeated");

const loseChange = async () => {
  const read = await galley.getTag({ id: tag.id });
  losses.push(0);
  await galley.updateTag({ id: tag.id, label: `${read.label}!` }, { ifMatch: read });
};
const error = await retryOnConflict(loseChange).then(() => null, (error) => error);
same([error?.reason, error?.isUncertain], ["precondition_failed", true], "a change without a response");
same((await direct.getTag({ id: tag.id })).label, "A!", "a change without a response is not repeated");

losses.push(0);
await galley.deleteTag({ id: tag.id });
same(await count("A!"), 0, "a deletion without a response");
const missing = await galley.deleteTag({ id: tag.id }).then(() => null, (error) => error.reason);
same(missing, "not_found", "a deletion of nothing");

const { sequence } = await direct.getEventPosition();
const seen = [];
const causes = [];
const stream = galley.followEvents({ after: sequence, onReconnect: (cause) => causes.push(cause) });
for (let number = 0; number < 5; number++) {
  await direct.createTag({ label: `Event ${number}` });
  seen.push((await stream.next()).value.data.label);
  for (const socket of sockets) socket.destroy();
}
await stream.return();
same(seen, [0, 1, 2, 3, 4].map((number) => `Event ${number}`), "events over broken connections");
same(causes.length >= 4, true, "new connections are reported");

const received = [];
const other = createHttpServer((request, response) => {
  received.push(request.url);
  if (request.url.startsWith("/silent")) return;
  response.writeHead(307, { location: `${GALLEY_URL}/tags` }).end();
});
await new Promise((listening) => other.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${other.address().port}`;
const redirected = createClient({ url: address, token: GALLEY_TOKEN }).createTag({ label: "Redirected" });
const refusal = await redirected.then(() => "", (error) => error.message);
same(refusal, `${address} redirects to ${GALLEY_URL}/tags: use the address that it redirects to as url`, "a redirect");
same([received, await count("Redirected")], [["/tags"], 0], "a redirect is not followed");
const silent = createClient({ url: `${address}/silent`, timeout: 300, retries: 1 });
const garbage = setInterval(() => Array.from({ length: 100_000 }, () => ({})), 10);
same(await silent.getProfile().then(() => "", (error) => error.name), "TimeoutError", "a silent server");
clearInterval(garbage);
same(received.length, 3, "a timeout is repeated");
console.log("done");
process.exit(0);
