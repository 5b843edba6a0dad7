"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.shown = shown;
exports.literal = literal;
exports.replaceTokens = replaceTokens;
const node_util_1 = require("node:util");
const aws_cdk_lib_1 = require("aws-cdk-lib");
const constructs_1 = require("constructs");
/** What stands in a message for all that only the deployment knows. */
const UNKNOWN = '…';
/** A value as a message names it. */
function shown(value) {
    if (constructs_1.Construct.isConstruct(value)) {
        return value.node.path;
    }
    if (typeof value === 'string') {
        return JSON.stringify(literal(value));
    }
    return aws_cdk_lib_1.Token.isUnresolved(value) ? UNKNOWN : (0, node_util_1.inspect)(value, { depth: -1 });
}
/** A text as a message names it, without quotes. */
function literal(text) {
    return replaceTokens(text, UNKNOWN);
}
function replaceTokens(text, by) {
    if (!aws_cdk_lib_1.Token.isUnresolved(text)) {
        return text;
    }
    const mapped = aws_cdk_lib_1.Tokenization.reverseString(text).mapTokens({ mapToken: () => by });
    return String(mapped.join({ join: (left, right) => left + right }));
}
