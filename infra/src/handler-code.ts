import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { AssetHashType, IgnoreMode, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { type Construct } from 'constructs';

import { architectureFlag, buildHint, checkBootstrap } from './bootstrap';

/** The checkout this package lies in; `src` and `dist` are equally deep. Installed from npm, it lies in none. */
const CHECKOUT = path.join(__dirname, '..', '..');

/** The retry handler's properties apart from its code. */
export interface HandlerFunctionOptions extends lambda.FunctionOptions {
  readonly architecture: lambda.Architecture;
}

/**
 * The function that runs the retry handler.
 *
 * @param bootstrap a folder or zip file with the retry handler's `bootstrap`; without it, the handler is built from
 *   the checkout, with cargo-lambda on this machine
 * @throws if `bootstrap` holds no such file; without it, if there is no checkout or no cargo-lambda to build with
 */
export function handlerFunction(
  scope: Construct,
  id: string,
  bootstrap: string | undefined,
  options: HandlerFunctionOptions,
): lambda.Function {
  return new lambda.Function(scope, id, {
    ...options,
    runtime: lambda.Runtime.PROVIDED_AL2023,
    handler: 'bootstrap',
    code:
      bootstrap === undefined ? built(scope, options.architecture) : given(bootstrap, options.architecture),
  });
}

function given(bootstrap: string, architecture: lambda.Architecture): lambda.Code {
  checkBootstrap(bootstrap, architecture);
  // A folder may hold more than the bootstrap, such as the zip file of an older build.
  const alone = { exclude: ['/*', '!/bootstrap'], ignoreMode: IgnoreMode.GIT };
  return lambda.Code.fromAsset(bootstrap, fs.statSync(bootstrap).isDirectory() ? alone : {});
}

/** Nothing is built for a command that needs no code of this stack, such as `cdk list`. */
function built(scope: Construct, architecture: lambda.Architecture): lambda.Code {
  const crate = path.join(CHECKOUT, 'functions', 'retry-handler');
  if (!fs.existsSync(path.join(crate, 'Cargo.toml'))) {
    throw new Error(
      `bootstrap: needed, because this package lies in no checkout of Comeback to build it from; ${buildHint(architecture)}`,
    );
  }
  if (Stack.of(scope).bundlingRequired && spawnSync('cargo', ['lambda', '--version']).status !== 0) {
    throw new Error(
      'bootstrap: not given, and `cargo lambda`, which would build it, does not run here; install cargo-lambda ' +
        '(https://www.cargo-lambda.info/guide/installation.html), or give the path of a built one',
    );
  }
  return lambda.Code.fromAsset(crate, {
    assetHashType: AssetHashType.OUTPUT,
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
function build(crate: string, folder: string, architecture: lambda.Architecture): void {
  const target = ['--lambda-dir', folder, '--flatten', 'retry-handler', architectureFlag(architecture)];
  execFileSync('cargo', ['lambda', 'build', '--release', ...target], { cwd: crate, stdio: ['ignore', 2, 2] });
}
