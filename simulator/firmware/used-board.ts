import {
  deviceId,
  type ControllerDescription,
  type DeviceDescription,
} from '../../protocol/model/hardware.ts'
import { randomHex, uuidv7 } from '../../protocol/model/ids.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { opOfUuid } from '../../protocol/serial/codec.ts'
import type { Action } from '../../protocol/serial/frames.ts'
import type { MemoryEntry } from './operation-memory.ts'

/** The memory of a board that has served another hub: its owner, and its operations there. */
export function usedMemory(
  { id, devices }: ControllerDescription,
  hubId: number,
  runtime: Runtime,
): MemoryEntry[] {
  const { random } = runtime
  const owner = { hub: hubId, ctl: id, store: randomHex(random, 4) }
  const records = devices.flatMap((device) =>
    actionsOf(device).map((done) => ({
      record: {
        op: opOfUuid(uuidv7(runtime)),
        state: 'done' as const,
        why: undefined,
        moved: true,
        ms: 1500,
        dev: deviceId(device),
        ...done,
      },
    })),
  )
  return [{ format: randomHex(random, 4) }, { owner }, ...records]
}

interface Done {
  act: Action
  drops: number
  shelf: number | undefined
  row: number | undefined
  bin: number | undefined
  ref: string | undefined
}

const nowhere = { drops: 0, shelf: undefined, row: undefined, bin: undefined, ref: undefined }

function actionsOf(device: DeviceDescription): Done[] {
  switch (device.kind) {
    case 'bin':
      return [
        { act: 'open_door', ...nowhere },
        { act: 'close_door', ...nowhere },
      ]
    case 'cabinet':
      return device.shelves.map(({ shelf }) => ({
        act: 'dispense',
        drops: 1,
        shelf,
        row: 1,
        bin: 1,
        ref: `${shelf}.1.0`,
      }))
    case 'fridge':
      return []
  }
}
