/** A value as a message names it. */
export declare function shown(value: unknown): string;
/** A text as a message names it, without quotes. */
export declare function literal(text: string): string;
export declare function replaceTokens(text: string, by: string): string;
