import { deviceId, type DeviceDescription } from '../../protocol/model/hardware.ts'
import { opOfUuid } from '../../protocol/serial/codec.ts'
import type { Bin } from '../physics/bin.ts'
import type { Cabinet } from '../physics/cabinet.ts'
import type { Fridge } from '../physics/fridge.ts'
import type { Motion, OnMotionEnd } from '../physics/motion.ts'
import type { AskBoard, BoardEvent, BoardRequest } from '../board/messages.ts'

export type BinPins = Pick<Bin, 'device' | 'door' | 'lift' | 'occupied' | 'run' | 'onSense'>

export type CabinetPins = Pick<Cabinet, 'device' | 'turn' | 'onDrop'>

export type FridgePins = Pick<Fridge, 'device' | 'probe'>

/** The mechanisms as the firmware reaches them: only through its board. */
export interface Pins {
  readonly bins: ReadonlyMap<string, BinPins>
  readonly cabinets: ReadonlyMap<string, CabinetPins>
  readonly fridges: ReadonlyMap<string, FridgePins>
  /** An event of the board. */
  event(event: Extract<BoardEvent, { on: 'sense' | 'end' | 'drop' }>): void
}

interface Running {
  moved: boolean
  onEnd: OnMotionEnd
}

export function createPins(devices: readonly DeviceDescription[], ask: AskBoard): Pins {
  const running = new Map<string, Running>()
  const sensing = new Map<string, Set<() => void>>()
  const falling = new Map<string, Set<(units: number) => void>>()
  const bins = new Map<string, BinPins>()
  const cabinets = new Map<string, CabinetPins>()
  const fridges = new Map<string, FridgePins>()

  function run(request: Extract<BoardRequest, { do: 'run' }>, onEnd: OnMotionEnd): Motion {
    const { device } = request
    const motion: Running = { moved: false, onEnd }
    ask(request)
    running.set(device, motion)
    return {
      stop() {
        if (running.get(device) !== motion) return
        running.delete(device)
        motion.moved = ask({ do: 'stop', device }).moved
      },
      moved: () => motion.moved,
    }
  }

  for (const description of devices) {
    const device = deviceId(description)
    switch (description.kind) {
      case 'bin':
        bins.set(device, {
          device,
          door: () => ask({ do: 'read', device, pin: 'door' }).value as ReturnType<Bin['door']>,
          lift: () => ask({ do: 'read', device, pin: 'lift' }).value as ReturnType<Bin['lift']>,
          occupied: () => ask({ do: 'read', device, pin: 'occ' }).value === true,
          run: (action, id, onEnd) => run({ do: 'run', device, action, op: opOfUuid(id) }, onEnd),
          onSense: (listener) => listenTo(sensing, device, listener),
        })
        break
      case 'cabinet':
        cabinets.set(device, {
          device,
          turn: (place, id, onEnd) =>
            run({ do: 'run', device, action: 'dispense', ...place, op: opOfUuid(id) }, onEnd),
          onDrop: (listener) => listenTo(falling, device, listener),
        })
        break
      case 'fridge':
        fridges.set(device, {
          device,
          probe: () => ask({ do: 'read', device, pin: 'temp' }).value as number | null,
        })
    }
  }

  return {
    bins,
    cabinets,
    fridges,
    event(event) {
      switch (event.on) {
        case 'sense':
          for (const listener of sensing.get(event.device) ?? []) listener()
          return
        case 'drop':
          for (const listener of falling.get(event.device) ?? []) listener(event.units)
          return
        case 'end': {
          const motion = running.get(event.device)
          if (!motion) return
          running.delete(event.device)
          motion.moved = event.moved
          motion.onEnd(event.end)
        }
      }
    },
  }
}

function listenTo<T>(listeners: Map<string, Set<T>>, device: string, listener: T): () => void {
  const all = listeners.get(device) ?? new Set()
  listeners.set(device, all.add(listener))
  return () => void all.delete(listener)
}
