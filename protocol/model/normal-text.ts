import { z } from 'zod'

/**
 * A text that is stored in its normal form. A text of more than `longest` characters is refused as it is given: to normalise 1 MiB
 * would take a tenth of a second of processor time.
 */
export const normalText = (longest: number, normalise: (text: string) => string) =>
  z.string().max(longest, { abort: true }).overwrite(normalise)
