import { DAY_MS } from '../../protocol/model/times.ts'
import { z } from 'zod'
import { faultTypes } from '../faults/fault-types.ts'

/** The requests of the simulator's HTTP interface. All values are bounded, and unknown fields are refused. */

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,40}$/, 'must be a name such as bin-1, cabinet-2, fridge_1_left')
const duration = z.int().min(1).max(DAY_MS)
const faultTarget = z
  .string()
  .regex(
    /^([a-z][a-z0-9_-]{0,40}|row \d{1,2}\/\d{1,2}\/\d{1,2})$/,
    'must be a name such as bin-1, cabinet-2, fridge_1_left, or a row such as row 1/2/3',
  )

export const FaultBody = z.strictObject({
  type: z.enum(faultTypes),
  target: faultTarget.optional(),
  for_ms: duration.optional(),
  probability: z.number().gt(0).max(1).optional(),
})

export const ActBody = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.enum(['take_items', 'put_items']),
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
  controller: name.optional(),
  /** With `off`: the power returns after this time. */
  for_ms: duration.optional(),
})

/** Another hub, with the hardware of an existing one. */
export const HubBody = z.strictObject({ hub_id: z.int().min(1).max(2_147_483_647), like: z.int().min(1) })

const worldName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,40}$/, 'must be letters, digits and dashes')
export const WorldBody = z.union([
  z.strictObject({ action: z.enum(['save', 'load']), name: worldName }),
  z.strictObject({ action: z.literal('reset'), name: z.undefined().optional() }),
])

/** A line of text put on a serial line, as if the other end had sent it. Without `*` and a CRC it gets the right one. */
export const LineBody = z.strictObject({
  controller: name,
  direction: z.enum(['to_hub', 'to_controller']).default('to_controller'),
  line: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII'),
})

/** Makes the faults' chance the same each time from here on. */
export const ChanceBody = z.strictObject({ seed: z.int().min(0).max(4_294_967_295) })

const values = z.record(z.string(), z.union([z.string().max(200), z.number(), z.boolean()]))

/** A scenario by its name, or as the text of its file; `parameters` replace the ones in the file. */
export const RunBody = z.strictObject({
  hub_id: z.int().min(1),
  name: z.string().max(100).optional(),
  text: z.string().max(200_000).optional(),
  parameters: values.default({}),
})
export const ScenarioText = z.strictObject({ text: z.string().max(200_000) })
/** A step as a scenario's file has it, done at once. */
export const StepBody = z.strictObject({ hub_id: z.int().min(1), step: z.record(z.string(), z.json()) })
export const RecordingBody = z.strictObject({ hub_id: z.int().min(1) })

/** The first thing that is wrong, in words. */
export function complaint(error: z.ZodError): string {
  const [issue] = error.issues
  if (!issue) return 'invalid'
  const where = issue.path.join('.')
  return where ? `${where}: ${issue.message}` : issue.message
}
