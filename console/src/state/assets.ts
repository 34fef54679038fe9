/** The assets of a workspace: their cached reads, and the forms in which pages show them. */
import { createInfiniteQuery, createQuery } from "@tanstack/svelte-query";
import { type Asset, client, nextCursor, received } from "../api/client";
import { numberText, t } from "../i18n";
import { can } from "./permissions.svelte";
import { queryClient } from "./queries";

/** The assets of a page of the list: some screens of thumbnails. */
const PAGE = 60;

/** The limit of a page of the API. */
const PAGE_LIMIT = 1_000;

export interface AssetFilter {
  /** A media type, or its beginning up to the slash. */
  contentType: string | null;
  filename: string | null;
  isUnused: boolean;
}

/** A piece that refers to an asset. */
export interface AssetUse {
  contentPieceId: string;
  title: string;
  variantId: string | null;
  place: "current" | "published" | "trash";
}

const NONE: AssetFilter = { contentType: null, filename: null, isUnused: false };

function queryOf(filter: AssetFilter) {
  return {
    sort: "-createdAt",
    ...(filter.contentType === null ? {} : { contentType: filter.contentType }),
    ...(filter.filename === null ? {} : { filename: filter.filename }),
    ...(filter.isUnused ? { unused: true } : {}),
  };
}

async function page(workspace: string, query: object): Promise<{ assets: Asset[]; next: string | null }> {
  const headers = { "Galley-Workspace": workspace };
  const { data, response } = await received(client.GET("/assets/list", { params: { query }, headers } as never));
  return { assets: data as unknown as Asset[], next: nextCursor(response) };
}

export function createAssets(workspace: () => string, filter: () => AssetFilter = () => NONE, isEnabled = () => true) {
  return createInfiniteQuery(() => ({
    queryKey: [workspace(), "assets", "list", filter()],
    enabled: can("assets:read") && isEnabled(),
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }: { pageParam: string | null }) =>
      page(workspace(), { ...queryOf(filter()), perPage: PAGE, ...(pageParam === null ? {} : { cursor: pageParam }) }),
    getNextPageParam: ({ next }: { next: string | null }) => next,
  }));
}

/** Reads the newest unused assets. `isAll` is false if there are more of them. */
export function createUnusedAssets(workspace: () => string, isEnabled: () => boolean) {
  return createQuery(() => ({
    queryKey: [workspace(), "assets", "unused"],
    enabled: can("assets:read") && isEnabled(),
    queryFn: async () => {
      const { assets, next } = await page(workspace(), { ...queryOf({ ...NONE, isUnused: true }), perPage: PAGE_LIMIT });
      return { ids: new Set(assets.map(({ id }) => id)), oldest: assets.at(-1)?.createdAt ?? "", isAll: next === null };
    },
  }));
}

/** Reads an asset with its entity tag. */
export async function fetchAsset(workspace: string, id: string): Promise<{ asset: Asset; etag: string }> {
  const headers = { "Galley-Workspace": workspace };
  const { data, response } = await received(client.GET("/assets", { params: { query: { id } }, headers }));
  return { asset: data, etag: (response.headers.get("etag") ?? "*").replace(/^W\//, "") };
}

export async function fetchUses(workspace: string, id: string): Promise<AssetUse[]> {
  const headers = { "Galley-Workspace": workspace };
  const { data } = await received(client.GET("/assets/used-by", { params: { query: { id } }, headers }));
  return data as AssetUse[];
}

export const deleteAsset = (id: string, force = false) =>
  received(client.DELETE("/assets", { params: { query: { id, ...(force ? { force } : {}) } } } as never));

/** Reads the assets again, once they are shown. */
export function outdateAssets(workspace: string): void {
  void queryClient.invalidateQueries({ queryKey: [workspace, "assets"] });
}

/** The types that browsers show as an image. */
const SHOWN = ["image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/svg+xml"];

/** The types of which the server makes smaller images. */
const RENDERED = ["image/jpeg", "image/png", "image/gif", "image/webp"];

export const isImage = (asset: Asset) => SHOWN.includes(asset.contentType);

/** Returns the address of a small form of an image, or null for other files. */
export function thumbnailOf(asset: Asset, width: 320 | 640 = 320): string | null {
  if (RENDERED.includes(asset.contentType) && asset.width !== null) return `${asset.url}?w=${width}&f=webp`;
  return isImage(asset) ? asset.url : null;
}

/** Matches the path of an asset's address. */
const ADDRESS = /\/a\/([0-9a-z]{26})\/[^/?#]*$/;

/** Returns the address of a small form of an image, if it is an asset of this workspace's server. */
export function previewOf(address: string): string {
  return ADDRESS.test(address) && !/\.svg$/i.test(address) ? `${address}?w=640&f=webp` : address;
}

/** Returns the key of an asset's address, by which pieces refer to it; null for other addresses. */
export function keyOf(address: string): string | null {
  return ADDRESS.exec(address)?.[1] ?? null;
}

/** Returns a size in bytes as a text. */
export function sizeText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = bytes < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** unit;
  return `${numberText(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** Returns the size in pixels and in bytes. */
export function measuresOf(asset: Asset): string {
  const pixels = asset.width === null || asset.height === null ? [] : [`${asset.width} × ${asset.height}`];
  return [...pixels, sizeText(asset.size)].join(" · ");
}

/** Returns the kind of a file as a short text, such as PDF. */
export function kindOf(asset: Asset): string {
  const [type = "", subtype = ""] = asset.contentType.split("/");
  const short = subtype.replace(/^x-|\+xml$/g, "").toUpperCase();
  const extension = /\.([a-z0-9]{1,5})$/i.exec(asset.filename)?.[1]?.toUpperCase();
  return short.length <= 5 ? short : (extension ?? t.assets.kinds[type] ?? asset.contentType);
}
