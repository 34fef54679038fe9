/** Uploads of files: some at once, each with its progress. They go on while other pages are shown. */
import { ApiError, type Asset } from "../api/client";
import { t } from "../i18n";
import { messageOf } from "../ui/message";
import { outdateAssets, sizeText } from "./assets";
import type { PreparedFile } from "./files.svelte";
import { can } from "./permissions.svelte";

/** The limit of concurrent uploads. */
const CONCURRENCY = 3;

/** The time without progress after which a connection counts as dead. */
const STALL_TIMEOUT = 120_000;

/** The characters that file names can't have. */
const INVALID = /[\p{Cc}/\\]/gu;
const NAME_LENGTH_LIMIT = 255;

export interface UploadOptions {
  workspace: string;
  /** The group of the asset; null for the whole workspace. */
  group: string | null;
  alt?: string;
  /** The place that shows the upload, such as the cover of a piece. */
  origin: string;
}

function randomKey(): string {
  // `crypto.randomUUID` exists on secure pages only.
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16).padStart(8, "0")).join("");
}

export class Upload {
  readonly key = randomKey();
  readonly file: File;
  readonly location: PreparedFile["location"];
  readonly options: UploadOptions;
  state = $state<"waiting" | "uploading" | "done" | "failed" | "cancelled">("waiting");
  /** The part of the file that is sent: 0 to 1. */
  progress = $state(0);
  error = $state.raw<unknown>(null);
  /** The asset, or null after a cancellation. A failure leaves it open, as it can be repeated. */
  readonly finished: Promise<Asset | null>;
  #finish!: (asset: Asset | null) => void;
  #request: XMLHttpRequest | null = null;

  constructor({ file, location }: PreparedFile, options: UploadOptions) {
    this.file = file;
    this.location = location;
    this.options = options;
    this.finished = new Promise((done) => (this.#finish = done));
  }

  get isRunning(): boolean {
    return this.state === "waiting" || this.state === "uploading";
  }

  retry(): void {
    if (this.state !== "failed") return;
    this.state = "waiting";
    this.error = null;
    uploads.start();
  }

  /** Ends the upload, and removes it from the list. */
  cancel(): void {
    uploads.remove(this);
    if (this.state === "done") return;
    this.state = "cancelled";
    this.#request?.abort();
    this.#finish(null);
    uploads.start();
  }

  async run(): Promise<void> {
    this.state = "uploading";
    this.progress = 0;
    try {
      const asset = await this.#send();
      this.state = "done";
      uploads.remove(this);
      outdateAssets(this.options.workspace);
      this.#finish(asset);
    } catch (error) {
      // A cancellation ends the request with an error, too.
      if ((this.state as string) === "cancelled") return;
      this.error = error;
      this.state = "failed";
    } finally {
      this.#request = null;
      uploads.start();
    }
  }

  #send(): Promise<Asset> {
    const { workspace, group, alt } = this.options;
    if (!can("assets:write")) {
      return Promise.reject(new ApiError(403, { reason: "insufficient_permissions", detail: t.assets.needsPermission("assets:write") }));
    }
    const name = this.file.name.replace(INVALID, "-").slice(0, NAME_LENGTH_LIMIT);
    const query = new URLSearchParams({ filename: name === "" ? "file" : name });
    if (alt) query.set("alt", alt);
    if (group !== null) query.set("contentGroupId", group);
    return new Promise((done, failed) => {
      const request = new XMLHttpRequest();
      this.#request = request;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const unreachable = () => failed(new TypeError("the server can't be reached"));
      const watch = () => {
        clearTimeout(timer);
        timer = setTimeout(() => request.abort(), STALL_TIMEOUT);
      };
      request.upload.onprogress = ({ loaded, total }) => {
        this.progress = total > 0 ? loaded / total : 0;
        watch();
      };
      request.onload = () => {
        try {
          const body = JSON.parse(request.responseText) as Asset & { reason?: string };
          if (request.status !== 201) failed(new ApiError(request.status, body as never));
          // Another server in between may have responded, as those of hotels do.
          else if (typeof body.id !== "string" || typeof body.url !== "string") unreachable();
          else done(body);
        } catch {
          failed(request.status >= 400 ? new ApiError(request.status, {}) : new TypeError("the response is not by Galley"));
        }
      };
      // A folder can't be read, and a file may be gone meanwhile.
      request.onerror = () => void this.file.slice(0, 1).arrayBuffer().then(unreachable, () => failed(new Error(t.assets.unreadable)));
      request.onabort = unreachable;
      request.onloadend = () => clearTimeout(timer);
      request.open("POST", `/assets?${query}`);
      request.setRequestHeader("Content-Type", this.file.type || "application/octet-stream");
      request.setRequestHeader("Galley-Workspace", workspace);
      request.setRequestHeader("Prefer", "return=representation");
      // A repeat after a lost response creates no second asset.
      request.setRequestHeader("Idempotency-Key", this.key);
      watch();
      request.send(this.file);
    });
  }
}

class Uploads {
  /** The uploads that are not done, oldest first. */
  all = $state.raw<Upload[]>([]);

  constructor() {
    // The browser asks before it leaves the page.
    addEventListener("beforeunload", (event) => {
      if (this.all.some((one) => one.isRunning)) event.preventDefault();
    });
  }

  add(file: PreparedFile, options: UploadOptions): Upload {
    const upload = new Upload(file, options);
    this.all = [...this.all, upload];
    this.start();
    return upload;
  }

  remove(upload: Upload): void {
    this.all = this.all.filter((one) => one !== upload);
  }

  /** Starts waiting uploads, as far as the limit allows. */
  start(): void {
    const running = this.all.filter((one) => one.state === "uploading").length;
    const waiting = this.all.filter((one) => one.state === "waiting");
    for (const upload of waiting.slice(0, Math.max(0, CONCURRENCY - running))) void upload.run();
  }
}

export const uploads = new Uploads();

/** Returns the number of bytes that an error names, as a text. */
function limitOf(error: ApiError): string {
  const bytes = /(\d+) bytes/.exec(error.message)?.[1];
  return bytes === undefined ? "" : sizeText(Number(bytes));
}

/** Returns the reason of a failed upload, with its remedy. */
export function uploadProblem(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.reason === "payload_too_large" || (error.status === 413 && error.reason !== "asset_storage_exceeded")) return t.assets.tooLarge(limitOf(error));
    if (error.reason === "asset_storage_exceeded") return t.assets.storageFull(limitOf(error));
    if (error.reason === "insufficient_permissions") return t.assets.needsPermission("assets:write");
    if (error.reason === "asset_store_unavailable") return t.assets.storeAway;
  }
  return messageOf(error);
}
