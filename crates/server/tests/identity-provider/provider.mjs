// An identity provider on a free port of this machine: oidc-provider, with faults on request.
//
// It prints its URL. `POST /control` takes the account that signs in next, and the faults of its
// statements: `{"account": {…claims}, "faults": {…}}`.

import { createServer } from "node:http";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, decodeJwt } from "jose";
import { Provider } from "oidc-provider";

const [clientId, clientSecret, redirect] = process.argv.slice(2);

async function newKey(kid) {
  const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
  const use = { kid, use: "sig", alg: "RS256" };
  return {
    privateKey,
    privateJwk: { ...(await exportJWK(privateKey)), ...use },
    publicJwk: { ...(await exportJWK(publicKey)), ...use },
  };
}

const keys = { first: await newKey("first"), next: await newKey("next") };
const unpublished = await newKey("first");
let control = { account: {}, faults: {} };

const server = createServer();
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirect],
      token_endpoint_auth_method: process.env.AUTH_METHOD ?? "client_secret_basic",
    },
  ],
  clientAuthMethods: [process.env.AUTH_METHOD ?? "client_secret_basic"],
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  cookies: { keys: ["a key of the tests"] },
  features: { devInteractions: { enabled: false } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...control.account }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  jwks: { keys: [keys.first.privateJwk] },
  pkce: { required: () => true },
  ttl: { Session: 60, Interaction: 60, Grant: 60, AccessToken: 60, IdToken: 60 },
});

// Replaces the ID token by one with the requested faults.
async function withFaults(idToken) {
  const { faults } = control;
  const claims = { ...decodeJwt(idToken), ...faults.claims };
  const now = Math.floor(Date.now() / 1000);
  for (const name of ["iat", "exp"]) {
    if (faults[name] !== undefined) claims[name] = now + faults[name];
  }
  for (const name of faults.without ?? []) delete claims[name];
  const sign = (key, alg, kid) =>
    new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(key);
  switch (faults.key) {
    case "none":
      return new UnsecuredJWT(claims).encode();
    case "secret":
      return sign(new TextEncoder().encode(clientSecret), "HS256");
    case "public": {
      // The public key as the secret of a symmetric algorithm.
      const text = JSON.stringify(keys.first.publicJwk);
      return sign(new TextEncoder().encode(text), "HS256", "first");
    }
    case "unpublished":
      return sign(unpublished.privateKey, "RS256", "first");
    case "next":
      return sign(keys.next.privateKey, "RS256", "next");
    default:
      return sign(keys.first.privateKey, "RS256", "first");
  }
}

provider.use(async (ctx, next) => {
  if (ctx.path === "/control") {
    let text = "";
    for await (const chunk of ctx.req) text += chunk;
    control = { account: {}, faults: {}, ...JSON.parse(text) };
    ctx.status = 204;
    return;
  }
  if (ctx.path.startsWith("/interaction/")) {
    const { prompt, params, session } = await provider.interactionDetails(ctx.req, ctx.res);
    let result = { login: { accountId: "account" } };
    if (control.faults.declines) {
      result = { error: "access_denied", error_description: "<script>alert(1)</script>" };
    } else if (prompt.name === "consent") {
      const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
      grant.addOIDCScope("openid email");
      result = { consent: { grantId: await grant.save() } };
    }
    // The response is that of the library, not of its framework.
    ctx.respond = false;
    await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
    return;
  }
  if (control.faults.unavailable === ctx.path) {
    ctx.status = 500;
    return;
  }
  await next();
  const { faults } = control;
  if (ctx.path === "/token" && ctx.body?.id_token) {
    ctx.body.id_token = await withFaults(ctx.body.id_token);
    if (faults.withoutIdToken) delete ctx.body.id_token;
    if (faults.accessToken) ctx.body.access_token = faults.accessToken;
  }
  if (ctx.path === "/jwks" && faults.key === "next") {
    ctx.body = { keys: [keys.next.publicJwk] };
  }
  if (ctx.path === "/me" && faults.subject) {
    ctx.body = { ...ctx.body, sub: faults.subject };
  }
});

server.on("request", provider.callback());
console.log(issuer);
