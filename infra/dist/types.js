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
exports.OPTIONS = exports.PROPS = void 0;
exports.wellTyped = wellTyped;
exports.checkIsFunction = checkIsFunction;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const logs = __importStar(require("aws-cdk-lib/aws-logs"));
const constructs_1 = require("constructs");
const shown_1 = require("./shown");
const DURATION = [has('toSeconds'), 'a Duration, such as Duration.hours(1)'];
const NUMBER = [(value) => typeof value === 'number', 'a number'];
const BOOLEAN = [(value) => typeof value === 'boolean', 'true or false'];
const STRINGS = [
    (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'string'),
    'a list of strings',
];
const PATH = [
    (value) => typeof value === 'string' && !aws_cdk_lib_1.Token.isUnresolved(value),
    'the path of a folder or a zip file',
];
/** The type of each property, for code that no compiler checks. The two enums of the policy are checked by value. */
exports.PROPS = {
    maxAge: DURATION,
    maxRetries: NUMBER,
    baseBackoff: DURATION,
    maxBackoff: DURATION,
    nonRetryableErrors: STRINGS,
    targetFunctions: STRINGS,
    bootstrap: PATH,
    architecture: [has('dockerPlatform'), 'a lambda.Architecture, such as lambda.Architecture.ARM_64'],
    memorySize: NUMBER,
    batchSize: NUMBER,
    hideUpTo: NUMBER,
    alwaysHide: BOOLEAN,
    maxConcurrency: NUMBER,
    logRetention: [
        (value) => aws_cdk_lib_1.Token.isUnresolved(value) || oneOf(logs.RetentionDays)(value),
        'a logs.RetentionDays, such as logs.RetentionDays.ONE_MONTH',
    ],
    removalPolicy: [oneOf(aws_cdk_lib_1.RemovalPolicy), 'a RemovalPolicy, such as RemovalPolicy.DESTROY'],
    encryptionKey: [has('keyArn'), 'a kms.IKey, such as Key.fromKeyArn gives'],
    deadLetterQueue: [has('queueArn'), 'an sqs.IQueue, such as Queue.fromQueueArn gives'],
};
/** The type of each option of `attach`. */
exports.OPTIONS = {
    maxEventAge: DURATION,
    onSuccess: [has('bind'), 'a lambda.IDestination'],
};
/**
 * The values that have the right type. The others are left out, so that the rest is still checked.
 *
 * @param refusals receives a line for each value of a wrong type
 */
function wellTyped(given, types, refusals) {
    const wrong = Object.entries(types).filter(([name, type]) => {
        const value = given[name];
        if (value === undefined || type?.[0](value) !== false) {
            return false;
        }
        refusals.push(`${name} is ${(0, shown_1.shown)(value)}; it must be ${type[1]}`);
        return true;
    });
    const names = wrong.map(([name]) => name);
    return Object.fromEntries(Object.entries(given).filter(([name]) => !names.includes(name)));
}
/** @throws if it is no function */
function checkIsFunction(target) {
    if (!(constructs_1.Construct.isConstruct(target) && has('functionArn')(target))) {
        throw new Error(`attach was given ${(0, shown_1.shown)(target)}; it must be given a function (lambda.IFunction)`);
    }
}
/** By its member, because an app may have several copies of a library's class. */
function has(member) {
    return (value) => typeof value === 'object' && value !== null && member in value;
}
function oneOf(values) {
    return (value) => Object.values(values).includes(value);
}
