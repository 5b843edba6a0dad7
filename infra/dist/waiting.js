"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.DEFAULT_MAX_CONCURRENCY = void 0;
exports.waitingVariables = waitingVariables;
const numbers_1 = require("./numbers");
/** Also the mapping's. */
exports.DEFAULT_MAX_CONCURRENCY = 10;
const HIDE_UP_TO = 'it must be 0 to 55000; to hide without a limit, set alwaysHide';
/**
 * How the retry handler performs waits, as its environment.
 *
 * @param refusals receives a line for each property that the handler would refuse when it starts
 */
function waitingVariables(props, refusals) {
    const maxConcurrency = (0, numbers_1.wholeNumber)('maxConcurrency (MAXIMUM_CONCURRENCY)', props.maxConcurrency ?? exports.DEFAULT_MAX_CONCURRENCY, refusals);
    if ((0, numbers_1.isOutside)(maxConcurrency, 2, 1_000)) {
        refusals.push(`maxConcurrency (MAXIMUM_CONCURRENCY) is ${maxConcurrency}; it must be 2 to 1000`);
    }
    return { HIDE_UP_TO: hideUpTo(props, refusals), MAXIMUM_CONCURRENCY: maxConcurrency };
}
function hideUpTo({ hideUpTo, alwaysHide = false }, refusals) {
    if (alwaysHide && hideUpTo !== undefined) {
        refusals.push('hideUpTo and alwaysHide (HIDE_UP_TO) are both set; leave one of them out');
    }
    const number = (0, numbers_1.wholeNumber)('hideUpTo (HIDE_UP_TO)', hideUpTo ?? 50_000, refusals, HIDE_UP_TO);
    if ((0, numbers_1.isOutside)(number, 0, 55_000)) {
        refusals.push(`hideUpTo (HIDE_UP_TO) is ${number}; ${HIDE_UP_TO}`);
    }
    return alwaysHide ? 'always' : number;
}
