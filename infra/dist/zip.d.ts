/** A file in a zip archive. */
export interface ZipEntry {
    readonly content: Buffer;
    /** Its permissions, if a system that has them made the archive. */
    readonly mode?: number;
}
/**
 * Finds a file by the central directory of an archive (APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16).
 *
 * @returns nothing if the archive holds no such file, or is no archive
 * @throws if the file cannot be unpacked
 */
export declare function zipEntry(zip: Buffer, name: string): ZipEntry | undefined;
