"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.wholeNumber = wholeNumber;
exports.isOutside = isOutside;
const aws_cdk_lib_1 = require("aws-cdk-lib");
/** A whole number as text, or the token if it is one; empty if it is refused. */
function wholeNumber(label, value, refusals, expected = 'it must be a whole number') {
    if (aws_cdk_lib_1.Token.isUnresolved(value)) {
        return aws_cdk_lib_1.Tokenization.stringifyNumber(value);
    }
    if (!Number.isInteger(value) || value < 0) {
        refusals.push(`${label} is "${String(value)}"; ${expected}`);
        return '';
    }
    return String(value);
}
/** An empty value was refused already, and only the handler can check a token. */
function isOutside(value, min, max) {
    return value !== '' && !aws_cdk_lib_1.Token.isUnresolved(value) && (Number(value) < min || Number(value) > max);
}
