/** ISO 8601 in UTC with a trailing `Z` (O §1), of milliseconds since the Unix epoch. */
export const timestamp = (at: number): string => new Date(at).toISOString()
export const timestampOrNull = (at: number | null): string | null => (at === null ? null : timestamp(at))
