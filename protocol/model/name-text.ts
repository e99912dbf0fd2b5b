import { z } from 'zod'

/**
 * A text that is stored in its normal form. A text of more than `longest` characters is refused as it is given: to normalise 1 MiB
 * would take a tenth of a second of processor time.
 */
export const normalText = (longest: number, normalise: (text: string) => string) =>
  z.string().max(longest, { abort: true }).overwrite(normalise)

/** Invisible characters that mislead in a name: zero-width space, soft hyphen, changes of direction. */
const MISLEADING = /[\u00AD\u061C\u200B\u200E\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g
/** White space of every kind, also line breaks. */
const BLANKS = /\s+/gu
/** The other control characters. A terminal executes them: ESC can delete the lines of a list. */
const CONTROLS = /\p{Cc}/gu

/**
 * The stored form of a name from any source: Unicode NFC and single spaces. Names that look the same are thus equal.
 */
export const normalName = (text: string): string =>
  text.normalize('NFC').replaceAll(MISLEADING, '').replaceAll(BLANKS, ' ').replaceAll(CONTROLS, '').trim()

/** A name of at most `max` characters, for bodies, files, options and settings. */
export const nameText = (max: number) =>
  normalText(10 * max, normalName)
    .min(1)
    .max(max)
