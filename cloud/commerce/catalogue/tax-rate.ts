import { z } from 'zod'

/** A sales tax rate in percent, 0 to 99.999, with at most three decimals. */
export const TaxPercent = z
  .string()
  .regex(/^\d{1,2}(\.\d{1,3})?$/, 'must be a percentage below 100 with at most three decimals')

/** The same in thousandths of a percent, as `hubs.tax_millipercent` stores it. */
export const toMillipercent = (percent: z.infer<typeof TaxPercent>): number =>
  Math.round(Number(percent) * 1000)
