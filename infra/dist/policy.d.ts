import { Duration } from 'aws-cdk-lib';
/** How a backoff is drawn under its ceiling: `JITTER`. */
export declare enum Jitter {
    /** Evenly from one second to the ceiling. */
    FULL = "full",
    /** Evenly from half the ceiling to the ceiling. */
    EQUAL = "equal",
    /** Evenly from the base to three times the backoff before. */
    DECORRELATED = "decorrelated",
    /** The ceiling itself. */
    NONE = "none"
}
/** How a retry carries its metadata to the function: `ENVELOPE`. */
export declare enum EnvelopeStyle {
    /** The payload moves into `_original_payload`, beside `_retry_metadata`. */
    WRAP = "wrap",
    /** An object payload gets one more key, `_retry_metadata`; any other payload is wrapped. */
    INLINE = "inline"
}
/** The retry policy: each property is an environment variable of the retry handler. */
export interface PolicyProps {
    /**
     * The time from an event's first failure after which no retry is made; 60 seconds to 14 days.
     *
     * @default Duration.hours(24)
     */
    readonly maxAge?: Duration;
    /**
     * The most retries of one chain; 0 to 10,000.
     *
     * A chain is the retries that descend from one failure. A re-invocation that Lambda did not answer may start a second
     * one. With the other defaults, age ends first, after about 19 retries.
     *
     * @default 185
     */
    readonly maxRetries?: number;
    /**
     * The ceiling of the first backoff, which doubles with every retry; 1 second to `maxBackoff`.
     *
     * @default Duration.seconds(1)
     */
    readonly baseBackoff?: Duration;
    /**
     * The cap of every ceiling; 1 second to 43,170 seconds, which is 12 hours less 30 seconds: the most SQS can hide a
     * message.
     *
     * @default Duration.seconds(43_170)
     */
    readonly maxBackoff?: Duration;
    /**
     * How a backoff is drawn under its ceiling.
     *
     * @default Jitter.FULL
     */
    readonly jitter?: Jitter;
    /**
     * How a retry carries its metadata. It may be changed while events wait: both styles are always understood.
     *
     * @default EnvelopeStyle.WRAP
     */
    readonly envelope?: EnvelopeStyle;
    /**
     * Globs (`*`, `?`) of the `errorType`s that go straight to the dead-letter queue.
     *
     * @default []
     */
    readonly nonRetryableErrors?: string[];
}
/**
 * The policy as the retry handler's environment.
 *
 * @param refusals receives a line for each property that the handler would refuse when it starts
 */
export declare function policyVariables(props: PolicyProps, refusals: string[]): Record<string, string>;
