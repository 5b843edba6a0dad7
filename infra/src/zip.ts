import * as zlib from 'node:zlib';

/** The "version made by" numbers of Unix and macOS. An archive made on one of them has Unix permissions. */
const UNIX_HOSTS = [3, 19];

const STORED = 0;
const DEFLATED = 8;

export interface ZipEntry {
  readonly content: Buffer;
  /** The file's Unix permissions, if it was added to the archive on a system that has them. */
  readonly mode?: number;
}

/**
 * Finds a file in the central directory of a zip archive (APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16).
 *
 * @returns undefined if `zip` is not an archive or does not contain the file
 * @throws if the file cannot be unpacked
 */
export function zipEntry(zip: Buffer, name: string): ZipEntry | undefined {
  const end = zip.lastIndexOf('PK\x05\x06');
  if (end === -1 || end + 22 > zip.length) {
    return undefined;
  }
  let entry = zip.readUInt32LE(end + 16);
  while (entry + 46 <= end && zip.readUInt32LE(entry) === 0x02014b50) {
    const lengths = [28, 30, 32].map((offset) => zip.readUInt16LE(entry + offset));
    const [nameLength = 0, extra = 0, comment = 0] = lengths;
    if (zip.toString('utf8', entry + 46, entry + 46 + nameLength) === name) {
      const mode = zip.readUInt32LE(entry + 38) >>> 16;
      const content = unpacked(zip, entry);
      return UNIX_HOSTS.includes(zip.readUInt8(entry + 5)) ? { content, mode } : { content };
    }
    entry += 46 + nameLength + extra + comment;
  }
  return undefined;
}

function unpacked(zip: Buffer, entry: number): Buffer {
  const method = zip.readUInt16LE(entry + 10);
  const header = zip.readUInt32LE(entry + 42);
  const start = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
  const packed = zip.subarray(start, start + zip.readUInt32LE(entry + 20));
  switch (method) {
    case STORED:
      return packed;
    case DEFLATED:
      return zlib.inflateRawSync(packed);
    default:
      throw new Error(`compression method ${method} is not supported`);
  }
}
