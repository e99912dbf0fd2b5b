import { z } from 'zod'
import { Location } from '../../protocol/model/location.ts'

/** Bodies of the local API. Unknown keys are refused: who types `unit` for `units` should hear of it. */

const units = (min: number) => z.int().min(min).max(10_000)

export const Settle = z.strictObject({ happened: z.boolean() })
export const Count = z.strictObject({ location: Location, units: units(0) })
export const Restock = z.strictObject({ location: Location, units: units(1) })
/** `for_ms`: how long the door stays unlocked, milliseconds; the hub's own limit holds besides. */
export const Unlock = z.strictObject({ for_ms: z.int().min(1000).max(86_400_000).default(30_000) })
export const Nothing = z.strictObject({})

export const OperationId = z.uuid()
export const BinNumber = z
  .string()
  .regex(/^[1-4]$/)
  .transform(Number)
export const DoorName = z.string().regex(/^(main|fridge_[1-8]_(left|middle|right))$/)
