/** New access tokens. */
import { client, received } from "../api/client";

const content = ["contentPieces:read", "contentGroups:read", "tags:read", "variants:read", "assets:read"];

/** The permissions of a token by its purpose. A site reads what is published. */
const presets = {
  site: { permissions: content, view: "published" },
  editor: {
    permissions: [...content, "contentPieces:write", "contentGroups:write", "tags:write", "variants:write", "assets:write", "publishing:write"],
    view: "current",
  },
  backup: { permissions: [...content, "workspaceMemberships:read", "roles:read", "workspace:read", "webhooks:read"], view: "current" },
};

export type Preset = keyof typeof presets;

export const PRESETS = Object.keys(presets) as Preset[];

/** Creates a token, and returns its text. */
export async function createToken(preset: Preset, name: string, expiresAt: Date | null): Promise<string> {
  const body = { name, ...presets[preset], ...(expiresAt === null ? {} : { expiresAt: expiresAt.toISOString() }) };
  const { data } = await received(client.POST("/tokens", { body } as never));
  return (data as { token: string }).token;
}
