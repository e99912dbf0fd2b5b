import { z } from 'zod'
import { faultTypes } from '../faults/fault-types.ts'

/** What the simulator's HTTP interface accepts. Bounded, and nothing unknown. */

const DAY_MS = 86_400_000
const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,40}$/, 'must be a name such as bin-1, cabinet-2, fridge_1_left')
const duration = z.int().min(1).max(DAY_MS)

export const FaultBody = z.strictObject({
  type: z.enum(faultTypes),
  target: name.optional(),
  for_ms: duration.optional(),
  probability: z.number().gt(0).max(1).optional(),
})

export const ActBody = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.literal('take_items'),
    target: name,
    units: z.int().min(1).max(100).optional(),
  }),
  z.strictObject({ action: z.enum(['open_door', 'close_door']), target: name }),
  z.strictObject({
    action: z.literal('restock'),
    target: name,
    shelf: z.int().min(1).max(20),
    row: z.int().min(1).max(40),
    units: z.int().min(1).max(60),
    product_id: z.int().min(1).max(2_147_483_647).optional(),
  }),
  z.strictObject({ action: z.literal('press'), target: name }),
])

export const PowerBody = z.strictObject({
  state: z.enum(['on', 'off']),
  /** One controller only. */
  controller: name.optional(),
  /** With `off`: it comes back by itself. */
  for_ms: duration.optional(),
})

/** The first thing that is wrong, in words. */
export function complaint(error: z.ZodError): string {
  const [issue] = error.issues
  if (!issue) return 'invalid'
  const where = issue.path.join('.')
  return where ? `${where}: ${issue.message}` : issue.message
}
