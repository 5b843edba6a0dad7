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
exports.checkBootstrap = checkBootstrap;
exports.buildHint = buildHint;
exports.architectureFlag = architectureFlag;
const fs = __importStar(require("node:fs"));
const path = __importStar(require("node:path"));
const aws_cdk_lib_1 = require("aws-cdk-lib");
const lambda = __importStar(require("aws-cdk-lib/aws-lambda"));
const shown_1 = require("./shown");
const zip_1 = require("./zip");
/** The name Lambda starts on its `provided` runtimes. */
const BOOTSTRAP = 'bootstrap';
/** Processors by their number in an ELF header (`e_machine`), in CloudFormation's words. */
const MACHINES = new Map([
    [0x3e, lambda.Architecture.X86_64.name],
    [0xb7, lambda.Architecture.ARM_64.name],
]);
/**
 * Refuses a path that would deploy, and then fail every invocation.
 *
 * @param bootstrap a folder or zip file that should hold a `bootstrap` for this architecture
 * @throws if it holds none, or one that is for another architecture or may not be executed
 */
function checkBootstrap(bootstrap, architecture) {
    const found = fs.statSync(bootstrap, { throwIfNoEntry: false });
    if (found === undefined) {
        throw new Error(`bootstrap: ${bootstrap} does not exist; ${buildHint(architecture)}`);
    }
    if (found.isDirectory()) {
        checkFolder(path.join(bootstrap, BOOTSTRAP), architecture);
    }
    else {
        checkZip(bootstrap, architecture);
    }
}
/** How to get a `bootstrap` for this architecture. */
function buildHint(architecture) {
    return (`build it in a checkout of Comeback with \`cargo lambda build --release ${architectureFlag(architecture)} -p retry-handler\`, ` +
        'and give the path of target/lambda/retry-handler there');
}
/** cargo-lambda's flag for an architecture. */
function architectureFlag(architecture) {
    return `--${(0, shown_1.literal)(architecture.name).replace('_', '-')}`;
}
function checkFolder(binary, architecture) {
    if (fs.statSync(binary, { throwIfNoEntry: false })?.isFile() !== true) {
        throw new Error(`bootstrap: ${binary} does not exist; ${buildHint(architecture)}`);
    }
    checkMachine(binary, fs.readFileSync(binary), architecture);
    try {
        fs.accessSync(binary, fs.constants.X_OK);
    }
    catch {
        throw new Error(`bootstrap: ${binary} may not be executed; run chmod +x on it`);
    }
}
function checkZip(zip, architecture) {
    const entry = entryOf(zip);
    if (entry === undefined) {
        throw new Error(`bootstrap: ${zip} is neither a folder nor a zip file with a file named bootstrap at its root`);
    }
    checkMachine(zip, entry.content, architecture);
    if (entry.mode !== undefined && (entry.mode & 0o111) === 0) {
        throw new Error(`bootstrap: the bootstrap in ${zip} may not be executed; run chmod +x on it, and zip it again`);
    }
}
function entryOf(zip) {
    try {
        return (0, zip_1.zipEntry)(fs.readFileSync(zip), BOOTSTRAP);
    }
    catch (error) {
        const problem = `cannot be unpacked: ${error.message}`;
        throw new Error(`bootstrap: the bootstrap in ${zip} ${problem}`, { cause: error });
    }
}
function checkMachine(where, executable, architecture) {
    const machine = elfMachine(executable);
    const known = machine !== undefined && !aws_cdk_lib_1.Token.isUnresolved(architecture.name);
    if (known && machine !== architecture.name) {
        throw new Error(`bootstrap: ${where} is built for ${machine}, but architecture is ${architecture.name}; ` +
            buildHint(architecture));
    }
}
/** The processor an executable is for; nothing for a script. */
function elfMachine(executable) {
    const isElf = executable.length >= 20 && executable.subarray(0, 4).equals(Buffer.from('\x7fELF'));
    return isElf ? MACHINES.get(executable.readUInt16LE(18)) : undefined;
}
