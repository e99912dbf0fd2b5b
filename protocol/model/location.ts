import { z } from 'zod'

/** A facing: one row of one shelf of one cabinet. */
export const Location = z.object({
  cabinet: z.int().min(1).max(4).describe('Number of the cabinet, 1 to 4.'),
  shelf: z.int().min(1).max(20).describe('Number of the shelf in its cabinet, 1 to 20.'),
  row: z.int().min(1).max(40).describe('Number of the row on its shelf, 1 to 40.'),
})
export type Location = z.infer<typeof Location>

export const locationKey = ({ cabinet, shelf, row }: Location): string => `${cabinet}-${shelf}-${row}`
