/** What bounds the messages that are hidden at once. */
export interface WaitingProps {
    /**
     * The messages hidden at once before waits are performed by sending the message again, with a delay; 0 to 55,000.
     *
     * A hidden message costs nothing, but SQS allows about 120,000 of them. With 0 every message is sent again.
     *
     * @default 50_000
     */
    readonly hideUpTo?: number;
    /**
     * Whether messages are always hidden, however many there are. It excludes `hideUpTo`.
     *
     * @default false
     */
    readonly alwaysHide?: boolean;
    /**
     * The most invocations of the retry handler at a time; 2 to 1,000.
     *
     * It limits the pollers, which share what may be hidden. Reserved concurrency would throttle them, which raises receive
     * counts.
     *
     * @default 10
     */
    readonly maxConcurrency?: number;
}
/** Also the mapping's. */
export declare const DEFAULT_MAX_CONCURRENCY = 10;
/**
 * How the retry handler performs waits, as its environment.
 *
 * @param refusals receives a line for each property that the handler would refuse when it starts
 */
export declare function waitingVariables(props: WaitingProps, refusals: string[]): Record<string, string>;
