/** Runs the functions of the published client `@vrite/sdk` whose endpoints Galley has. */
import { createClient } from "@vrite/sdk/api";
import { same } from "./story.mjs";

const { GALLEY_URL: baseURL, GALLEY_TOKEN: token } = process.env;
const vrite = createClient({ baseURL, token });
console.error = () => {}; // The client prints the errors that it throws.

const profile = await vrite.profile.get();
same((await vrite.workspace.get()).name, "My workspace", "the workspace");
const groups = await vrite.contentGroups.list({});
same(groups.map(({ name }) => name), ["Posts"], "groups");
const group = (await vrite.contentGroups.create({ name: "News", ancestor: groups[0].id })).id;
await vrite.contentGroups.update({ id: group, name: "Notes" });
same((await vrite.contentGroups.get({ id: group })).name, "Notes", "a group");
same((await vrite.contentGroups.list({ ancestor: groups[0].id })).map(({ id }) => id), [group], "groups below");

const created = await fetch(`${baseURL}/tags`, {
  method: "POST",
  headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  body: JSON.stringify({ label: "Harbour", color: "blue" }),
});
const tag = (await created.json()).id;
await vrite.tags.update({ id: tag, label: "Harbours" });
same(await vrite.tags.get({ id: tag }), { id: tag, label: "Harbours", color: "blue" }, "a tag");
same((await vrite.tags.list({ perPage: 10, page: 1 })).length, 1, "tags");
same(await vrite.tags.create({ label: "x" }).catch(({ code, issues }) => [code, issues[0].path]), ["BAD_REQUEST", ["id"]], "tags.create");

const [member] = await vrite.workspaceMemberships.listMembers({});
same(member.userId, profile.id, "a member");
same((await vrite.workspaceMemberships.listWorkspaces({})).length, 1, "workspaces");
same((await vrite.roles.list({})).map(({ name }) => name).sort(), ["Admin", "Editor", "Viewer"], "roles");
const role = (await vrite.roles.create({ name: "Author", permissions: ["contentPieces:read"] })).id;
await vrite.roles.update({ id: role, name: "Reader" });
same((await vrite.roles.get({ id: role })).name, "Reader", "a role");
const invited = (await vrite.workspaceMemberships.create({ email: "bob@example.org", name: "Bob", roleId: role })).id;
await vrite.workspaceMemberships.update({ id: invited, roleId: (await vrite.roles.list({}))[0].id });
await vrite.workspaceMemberships.delete({ id: invited });
await vrite.roles.delete({ id: role });

const variant = (await vrite.variants.create({ key: "de", label: "German" })).id;
await vrite.variants.update({ id: variant, label: "Deutsch" });
same((await vrite.variants.list()).map(({ label }) => label), ["Deutsch"], "variants");

const fields = { title: "Harbours", slug: "harbours", contentGroupId: group, members: [member.id], tags: [tag] };
const piece = (await vrite.contentPieces.create({ ...fields, content: "<p>Boats <b>leave</b>.</p>" })).id;
await vrite.contentPieces.update({ id: piece, title: "Häfen", variant: "de" });
await vrite.contentPieces.update({ id: piece, customData: { pinned: true } });
const read = await vrite.contentPieces.get({ id: piece, content: true, description: "text" });
same(read.content.content[0].content.map(({ text }) => text), ["Boats ", "leave", "."], "content");
same(read.tags[0].label, "Harbours", "the tag of a piece");
same((await vrite.contentPieces.get({ id: piece, variant: "de" })).title, "Häfen", "a variant");
const lists = [{ contentGroupId: group }, { contentGroupId: [group, groups[0].id] }, { slug: "harbours", page: 1, perPage: 5 }, { tagId: tag }];
for (const list of lists) {
  same((await vrite.contentPieces.list(list)).map(({ id }) => id), [piece], JSON.stringify(list));
}

const hook = { url: "https://example.org/hook", name: "Site", event: "contentPieceAdded", metadata: { contentGroupId: group } };
const webhook = (await vrite.webhooks.create(hook)).id;
await vrite.webhooks.update({ id: webhook, name: "Blog" });
same((await vrite.webhooks.get({ id: webhook })).name, "Blog", "a webhook");
same((await vrite.webhooks.list({ perPage: 10 })).length, 1, "webhooks");
await vrite.webhooks.delete({ id: webhook });

const missing = await vrite.snippets.list({}).catch(({ code }) => code);
same(missing, "NOT_FOUND", "an endpoint that Galley lacks");
const denied = createClient({ baseURL, token: "wrong" });
same(await denied.profile.get().catch(({ code }) => code), "UNAUTHORIZED", "a wrong token");
await vrite.contentPieces.delete({ id: piece });
same(await vrite.contentPieces.get({ id: piece }).catch(({ code }) => code), "NOT_FOUND", "a deleted piece");
await vrite.variants.delete({ id: variant });
await vrite.tags.delete({ id: tag });
await vrite.contentGroups.delete({ id: group });
console.log("done");
