/** An import of files: it is read and compared first, and continues while other pages are shown.
 *
 * Images and linked files are named by their hashes. The comparison tells which of them documents
 * refer to, and which are no assets yet. Those are uploaded before the pieces are written. */
import { client, received } from "../api/client";
import { t } from "../i18n";
import { outdateAssets } from "./assets";
import { files as photos, isLocated, withoutLocation } from "./files.svelte";
import { can } from "./permissions.svelte";
import { queryClient } from "./queries";
import { uploads } from "./uploads.svelte";

export interface ImportDocument {
  source: string;
  outcome: "created" | "updated" | "unchanged" | "conflict" | "rejected";
  problem: string | null;
}

export interface ImportFinding {
  group: string;
  what: string;
  count: number;
  sources: string[];
}

export interface ImportReport {
  created: number;
  updated: number;
  unchanged: number;
  published: number;
  scheduled: number;
  unpublished: number;
  documents: ImportDocument[];
  problems: string[];
  findings: ImportFinding[];
  /** The images and files to which documents refer. */
  assets: { name: string; isMissing: boolean }[];
}

export interface ImportChoices {
  contentGroupId: string;
  groups: boolean;
  tagLabels: string[];
  variants: string[];
  drafts: boolean;
  publish: boolean;
  overwrite: boolean;
}

interface SourceFile {
  name: string;
  text: string;
}

/** A file to which documents may refer. */
interface AssetFile {
  name: string;
  file: File;
  /** The SHA-256 in hexadecimal digits. */
  hash: string;
}

/** The limits of a request: files, and characters of their texts. The body of a request has at most
 * 8 MiB, and some characters take several bytes. */
const BATCH_FILES = 100;
const BATCH_SIZE = 2_000_000;
const FILE_SIZE_MAX = 7_000_000;

/** The limit of the names and hashes of files in each request, in bytes. */
const ASSETS_SIZE = 900_000;

/** The bytes of a file in a request, besides its name. A character has three at most. */
const ASSET_OVERHEAD = 100;
const nameSize = (name: string) => name.length * 3 + ASSET_OVERHEAD;

/** The origin of the uploads of an import. */
const ORIGIN = "import";

/** The uploads at a time. */
const UPLOADS = 3;

/** Media and documents, as `galley import` takes them along. Others are no part of a publication. */
const ASSET = /\.(avif|gif|heic|jpe?g|png|svg|tiff?|webp|aac|flac|m4a|mp3|oga|ogg|opus|wav|m4v|mov|mp4|ogv|webm|docx?|epub|od[pst]|pdf|pptx?|xlsx?|zip)$/i;

const DOCUMENT = /\.(md|markdown|mdx|html?|xhtml|xml|json)$/i;

/** Returns the name of a file without its language, which is a folder or a suffix. */
function withoutLanguage(name: string, languages: string[]): string {
  const isLanguage = (part: string | undefined) => languages.some((one) => one.toLowerCase() === part?.toLowerCase());
  const [folder, ...rest] = name.split("/");
  if (rest.length > 0 && isLanguage(folder)) return rest.join("/");
  const suffix = /^(.*)\.([^./]+)(\.[^./]+)$/.exec(name);
  return suffix !== null && isLanguage(suffix[2]) ? `${suffix[1]}${suffix[3]}` : name;
}

/** Returns batches of files. The languages of a piece stay together. */
function batches(files: SourceFile[], languages: string[]): SourceFile[][] {
  const pieces = new Map<string, SourceFile[]>();
  for (const file of files) {
    const name = withoutLanguage(file.name, languages);
    pieces.set(name, [...(pieces.get(name) ?? []), file]);
  }
  const all: SourceFile[][] = [];
  let size = Infinity;
  for (const piece of pieces.values()) {
    const own = piece.reduce((sum, file) => sum + file.text.length, 0);
    const last = all.at(-1);
    if (last === undefined || last.length + piece.length > BATCH_FILES || size + own > BATCH_SIZE) {
      all.push(piece);
      size = own;
    } else {
      last.push(...piece);
      size += own;
    }
  }
  return all;
}

