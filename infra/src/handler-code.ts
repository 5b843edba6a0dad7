import * as fs from 'node:fs';
import * as path from 'node:path';
import { Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { cargoLambdaVersion, RustFunction } from 'cargo-lambda-cdk';
import { type Construct } from 'constructs';

import { buildHint, checkBootstrap } from './bootstrap';

/** The checkout this package lies in; `src` and `dist` are equally deep. Installed from npm, it lies in none. */
const CHECKOUT = path.join(__dirname, '..', '..');

/** What the retry handler is made with; its code follows from these. */
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
  if (bootstrap === undefined) {
    const manifestPath = path.join(CHECKOUT, 'functions', 'retry-handler', 'Cargo.toml');
    checkBuild(scope, manifestPath, options.architecture);
    return new RustFunction(scope, id, { ...options, manifestPath });
  }
  checkBootstrap(bootstrap, options.architecture);
  return new lambda.Function(scope, id, {
    ...options,
    runtime: lambda.Runtime.PROVIDED_AL2023,
    handler: 'bootstrap',
    code: lambda.Code.fromAsset(bootstrap),
  });
}

/** Nothing is built for a command that needs no code of this stack, such as `cdk list`. */
function checkBuild(scope: Construct, manifestPath: string, architecture: lambda.Architecture): void {
  if (!fs.existsSync(manifestPath)) {
    throw new Error(
      `bootstrap: needed, because this package lies in no checkout of Comeback to build it from; ${buildHint(architecture)}`,
    );
  }
  // Asked first, because cargo-lambda-cdk would go on to look for Docker.
  if (Stack.of(scope).bundlingRequired && cargoLambdaVersion() === undefined) {
    throw new Error(
      'bootstrap: not given, and `cargo lambda`, which would build it, does not run here; install cargo-lambda ' +
        '(https://www.cargo-lambda.info/guide/installation.html), or give the path of a built one',
    );
  }
}
