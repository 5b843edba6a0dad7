"use strict";
var __createBinding = (this && this.__createBinding) || (Object.create ? (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    var desc = Object.getOwnPropertyDescriptor(m, k);
    if (!desc || ("get" in desc ? !m.__esModule : desc.writable || desc.configurable)) {
      desc = { enumerable: true, get: function() { return m[k]; } };
    }
    Object.defineProperty(o, k2, desc);
}) : (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    o[k2] = m[k];
}));
var __setModuleDefault = (this && this.__setModuleDefault) || (Object.create ? (function(o, v) {
    Object.defineProperty(o, "default", { enumerable: true, value: v });
}) : function(o, v) {
    o["default"] = v;
});
var __importStar = (this && this.__importStar) || (function () {
    var ownKeys = function(o) {
        ownKeys = Object.getOwnPropertyNames || function (o) {
            var ar = [];
            for (var k in o) if (Object.prototype.hasOwnProperty.call(o, k)) ar[ar.length] = k;
            return ar;
        };
        return ownKeys(o);
    };
    return function (mod) {
        if (mod && mod.__esModule) return mod;
        var result = {};
        if (mod != null) for (var k = ownKeys(mod), i = 0; i < k.length; i++) if (k[i] !== "default") __createBinding(result, mod, k[i]);
        __setModuleDefault(result, mod);
        return result;
    };
})();
Object.defineProperty(exports, "__esModule", { value: true });
exports.zipEntry = zipEntry;
const zlib = __importStar(require("node:zlib"));
/** Hosts in an entry's "version made by" whose attributes hold a Unix mode: Unix, and macOS. */
const UNIX_HOSTS = [3, 19];
const STORED = 0;
const DEFLATED = 8;
/**
 * Finds a file by the central directory of an archive (APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16).
 *
 * @returns nothing if the archive holds no such file, or is no archive
 * @throws if the file cannot be unpacked
 */
function zipEntry(zip, name) {
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
function unpacked(zip, entry) {
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
            throw new Error(`compression method ${String(method)} is not known`);
    }
}
