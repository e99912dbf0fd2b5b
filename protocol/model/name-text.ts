import { z } from 'zod'

/** Characters without a shape of their own that only mislead in a name: zero-width space, soft hyphen, changes of direction. */
const MISLEADING = /[\u00AD\u061C\u200B\u200E\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g
/** White space of every kind, line breaks and control characters. */
const BLANKS = /[\s\p{Cc}]+/gu

/**
 * A name as it is stored, whichever way it enters: one Unicode form (NFC), single spaces, nothing before or after it. Names that
 * look alike are therefore equal.
 */
export const normalName = (text: string): string =>
  text.normalize('NFC').replaceAll(MISLEADING, '').replaceAll(BLANKS, ' ').trim()

/** A name of at most `max` characters, for bodies, files, options and settings. */
export const nameText = (max: number) => z.string().overwrite(normalName).min(1).max(max)
