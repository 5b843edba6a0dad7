import * as fs from 'node:fs';
import * as path from 'node:path';
import { IgnoreMode } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { type Construct } from 'constructs';

import { buildHint, checkBootstrap } from './bootstrap';
import { literal } from './shown';

/** A zip file for each architecture, in the package that is installed; `make dist` puts them there. A checkout has none. */
const PACKAGED = path.join(__dirname, '..', 'handler');

/** The retry handler's properties apart from its code. */
export interface HandlerFunctionOptions extends lambda.FunctionOptions {
  readonly architecture: lambda.Architecture;
}

/**
 * The function that runs the retry handler.
 *
 * @param bootstrap a folder or zip file with the retry handler's `bootstrap`; without it, the one of this package
 * @throws if `bootstrap` holds no such file; without it, if this package has none for the architecture
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
    code: code(bootstrap ?? packaged(options.architecture), options.architecture),
  });
}

/**
 * The zip file of this package for an architecture.
 *
 * @throws if there is none
 */
export function packaged(architecture: lambda.Architecture, folder = PACKAGED): string {
  const wanted = literal(architecture.name);
  const zip = path.join(folder, `retry-handler-${wanted}.zip`);
  if (!fs.existsSync(zip)) {
    throw new Error(
      `bootstrap: needed, because this package has no retry handler for ${wanted}; install the comeback-cdk of a release, ` +
        `or the one that \`make dist\` puts into dist/; or ${buildHint(architecture)}`,
    );
  }
  return zip;
}

function code(bootstrap: string, architecture: lambda.Architecture): lambda.Code {
  checkBootstrap(bootstrap, architecture);
  // A folder may hold more than the bootstrap, such as the zip file of an older build.
  const alone = { exclude: ['/*', '!/bootstrap'], ignoreMode: IgnoreMode.GIT };
  return lambda.Code.fromAsset(bootstrap, fs.statSync(bootstrap).isDirectory() ? alone : {});
}
