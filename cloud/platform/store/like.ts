const escaped = (text: string): string => text.replaceAll(/[!%_]/g, (special) => `!${special}`)

/** A pattern for `lower(column) like … escape '!'`: the text anywhere, in any case. */
export const containsPattern = (text: string): string => `%${escaped(text.toLowerCase())}%`
/** A pattern for `column like … escape '!'`: the text at the beginning. */
export const prefixPattern = (text: string): string => `${escaped(text)}%`
