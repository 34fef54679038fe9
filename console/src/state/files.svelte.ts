/** Files before their upload: questions about the location of photos and about formats that browsers
 * do not show. */
import { hasLocation, isJpeg, withoutMetadata } from "./photos";

/** A file that can be uploaded. */
export interface PreparedFile {
  file: File;
  /** The location was removed from the file, or it is in it. */
  location: "removed" | "kept" | null;
}

/** The treatment of photos with their location. */
export type LocationChoice = "ask" | "remove" | "keep";

export interface Question {
  kind: "location" | "heic";
  names: string[];
  /** Takes the choice; null leaves these files out. */
  answer: (choice: "remove" | "keep" | null, isRemembered: boolean) => void;
}

const REMEMBERED = "galley-photo-location";

/** The headers of an ISO media file with a HEIC image. */
const HEIC = /^....ftyp(heic|heix|heim|heis|hevc|hevx|mif1|msf1)/s;

class Files {
  question = $state.raw<Question | null>(null);
  /** The remembered choice of this device. */
  location = $state<LocationChoice>((localStorage.getItem(REMEMBERED) as LocationChoice | null) ?? "ask");
  /** The questions, one after another. */
  #queue: Promise<unknown> = Promise.resolve();

  remember(choice: LocationChoice): void {
    this.location = choice;
    localStorage.setItem(REMEMBERED, choice);
  }

  /** Returns files as they are to be uploaded, without those that the person leaves out. With
   * `isInserted`, formats are reported that browsers do not show. */
  prepare(files: readonly File[], isInserted: boolean): Promise<PreparedFile[]> {
    const result = this.#queue.then(() => this.#prepare(files, isInserted));
    this.#queue = result.catch(() => {});
    return result;
  }

  async #prepare(files: readonly File[], isInserted: boolean): Promise<PreparedFile[]> {
    const read = await Promise.all(files.map(async (file) => ({ file, ...(await inspect(file)) })));
    const isLeftOut = new Set<File>();
    const named = (some: { file: File }[]) => some.map(({ file }) => file.name);
    const heic = read.filter(({ isHeic }) => isHeic);
    if (isInserted && heic.length > 0 && (await this.#ask("heic", named(heic))) === null) heic.forEach(({ file }) => isLeftOut.add(file));
    const photos = read.filter(({ bytes }) => bytes !== null);
    const choice = await this.#chooseLocation(named(photos));
    if (choice === null) photos.forEach(({ file }) => isLeftOut.add(file));
    const kept = read.filter(({ file }) => !isLeftOut.has(file));
    return await Promise.all(
      kept.map(async ({ file, bytes }): Promise<PreparedFile> => {
        if (bytes === null) return { file, location: null };
        if (choice === "keep") return { file, location: "kept" };
        return { file: await cleaned(file, bytes), location: "removed" };
      }),
    );
  }

  /** Returns the treatment of these photos with their location; null leaves them out. */
  chooseLocation(names: string[]): Promise<"remove" | "keep" | null> {
    const result = this.#queue.then(() => this.#chooseLocation(names));
    this.#queue = result.catch(() => {});
    return result;
  }

  async #chooseLocation(names: string[]): Promise<"remove" | "keep" | null> {
    if (this.location !== "ask") return this.location;
    return names.length === 0 ? "remove" : await this.#ask("location", names);
  }

  #ask(kind: Question["kind"], names: string[]): Promise<"remove" | "keep" | null> {
    return new Promise((done) => {
      this.question = {
        kind,
        names,
        answer: (choice, isRemembered) => {
          this.question = null;
          if (isRemembered && choice !== null) this.remember(choice);
          done(choice);
        },
      };
    });
  }
}

export const files = new Files();

/** Returns true for a photo with its location. */
export async function isLocated(file: File): Promise<boolean> {
  return (await inspect(file)).bytes !== null;
}

/** Returns a photo without its location. Other files stay as they are. */
export async function withoutLocation(file: File): Promise<File> {
  const { bytes } = await inspect(file);
  return bytes === null ? file : await cleaned(file, bytes);
}

/** Returns facts of a file's content. The bytes are those of a JPEG file with a location, else null. */
async function inspect(file: File): Promise<{ isHeic: boolean; bytes: Uint8Array<ArrayBuffer> | null }> {
  const nothing = { isHeic: false, bytes: null };
  try {
    const head = new Uint8Array(await file.slice(0, 12).arrayBuffer());
    if (HEIC.test(String.fromCharCode(...head))) return { isHeic: true, bytes: null };
    if (!isJpeg(head)) return nothing;
    const bytes = new Uint8Array(await file.arrayBuffer());
    return { isHeic: false, bytes: hasLocation(bytes) ? bytes : null };
  } catch {
    // The upload reports a file that can't be read.
    return nothing;
  }
}

/** Returns a JPEG file without metadata. */
async function cleaned(file: File, bytes: Uint8Array): Promise<File> {
  const options = { type: "image/jpeg", lastModified: file.lastModified };
  const own = withoutMetadata(bytes);
  if (own !== null) return new File([own], file.name, options);
  // A damaged file: the browser's decoder accepts more.
  const image = await createImageBitmap(file, { imageOrientation: "from-image" });
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d")!.drawImage(image, 0, 0);
  image.close();
  return new File([await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 })], file.name, options);
}
