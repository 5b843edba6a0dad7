"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.checkProps = checkProps;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const shown_1 = require("./shown");
/**
 * Checks the dead-letter queue, and the figures that are no variables of the retry handler.
 *
 * @param refusals receives a line for each one that is refused
 */
function checkProps(props, stack, refusals) {
    const { deadLetterQueue } = props;
    if (deadLetterQueue?.fifo === true) {
        const queue = aws_cdk_lib_1.Token.isUnresolved(deadLetterQueue.queueUrl) ? deadLetterQueue : deadLetterQueue.queueUrl;
        refusals.push(`deadLetterQueue (DEAD_LETTER_QUEUE_URL) is ${(0, shown_1.shown)(queue)}; it must be a standard queue, not a FIFO one`);
    }
    for (const place of ['account', 'region']) {
        const theirs = deadLetterQueue?.env[place];
        if (theirs !== undefined && aws_cdk_lib_1.Token.compareStrings(theirs, stack[place]) === aws_cdk_lib_1.TokenComparison.DIFFERENT) {
            refusals.push(`deadLetterQueue is in ${place} ${theirs}; it must be in that of these retries, ${stack[place]}`);
        }
    }
    const ranges = [
        ['memorySize', props.memorySize, 128, 10_240],
        ['batchSize', props.batchSize, 1, 10],
    ];
    for (const [name, value, min, max] of ranges) {
        const given = value !== undefined && !aws_cdk_lib_1.Token.isUnresolved(value);
        if (given && !(Number.isInteger(value) && value >= min && value <= max)) {
            const range = `${String(min)} to ${String(max)}`;
            refusals.push(`${name} is ${String(value)}; it must be a whole number from ${range}`);
        }
    }
}
