import * as lambda from 'aws-cdk-lib/aws-lambda';
/**
 * Refuses a path that would deploy, and then fail every invocation.
 *
 * @param bootstrap a folder or zip file that should hold a `bootstrap` for this architecture
 * @throws if it holds none, or one that is for another architecture or may not be executed
 */
export declare function checkBootstrap(bootstrap: string, architecture: lambda.Architecture): void;
/** How to get a `bootstrap` for this architecture. */
export declare function buildHint(architecture: lambda.Architecture): string;
/** cargo-lambda's flag for an architecture. */
export declare function architectureFlag(architecture: lambda.Architecture): string;
