/** Uploads of files: some at once, each with its progress. They go on while other pages are shown. */
import type { DetailedError, Upload as ResumableUpload } from "tus-js-client";
import { ApiError, type Asset, client, received } from "../api/client";
import { t } from "../i18n";
import { messageOf } from "../ui/message";
import { outdateAssets, sizeText } from "./assets";
import type { PreparedFile } from "./files.svelte";
import { can } from "./permissions.svelte";

/** The limit of concurrent uploads. */
const CONCURRENCY = 3;

/** The size in bytes from which on an upload continues after an interruption. */
const RESUMABLE_SIZE = 16_000_000;

/** The times before a resumable upload is continued by itself, in milliseconds. */
const RETRY_DELAYS = [0, 1_000, 3_000, 5_000];

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

const unreachable = () => new TypeError("the server can't be reached");

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
  /** Ends the request that runs. A cancellation deletes what the server has of the file, too. */
  #abort: ((isCancelled: boolean) => void) | null = null;
  #resumable: ResumableUpload | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

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

  /** Ends the upload, and removes it from the list. With `canContinue`, the server keeps what it
   * has of a large file, for a later upload. */
  cancel(canContinue = false): void {
    uploads.remove(this);
    if (this.state === "done") return;
    this.state = "cancelled";
    this.#abort?.(!canContinue);
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
      clearTimeout(this.#timer);
      uploads.start();
    }
  }

  /** Shows the progress of the request that runs. Without further progress, the request is ended. */
  #advance(sent: number, total: number): void {
    this.progress = total > 0 ? sent / total : 0;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort?.(false), STALL_TIMEOUT);
  }

  async #send(): Promise<Asset> {
    if (!can("assets:write")) {
      throw new ApiError(403, { reason: "insufficient_permissions", detail: t.assets.needsPermission("assets:write") });
    }
    const { group, alt } = this.options;
    const name = this.file.name.replace(INVALID, "-").slice(0, NAME_LENGTH_LIMIT);
    const fields: Record<string, string> = { filename: name === "" ? "file" : name };
    if (alt) fields.alt = alt;
    if (group !== null) fields.contentGroupId = group;
    return await (this.file.size < RESUMABLE_SIZE ? this.#post(fields) : this.#resume(fields));
  }

  /** Sends the file in parts, behind those that the server has. */
  async #resume(fields: Record<string, string>): Promise<Asset> {
    const tus = await import("tus-js-client");
    // It was cancelled meanwhile.
    if ((this.state as string) !== "uploading") throw unreachable();
    const { workspace } = this.options;
    await new Promise<void>((done, failed) => {
      const upload = (this.#resumable ??= new tus.Upload(this.file, {
        endpoint: "/assets/uploads",
        headers: { "Galley-Workspace": workspace },
        metadata: fields,
        retryDelays: RETRY_DELAYS,
        // The same file continues after a restart of the browser, in the same place only.
        fingerprint: async ({ name, size, lastModified }: File) => JSON.stringify(["upload", workspace, fields, name, size, lastModified]),
        removeFingerprintOnSuccess: true,
        onAfterResponse: (request, response) => {
          const status = response.getStatus();
          const isFinal = (status >= 200 && status < 300) || status === 404 || status === 410;
          // The client would begin anew. An error of the server is no reason to lose the progress.
          if (request.getMethod() === "HEAD" && !isFinal) throw new ApiError(status, {});
        },
      }));
      upload.options.onProgress = (sent, total) => this.#advance(sent, total);
      upload.options.onSuccess = () => done();
      upload.options.onError = (error) => void this.#problemOf(error).then(failed);
      this.#abort = (isCancelled) => {
        // The parts of an upload that is not deleted expire.
        upload.abort(isCancelled).catch(() => {});
        failed(unreachable());
      };
      this.#advance(0, this.file.size);
      void this.#start(upload);
    });
    const id = new URL(this.#resumable!.url!, location.href).searchParams.get("id")!;
    const request = client.GET("/assets", { params: { query: { id } }, headers: { "Galley-Workspace": workspace } });
    return (await received(request)).data;
  }

  async #start(upload: ResumableUpload): Promise<void> {
    if (upload.url === null) {
      const others = uploads.all.map((other) => other.#resumable?.url);
      const previous = (await upload.findPreviousUploads()).filter(({ uploadUrl }) => uploadUrl !== null && !others.includes(uploadUrl));
      if (previous.length > 0) upload.resumeFromPreviousUpload(previous.at(-1)!);
    }
    if (this.state === "uploading") upload.start();
  }

  async #problemOf(error: Error | DetailedError): Promise<unknown> {
    if ("causingError" in error && error.causingError instanceof ApiError) return error.causingError;
    const response = "originalResponse" in error ? error.originalResponse : null;
    if (response === null) return await this.#connectionProblem();
    try {
      return new ApiError(response.getStatus(), JSON.parse(response.getBody()));
    } catch {
      return new ApiError(response.getStatus(), {});
    }
  }

  /** Returns the reason of a request without a response. */
  async #connectionProblem(): Promise<Error> {
    // A folder can't be read, and a file may be gone meanwhile.
    return await this.file.slice(0, 1).arrayBuffer().then(unreachable, () => new Error(t.assets.unreadable));
  }

  /** Sends the file in one request. */
  #post(fields: Record<string, string>): Promise<Asset> {
    return new Promise((done, failed) => {
      const request = new XMLHttpRequest();
      this.#abort = () => request.abort();
      request.upload.onprogress = ({ loaded, total }) => this.#advance(loaded, total);
      request.onload = () => {
        try {
          const body = JSON.parse(request.responseText) as Asset & { reason?: string };
          if (request.status !== 201) failed(new ApiError(request.status, body as never));
          // Another server in between may have responded, as those of hotels do.
          else if (typeof body.id !== "string" || typeof body.url !== "string") failed(unreachable());
          else done(body);
        } catch {
          failed(request.status >= 400 ? new ApiError(request.status, {}) : new TypeError("the response is not by Galley"));
        }
      };
      request.onerror = () => void this.#connectionProblem().then(failed);
      request.onabort = () => failed(unreachable());
      request.open("POST", `/assets?${new URLSearchParams(fields)}`);
      request.setRequestHeader("Content-Type", this.file.type || "application/octet-stream");
      request.setRequestHeader("Galley-Workspace", this.options.workspace);
      request.setRequestHeader("Prefer", "return=representation");
      // A repeat after a lost response creates no second asset.
      request.setRequestHeader("Idempotency-Key", this.key);
      this.#advance(0, this.file.size);
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

  /** Uploads a file at once, and returns after the first attempt. */
  async run(file: PreparedFile, options: UploadOptions): Promise<Upload> {
    const upload = new Upload(file, options);
    this.all = [...this.all, upload];
    await upload.run();
    this.remove(upload);
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
