/** A whole number as text, or the token if it is one; empty if it is refused. */
export declare function wholeNumber(label: string, value: number, refusals: string[], expected?: string): string;
/** An empty value was refused already, and only the handler can check a token. */
export declare function isOutside(value: string, min: number, max: number): boolean;