async function hashOf(file: File): Promise<string> {
  // `crypto.subtle` exists on secure pages only, and needs the whole file in memory.
  const { sha256 } = await import("@noble/hashes/sha2.js");
  const hash = sha256.create();
  const reader = file.stream().getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) hash.update(part.value);
  return Array.from(hash.digest(), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const EMPTY: ImportReport = {
  created: 0,
  updated: 0,
  unchanged: 0,
  published: 0,
  scheduled: 0,
  unpublished: 0,
  documents: [],
  problems: [],
  findings: [],
  assets: [],
};

function merged(one: ImportReport, other: ImportReport): ImportReport {
  const findings = new Map(one.findings.map((finding) => [`${finding.group} ${finding.what}`, finding]));
  for (const finding of other.findings) {
    const key = `${finding.group} ${finding.what}`;
    const known = findings.get(key);
    findings.set(key, known === undefined ? finding : { ...known, count: known.count + finding.count, sources: [...known.sources, ...finding.sources] });
  }
  const sum = (name: "created" | "updated" | "unchanged" | "published" | "scheduled" | "unpublished") => one[name] + other[name];
  return {
    created: sum("created"),
    updated: sum("updated"),
    unchanged: sum("unchanged"),
    published: sum("published"),
    scheduled: sum("scheduled"),
    unpublished: sum("unpublished"),
    documents: [...one.documents, ...other.documents],
    problems: [...one.problems, ...other.problems],
    findings: [...findings.values()],
    assets: [...new Map([...one.assets, ...other.assets].map((asset) => [asset.name, asset])).values()],
  };
}

class Import {
  workspace = $state("");
  /** `ready`: compared, and nothing is written yet. */
  phase = $state<"idle" | "reading" | "comparing" | "ready" | "uploading" | "importing" | "done">("idle");
  done = $state(0);
  total = $state(0);
  report = $state.raw<ImportReport>(EMPTY);
  error = $state.raw<unknown>(null);
  /** The number of files that were uploaded. */
  uploaded = $state(0);
  #files: SourceFile[] = [];
  #assets: AssetFile[] = [];
  #skipped: string[] = [];
  /** True if the report is that of a complete comparison. */
  isCompared = $state(false);
  /** The choices of the last comparison. */
  choices = $state.raw<ImportChoices | null>(null);
  #isStopped = false;

  get isRunning(): boolean {
    return ["reading", "comparing", "uploading", "importing"].includes(this.phase);
  }

  /** The files that are to be uploaded, each once. */
  get missing(): AssetFile[] {
    const files = new Map(this.#assets.map((asset) => [asset.name, asset]));
    const found = this.report.assets.filter(({ isMissing }) => isMissing).flatMap(({ name }) => files.get(name) ?? []);
    return [...new Map(found.map((asset) => [asset.hash, asset])).values()];
  }

  /** Reads files, and compares them with the pieces. */
  async read(workspace: string, files: { name: string; file: File }[], choices: ImportChoices): Promise<void> {
    if (this.isRunning) return;
    this.workspace = workspace;
    this.phase = "reading";
    this.error = null;
    this.report = EMPTY;
    this.total = files.length;
    this.done = 0;
    this.#files = [];
    this.#assets = [];
    this.#skipped = [];
    this.uploaded = 0;
    this.isCompared = false;
    let assetsSize = 0;
    const isAsset = (name: string) => can("assets:write") && ASSET.test(name) && !DOCUMENT.test(name);
    const located = new Set<string>();
    for (const { name, file } of files) if (isAsset(name) && (await isLocated(file))) located.add(name);
    const choice = await photos.chooseLocation([...located]);
    for (const { name, file } of files) {
      if (file.size > FILE_SIZE_MAX && DOCUMENT.test(name)) this.#skipped.push(t.importTooLarge(name));
      else if (isAsset(name) && assetsSize + nameSize(name) > ASSETS_SIZE) this.#skipped.push(t.importTooMany(name));
      else if (isAsset(name)) {
        if (located.has(name) && choice === null) continue;
        try {
          const own = located.has(name) && choice === "remove" ? await withoutLocation(file) : file;
          this.#assets.push({ name, file: own, hash: await hashOf(own) });
          assetsSize += nameSize(name);
        } catch {
          this.#skipped.push(`${name}: ${t.assets.unreadable}`);
        }
      }
      // The content of other files is of no use. The report counts them.
      else this.#files.push({ name, text: DOCUMENT.test(name) ? await file.text() : "" });
      this.done += 1;
    }
    await this.compare(choices);
  }

  /** Compares the files once more, with other choices. */
  async compare(choices: ImportChoices): Promise<void> {
    this.choices = choices;
    this.phase = "comparing";
    this.isCompared = await this.#run(choices, true);
    if (this.isCompared) this.phase = "ready";
  }

  /** Imports the files. A repeat continues an import that has failed. */
  async start(): Promise<void> {
    if (this.isRunning || this.choices === null) return;
    if (!(await this.#upload(this.choices.contentGroupId))) return;
    this.phase = "importing";
    if (await this.#run(this.choices, false)) this.phase = "done";
    await queryClient.invalidateQueries({ queryKey: [this.workspace] });
  }

  /** Ends an import after the present request. */
  stop(): void {
    this.#isStopped = true;
    for (const upload of uploads.all) if (upload.options.origin === ORIGIN) upload.cancel(true);
  }

  /** Uploads the missing files. Returns false without all of them. */
  async #upload(group: string): Promise<boolean> {
    const missing = this.missing;
    this.phase = "uploading";
    this.error = null;
    this.#isStopped = false;
    this.total = missing.length;
    this.done = 0;
    let failure: unknown = null;
    const worker = async () => {
      for (let next = missing.shift(); next !== undefined && !this.#isStopped && failure === null; next = missing.shift()) {
        const { name, hash, file: own } = next;
        const file = new File([own], name.split("/").at(-1)!, { type: own.type, lastModified: own.lastModified });
        const upload = await uploads.run({ file, location: null }, { workspace: this.workspace, group, origin: ORIGIN });
        if (upload.state === "failed") failure = upload.error;
        if (upload.state !== "done") continue;
        const names = new Set(this.#assets.filter((asset) => asset.hash === hash).map((asset) => asset.name));
        const assets = this.report.assets.map((asset) => (names.has(asset.name) ? { ...asset, isMissing: false } : asset));
        this.report = { ...this.report, assets };
        this.uploaded += 1;
        this.done += 1;
      }
    };
    await Promise.all(Array.from({ length: UPLOADS }, worker));
    this.error = failure;
    outdateAssets(this.workspace);
    if (this.error === null && !this.#isStopped) return true;
    this.phase = "ready";
    return false;
  }

  reset(): void {
    this.phase = "idle";
    this.error = null;
    this.report = EMPTY;
    this.#files = [];
    this.#assets = [];
  }

  async #run(choices: ImportChoices, dryRun: boolean): Promise<boolean> {
    this.error = null;
    this.report = { ...EMPTY, problems: this.#skipped };
    this.done = 0;
    this.total = this.#files.length;
    this.#isStopped = false;
    const { variants, ...others } = choices;
    const assets = this.#assets.length === 0 ? {} : { assets: this.#assets.map(({ name, hash }) => ({ name, hash })) };
    for (const batch of batches(this.#files, variants)) {
      if (this.#isStopped) {
        this.phase = "ready";
        return false;
      }
      const files = batch.map(({ name, text }) => ({ name, content: text }));
      const body = { ...others, ...(variants.length === 0 ? {} : { variants }), ...assets, files, dryRun };
      const headers = { "Galley-Workspace": this.workspace };
      try {
        // An import takes longer than other requests.
        const signal = AbortSignal.timeout(10 * 60_000);
        const { data } = await received(client.POST("/imports", { body, headers, fetch: (request: Request) => fetch(request, { signal }) } as never));
        this.report = merged(this.report, data as unknown as ImportReport);
      } catch (error) {
        this.error = error;
        this.phase = "ready";
        return false;
      }
      this.done += batch.length;
    }
    const referred = new Set(this.report.assets.map(({ name }) => name));
    const sources = this.#assets.map(({ name }) => name).filter((name) => !referred.has(name));
    const add = (group: string, what: string, names: string[]) => {
      if (names.length === 0) return;
      const finding = { group, what, count: names.length, sources: names.slice(0, 100) };
      this.report = { ...this.report, findings: [...this.report.findings, finding] };
    };
    add("leftOut", t.importUnreferred, sources);
    if (!dryRun) add("missing", t.importMissing, this.missing.map(({ name }) => name));
    return true;
  }
}

export const importJob = new Import();

/** Returns the files of a drop, also of folders in it, each with its path. */
export async function droppedFiles(items: DataTransferItemList): Promise<{ name: string; file: File }[]> {
  // The entries are gone after the first wait.
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  // A single folder is the root of the import, as for the command.
  const isRoot = entries.length === 1 && entries[0]?.isDirectory === true;
  const found: { name: string; file: File }[] = [];
  const walk = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (entry.name.startsWith(".")) return;
    if (entry.isFile) {
      const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
      found.push({ name: `${path}${entry.name}`, file });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
      if (some.length === 0) return;
      for (const one of some) await walk(one, isRoot && entry === entries[0] ? path : `${path}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, "");
  return found;
}

/** Returns the files of an input, without the name of the chosen folder and hidden ones. */
export function chosenFiles(list: FileList): { name: string; file: File }[] {
  const all = [...list].map((file) => ({ name: file.webkitRelativePath.split("/").slice(1).join("/") || file.name, file }));
  return all.filter(({ name }) => !name.split("/").some((part) => part.startsWith(".")));
}
