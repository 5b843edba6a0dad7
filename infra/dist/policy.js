"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.EnvelopeStyle = exports.Jitter = void 0;
exports.policyVariables = policyVariables;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const numbers_1 = require("./numbers");
const shown_1 = require("./shown");
/** How a backoff is drawn under its ceiling: `JITTER`. */
var Jitter;
(function (Jitter) {
    /** Evenly from one second to the ceiling. */
    Jitter["FULL"] = "full";
    /** Evenly from half the ceiling to the ceiling. */
    Jitter["EQUAL"] = "equal";
    /** Evenly from the base to three times the backoff before. */
    Jitter["DECORRELATED"] = "decorrelated";
    /** The ceiling itself. */
    Jitter["NONE"] = "none";
})(Jitter || (exports.Jitter = Jitter = {}));
/** How a retry carries its metadata to the function: `ENVELOPE`. */
var EnvelopeStyle;
(function (EnvelopeStyle) {
    /** The payload moves into `_original_payload`, beside `_retry_metadata`. */
    EnvelopeStyle["WRAP"] = "wrap";
    /** An object payload gets one more key, `_retry_metadata`; any other payload is wrapped. */
    EnvelopeStyle["INLINE"] = "inline";
})(EnvelopeStyle || (exports.EnvelopeStyle = EnvelopeStyle = {}));
/** SQS counts its 12 hours from the receive and refuses 43,200 s in practice, hence 30 s less. */
const LONGEST_BACKOFF = 43_170;
/**
 * The policy as the retry handler's environment.
 *
 * @param refusals receives a line for each property that the handler would refuse when it starts
 */
function policyVariables(props, refusals) {
    const maxAge = seconds('maxAge (MAX_AGE)', props.maxAge ?? aws_cdk_lib_1.Duration.hours(24), refusals);
    const maxRetries = (0, numbers_1.wholeNumber)('maxRetries (MAX_RETRIES)', props.maxRetries ?? 185, refusals);
    const baseBackoff = seconds('baseBackoff (BASE_BACKOFF)', props.baseBackoff ?? aws_cdk_lib_1.Duration.seconds(1), refusals);
    const maxBackoff = seconds('maxBackoff (MAX_BACKOFF)', props.maxBackoff ?? aws_cdk_lib_1.Duration.seconds(43_170), refusals);
    const jitter = props.jitter ?? Jitter.FULL;
    if (!isOneOf(Jitter, jitter)) {
        refusals.push(`jitter (JITTER) is ${(0, shown_1.shown)(jitter)}; it must be full, equal, decorrelated or none`);
    }
    const envelope = props.envelope ?? EnvelopeStyle.WRAP;
    if (!isOneOf(EnvelopeStyle, envelope)) {
        refusals.push(`envelope (ENVELOPE) is ${(0, shown_1.shown)(envelope)}; it must be wrap or inline`);
    }
    if ((0, numbers_1.isOutside)(maxAge, 60, 1_209_600)) {
        refusals.push(`maxAge (MAX_AGE) is ${maxAge} s; it must be 60 s to 1209600 s (14 days)`);
    }
    if ((0, numbers_1.isOutside)(maxRetries, 0, 10_000)) {
        refusals.push(`maxRetries (MAX_RETRIES) is ${maxRetries}; it must be 0 to 10000`);
    }
    if ((0, numbers_1.isOutside)(maxBackoff, 1, LONGEST_BACKOFF)) {
        refusals.push(`maxBackoff (MAX_BACKOFF) is ${maxBackoff} s; it must be 1 s to 43170 s (12 hours less 30 s)`);
    }
    // A base is not refused for a cap that is refused itself, or not known yet.
    const cap = Math.min(LONGEST_BACKOFF, Number(maxBackoff) || LONGEST_BACKOFF);
    if ((0, numbers_1.isOutside)(baseBackoff, 1, cap)) {
        refusals.push(`baseBackoff (BASE_BACKOFF) is ${baseBackoff} s; it must be 1 s to maxBackoff (${String(cap)} s)`);
    }
    for (const glob of props.nonRetryableErrors ?? []) {
        // The handler would read two globs where there is a comma, and ignore a blank one.
        if (!aws_cdk_lib_1.Token.isUnresolved(glob) && (glob.includes(',') || glob.trim() === '')) {
            refusals.push(`nonRetryableErrors (NON_RETRYABLE_ERRORS) has ${(0, shown_1.shown)(glob)}; each must be one errorType glob`);
        }
    }
    return {
        MAX_AGE: maxAge,
        MAX_RETRIES: maxRetries,
        BASE_BACKOFF: baseBackoff,
        MAX_BACKOFF: maxBackoff,
        JITTER: jitter,
        ENVELOPE: envelope,
        NON_RETRYABLE_ERRORS: (props.nonRetryableErrors ?? []).join(','),
    };
}
/** The number of seconds as text, or the token if the duration is one. */
function seconds(label, duration, refusals) {
    if (duration.isUnresolved()) {
        return aws_cdk_lib_1.Tokenization.stringifyNumber(duration.toSeconds());
    }
    const value = duration.toSeconds({ integral: false });
    if (!Number.isInteger(value)) {
        refusals.push(`${label} is "${String(value)}"; it must be whole seconds`);
        return '';
    }
    return String(value);
}
/** Only the handler can check a token. */
function isOneOf(values, value) {
    return aws_cdk_lib_1.Token.isUnresolved(value) || Object.values(values).includes(value);
}
