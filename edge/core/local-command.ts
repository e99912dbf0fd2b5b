import { z } from 'zod'
import { Location } from '../../protocol/model/location.ts'
import { CommandBody } from '../../protocol/model/hub-commands.ts'

/** Turns a row once, over a bin, for nobody's order: a technician tries the row. It is booked as any unit that falls. */
const TestDispense = z.object({
  name: z.literal('test_dispense'),
  location: Location,
  bin: z.int().min(1).max(4),
  /** The bin may hold units that other rows dropped in this acceptance. */
  onto: z.boolean().optional(),
})
export type TestDispense = z.infer<typeof TestDispense>

/** Commands of a person at the hub: those that the cloud may give, and those that a person must watch. */
export const HubCommand = z.union([CommandBody, TestDispense])
export type HubCommand = z.infer<typeof HubCommand>
