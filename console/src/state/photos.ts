/** The metadata of JPEG files: photos often have the place where they were taken. */

/** The segments that have no length. */
const isBare = (marker: number) => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);

interface Segment {
  marker: number;
  /** The position of the marker, and of the first byte behind the segment. */
  start: number;
  end: number;
}

/** Returns true for the bytes of a JPEG file. */
export function isJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === 0xd8;
}

/** Returns the segments of a JPEG file, each with the image data behind it, up to the end of the first
 * image. Returns null for a file with another structure. */
function segmentsOf(bytes: Uint8Array): Segment[] | null {
  const segments: Segment[] = [];
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) return null;
    const marker = bytes[at + 1]!;
    // Markers may be padded with further bytes of this value.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    let end = at + 2;
    if (!isBare(marker)) end += (bytes[at + 2]! << 8) | bytes[at + 3]!;
    // In image data, a marker's first byte is followed by zero or a restart marker.
    if (marker === 0xda) {
      while (end + 1 < bytes.length && !(bytes[end] === 0xff && bytes[end + 1] !== 0 && !isBare(bytes[end + 1]!))) end += 1;
    }
    if (end > bytes.length) return null;
    segments.push({ marker, start: at, end });
    at = end;
    if (bytes[at] === 0xff && bytes[at + 1] === 0xd9) return segments;
  }
  return null;
}

const EXIF = "Exif\0\0";

function startsWith(bytes: Uint8Array, at: number, text: string): boolean {
  return [...text].every((character, index) => bytes[at + index] === character.charCodeAt(0));
}

/** Returns the entries of the first directory of an EXIF segment: their tags, and where they begin. */
function exifEntries(bytes: Uint8Array, segment: Segment): { tag: number; read: (offset: number) => number }[] {
  const tiff = segment.start + 4 + EXIF.length;
  const view = new DataView(bytes.buffer, bytes.byteOffset + tiff, segment.end - tiff);
  const isLittle = view.byteLength >= 8 && view.getUint16(0) === 0x4949;
  const directory = view.byteLength >= 8 ? view.getUint32(4, isLittle) : Infinity;
  if (directory + 2 > view.byteLength) return [];
  const count = view.getUint16(directory, isLittle);
  const starts = Array.from({ length: count }, (_, index) => directory + 2 + index * 12).filter((start) => start + 12 <= view.byteLength);
  return starts.map((start) => ({ tag: view.getUint16(start, isLittle), read: (offset) => view.getUint16(start + offset, isLittle) }));
}

const GPS_DIRECTORY = 0x8825;
const ORIENTATION = 0x0112;

/** The segments with texts and positions: EXIF and XMP, further metadata, and comments. The others
 * describe the image, such as its colors. */
const METADATA = [0xe1, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xef, 0xfe];

/** Returns true if a JPEG file has a position in its metadata. */
export function hasLocation(bytes: Uint8Array): boolean {
  // The segments before the image are read, also where its end is missing.
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === 0xff && bytes[at + 1] !== 0xda; ) {
    const segment = { marker: bytes[at + 1]!, start: at, end: Math.min(bytes.length, at + 2 + ((bytes[at + 2]! << 8) | bytes[at + 3]!)) };
    if (segment.marker === 0xe1) {
      if (startsWith(bytes, at + 4, EXIF) && exifEntries(bytes, segment).some(({ tag }) => tag === GPS_DIRECTORY)) return true;
      const text = new TextDecoder("latin1").decode(bytes.subarray(segment.start, segment.end));
      if (/GPSLatitude/.test(text)) return true;
    }
    at = segment.end;
  }
  return false;
}

/** Returns an EXIF segment that has the orientation and nothing else. */
function orientationSegment(orientation: number): Uint8Array {
  const tiff = [0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0];
  const content = [...EXIF].map((character) => character.charCodeAt(0)).concat(tiff);
  return new Uint8Array([0xff, 0xe1, 0, content.length + 2, ...content]);
}

/** Returns a JPEG file without its metadata, and with the same image: nothing is compressed again.
 * Further images and videos behind the first one are left out. Returns null for a file with another
 * structure. */
export function withoutMetadata(bytes: Uint8Array): Uint8Array<ArrayBuffer> | null {
  const segments = segmentsOf(bytes);
  if (segments === null) return null;
  const exif = segments.find(({ marker, start }) => marker === 0xe1 && startsWith(bytes, start + 4, EXIF));
  const orientation = exif && exifEntries(bytes, exif).find(({ tag }) => tag === ORIENTATION)?.read(8);
  const parts: Uint8Array[] = [new Uint8Array([0xff, 0xd8])];
  const isUpright = orientation === undefined || orientation < 2 || orientation > 8;
  const [first] = segments;
  // JFIF requires that its own segment is the first one.
  const begin = first?.marker === 0xe0 ? 1 : 0;
  for (const [index, { marker, start, end }] of segments.entries()) {
    if (index === begin && !isUpright) parts.push(orientationSegment(orientation));
    const isFurtherImage = marker === 0xe2 && startsWith(bytes, start + 4, "MPF\0");
    if (!METADATA.includes(marker) && !isFurtherImage) parts.push(bytes.subarray(start, end));
  }
  parts.push(new Uint8Array([0xff, 0xd9]));
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const result = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
