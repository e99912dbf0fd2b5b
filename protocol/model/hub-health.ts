import { z } from 'zod'
import { namedEnum } from './named-enum.ts'
import { StorageFault } from './storage.ts'

/** The health of a hub's parts, as the hub reports it and the API shows it. */

export const DeviceStatus = namedEnum('DeviceStatus', 'State of the device.', {
  healthy: 'the device works.',
  maintenance: 'the device is in maintenance.',
  fault: 'a motion failed, and none has succeeded since; for a fridge: it was too warm.',
  offline: 'the hub or the device’s controller is offline.',
  unknown: 'the hub does not know.',
})
export const DoorPosition = namedEnum('DoorPosition', 'Position of a bin’s door.', {
  closed: 'the door is closed.',
  open: 'the door is open.',
  moving: 'the door is moving.',
  unknown: 'the hub does not know.',
})
export const LiftPosition = namedEnum('LiftPosition', 'Position of a bin’s lift.', {
  up: 'the lift is at the top.',
  down: 'the lift is at the bottom.',
  moving: 'the lift is moving.',
  unknown: 'the hub does not know.',
})
export const DoorLock = namedEnum('DoorLock', 'State of a door with a lock.', {
  locked: 'the door is closed and locked.',
  unlocked: 'the door is closed and unlocked.',
  open: 'the door is open.',
  unknown: 'the hub is offline or does not know.',
})

export const BinHealth = z.object({
  bin_number: z.int().min(1).max(9),
  /** The number of units that fit. */
  capacity: z.int().min(1),
  enabled: z.boolean(),
  status: DeviceStatus,
  door: DoorPosition,
  lift: LiftPosition,
  occupied: z.boolean().nullable(),
  fault_code: z.string().max(64).nullable(),
  /** The order's UUID. */
  order_id: z.uuid().nullable(),
})
export type BinHealth = z.infer<typeof BinHealth>
export const FridgeHealth = z.object({
  fridge_number: z.int().min(1).max(9),
  enabled: z.boolean(),
  status: DeviceStatus,
  temperature: z.number().nullable(),
  /** The fridge was too warm for too long, and no person has confirmed it since. */
  shutoff: z.boolean(),
})
export const DoorHealth = z.object({ door: z.string().max(40), status: DoorLock })

export const HubHealth = z.object({
  accepting_orders: z.boolean(),
  bins: z.array(BinHealth).max(9),
  fridges: z.array(FridgeHealth).max(9),
  doors: z.array(DoorHealth).max(64),
  /** Number of operations with an unknown outcome (I1), for the owner to settle. */
  unknown_operations: z.int(),
  /** The hub's storage failure; absent while the storage works. Since version 11. */
  storage: StorageFault.optional(),
})
export type HubHealth = z.infer<typeof HubHealth>
