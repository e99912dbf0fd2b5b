import { z } from 'zod'

/** A facing: one row of one shelf of one cabinet. */
export const Location = z.object({
  cabinet: z.int().min(1).max(4),
  shelf: z.int().min(1).max(20),
  row: z.int().min(1).max(40),
})
export type Location = z.infer<typeof Location>

export const locationKey = ({ cabinet, shelf, row }: Location): string => `${cabinet}-${shelf}-${row}`
