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
exports.handlerFunction = handlerFunction;
const node_child_process_1 = require("node:child_process");
const fs = __importStar(require("node:fs"));
const path = __importStar(require("node:path"));
const aws_cdk_lib_1 = require("aws-cdk-lib");
const lambda = __importStar(require("aws-cdk-lib/aws-lambda"));
const bootstrap_1 = require("./bootstrap");
/** The checkout this package lies in; `src` and `dist` are equally deep. Installed from npm, it lies in none. */
const CHECKOUT = path.join(__dirname, '..', '..');
/**
 * The function that runs the retry handler.
 *
 * @param bootstrap a folder or zip file with the retry handler's `bootstrap`; without it, the handler is built from
 *   the checkout, with cargo-lambda on this machine
 * @throws if `bootstrap` holds no such file; without it, if there is no checkout or no cargo-lambda to build with
 */
function handlerFunction(scope, id, bootstrap, options) {
    return new lambda.Function(scope, id, {
        ...options,
        runtime: lambda.Runtime.PROVIDED_AL2023,
        handler: 'bootstrap',
        code: bootstrap === undefined ? built(scope, options.architecture) : given(bootstrap, options.architecture),
    });
}
function given(bootstrap, architecture) {
    (0, bootstrap_1.checkBootstrap)(bootstrap, architecture);
    // A folder may hold more than the bootstrap, such as the zip file of an older build.
    const alone = { exclude: ['/*', '!/bootstrap'], ignoreMode: aws_cdk_lib_1.IgnoreMode.GIT };
    return lambda.Code.fromAsset(bootstrap, fs.statSync(bootstrap).isDirectory() ? alone : {});
}
/** Nothing is built for a command that needs no code of this stack, such as `cdk list`. */
function built(scope, architecture) {
    const crate = path.join(CHECKOUT, 'functions', 'retry-handler');
    if (!fs.existsSync(path.join(crate, 'Cargo.toml'))) {
        throw new Error(`bootstrap: needed, because this package lies in no checkout of Comeback to build it from; ${(0, bootstrap_1.buildHint)(architecture)}`);
    }
    if (aws_cdk_lib_1.Stack.of(scope).bundlingRequired && (0, node_child_process_1.spawnSync)('cargo', ['lambda', '--version']).status !== 0) {
        throw new Error('bootstrap: not given, and `cargo lambda`, which would build it, does not run here; install cargo-lambda ' +
            '(https://www.cargo-lambda.info/guide/installation.html), or give the path of a built one');
    }
    return lambda.Code.fromAsset(crate, {
        assetHashType: aws_cdk_lib_1.AssetHashType.OUTPUT,
        bundling: {
            // Required, and never started: a failed build on this machine fails the synthesis.
            image: lambda.Runtime.PROVIDED_AL2023.bundlingImage,
            local: {
                tryBundle: (folder) => {
                    build(crate, folder, architecture);
                    return true;
                },
            },
        },
    });
}
/** Puts the `bootstrap` into a folder. Standard output is the CDK's own, so cargo's goes to standard error. */
function build(crate, folder, architecture) {
    const target = ['--lambda-dir', folder, '--flatten', 'retry-handler', (0, bootstrap_1.architectureFlag)(architecture)];
    (0, node_child_process_1.execFileSync)('cargo', ['lambda', 'build', '--release', ...target], { cwd: crate, stdio: ['ignore', 2, 2] });
}
