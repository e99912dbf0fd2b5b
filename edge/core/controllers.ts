import type { Context } from './context.ts'
import { cabinetDevice } from './layout.ts'

/** Whether the device's controller is connected and may be given orders: its memory agrees with the journal. */
export function isUsable(context: Context, device: string): boolean {
  return isControllerUsable(context, context.layout.controllerOf(device) ?? '')
}

export function isControllerUsable({ devices, journal }: Context, controller: string): boolean {
  return devices.isUp(controller) && journal.adoptions.find(controller)?.adopted === 1
}

/**
 * How long the hub still waits, after its start, for cabinets that it has not met. This store may be a copy, and the
 * memory of one cabinet the only witness of what was dispensed since it was made: as long as one has not spoken, another
 * must not dispense the same unit again.
 */
export function startUpGraceMs({ layout, devices, runtime, startedAt, settings }: Context): number {
  const isComplete = layout.cabinets.every((cabinet) =>
    devices.isMet(layout.controllerOf(cabinetDevice(cabinet)) ?? ''),
  )
  return isComplete ? 0 : Math.max(0, startedAt + settings.musterMs - runtime.clock.monotonic())
}
