import * as lambda from 'aws-cdk-lib/aws-lambda';
import { type Construct } from 'constructs';
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
export declare function handlerFunction(scope: Construct, id: string, bootstrap: string | undefined, options: HandlerFunctionOptions): lambda.Function;
