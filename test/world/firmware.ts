import type { CoreDesired, FirmwareOutcome } from '../../edge/desired/desired-states.ts'
import type { FirmwareImage } from '../../edge/hardware/firmware-images.ts'
import type { Controller } from '../../simulator/board/controller.ts'
import { readImageHeader } from '../../protocol/serial/image.ts'
import { sumOf } from '../../simulator/firmware/image.ts'

interface Running {
  build: number
  state: string
}

/** An image as a hub has it in a file. */
export function imageOf(bytes: Uint8Array): FirmwareImage {
  return { ...readImageHeader(bytes)!, size: bytes.length, sum: sumOf(bytes), read: () => bytes }
}

/** The firmware of a simulated controller, by its flash: `2 kept`, `2 trial`, `1 kept`. */
export function firmwareOf(controller: Controller): string {
  const running = controller.flash().findLast((entry): entry is { running: Running } => 'running' in entry)
  return running ? `${running.running.build} ${running.running.state}` : '1 kept'
}

/** The desired state of a cloud that sends none. */
export const noDesired = {
  offer() {},
  failed: () => null,
  failedUpdate: () => null,
  isMissing: () => false,
  rollout: () => null,
  noteFirmware() {},
}

interface Releases {
  rollout: string | null
  firmwareOutcomes: FirmwareOutcome[]
}

/** The desired state of a hub whose running release a rollout may have brought. */
export const desiredOf = (hub: Releases): CoreDesired => ({
  ...noDesired,
  rollout: () => hub.rollout,
  noteFirmware: (_, outcome) => hub.firmwareOutcomes.push(outcome),
})
