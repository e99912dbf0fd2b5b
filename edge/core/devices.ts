import type { Clock } from '../../protocol/model/runtime.ts'
import type { DeviceEvent } from '../hardware/controllers.ts'
import { numberOf, type Layout } from './layout.ts'

export type Door = 'closed' | 'open' | 'moving' | 'unknown'
export type Lift = 'up' | 'down' | 'moving' | 'unknown'

export interface BinState {
  door: Door
  lift: Lift
  occupied: boolean | undefined
  /** It has said where it stands since its controller came up. */
  hasReported: boolean
  /** The motion that was sent to it last since then, by its operation. */
  sent: string | undefined
  /** On the monotonic clock: since when its switches have not said where door or lift stand. */
  unsureSince: number | undefined
  /** On the monotonic clock: since when it has been empty without interruption. */
  emptySince: number | undefined
}

/** Instants on the monotonic clock. */
export interface FridgeState {
  celsius: number | undefined
  /** The extremes since the last report. */
  min: number | undefined
  max: number | undefined
  /** Since when it has been read without interruption. */
  readSince: number | undefined
  /** Whether the journal knows that it is read: `never` in this life; `before` the housekeeping came round; `lately`. */
  noted: 'never' | 'before' | 'lately'
  /** How warm it was an earlier life has written down, and it has not been cold since. */
  isInherited: boolean
}

/**
 * A board on one of the hub's lines that is not its own (serial SPEC §8): nothing is asked of it, and nothing that it says
 * of its devices is believed.
 */
export interface Stranger {
  /** Another hub's, another line's, or new where the line has its own: only a person makes it this hub's. Otherwise the hub takes it over. */
  isForeign: boolean
  /** The devices that have spoken on its line since it came up. */
  heard: Set<string>
}

export type Devices = ReturnType<typeof createDevices>

/** What the devices say of themselves, in memory only: controllers say it anew on every connection. */
export function createDevices(layout: Layout, clock: Clock, steadyMs: number) {
  const memories = new Map<string, string>()
  const met = new Set<string>()
  const downSince = new Map(layout.controllers.map((controller) => [controller, clock.monotonic()]))
  const cameBack = new Map<string, { at: number; downSince: number }>()
  const bins = new Map(layout.bins.map((bin) => [bin.number, unknownBin()]))
  const fridges = new Map(layout.fridges.map((fridge) => [fridge.number, unknownFridge()]))
  const rests = new Map<string, { until: number; failures: number }>()

  function forget(controller: string): void {
    for (const device of layout.devicesOf(controller)) {
      const bin = bins.get(numberOf('bin', device) ?? 0)
      if (bin) Object.assign(bin, unknownBin())
      const fridge = fridges.get(numberOf('fridge', device) ?? 0)
      if (fridge) fridge.celsius = undefined
    }
  }

  function answers(controller: string): void {
    const since = downSince.get(controller)
    if (since !== undefined) cameBack.set(controller, { at: clock.monotonic(), downSince: since })
    downSince.delete(controller)
  }

  return {
    up(controller: string, memoryId: string): void {
      forget(controller)
      memories.set(controller, memoryId)
      met.add(controller)
      answers(controller)
    },
    /** What it said when it came up could not be taken into the journal: it is not up, nor met if it was not before. */
    turnAway(controller: string, wasMet: boolean): void {
      forget(controller)
      memories.delete(controller)
      if (!wasMet) met.delete(controller)
    },
    /** It answers, and is not to be used. */
    hold(controller: string): void {
      forget(controller)
      memories.delete(controller)
      answers(controller)
    },
    down(controller: string): void {
      forget(controller)
      memories.delete(controller)
      if (downSince.has(controller)) return
      const now = clock.monotonic()
      const back = cameBack.get(controller)
      const isSame = back !== undefined && now - back.at < steadyMs
      downSince.set(controller, isSame ? back.downSince : now)
    },
    isUp: (controller: string): boolean => memories.has(controller),
    /** It has been up since this start of the hub. */
    isMet: (controller: string): boolean => met.has(controller),
    /** Since when the controller has been away, on the monotonic clock; what came back only for a moment has not been back. */
    awaySince(controller: string): number | undefined {
      const since = downSince.get(controller)
      const back = cameBack.get(controller)
      if (since !== undefined || back === undefined) return since
      return clock.monotonic() - back.at < steadyMs ? back.downSince : undefined
    },
    memoryOf: (controller: string): string | undefined => memories.get(controller),
    bin: (number: number): BinState => bins.get(number) ?? unknownBin(),
    fridge: (number: number): FridgeState => fridges.get(number) ?? unknownFridge(),
    /** An operation goes out to the device. */
    sent(device: string, operationId: string): void {
      const bin = bins.get(numberOf('bin', device) ?? 0)
      if (bin) bin.sent = operationId
    },
    note({ device, door, lift, occupied, celsius }: DeviceEvent): void {
      const bin = bins.get(numberOf('bin', device) ?? 0)
      if (bin) {
        bin.door = door ?? bin.door
        bin.lift = lift ?? bin.lift
        bin.hasReported ||= door !== undefined
        const isUnsure = bin.door === 'unknown' || bin.lift === 'unknown'
        bin.unsureSince = isUnsure ? (bin.unsureSince ?? clock.monotonic()) : undefined
        if (occupied !== undefined) {
          bin.emptySince = occupied ? undefined : (bin.emptySince ?? clock.monotonic())
          bin.occupied = occupied
        }
      }
      const fridge = fridges.get(numberOf('fridge', device) ?? 0)
      if (!fridge || celsius === undefined) return
      fridge.celsius = celsius
      fridge.min = Math.min(fridge.min ?? celsius, celsius)
      fridge.max = Math.max(fridge.max ?? celsius, celsius)
    },
    /** Lets a device rest after a failure, twice as long after each further one in a row. */
    rest(device: string, firstMs: number, maxMs: number): void {
      const failures = (rests.get(device)?.failures ?? 0) + 1
      const ms = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20))
      rests.set(device, { until: clock.monotonic() + ms, failures })
    },
    endRest: (device: string): void => void rests.delete(device),
    restMs: (device: string): number => Math.max(0, (rests.get(device)?.until ?? 0) - clock.monotonic()),
  }
}

const unknownBin = (): BinState => ({
  door: 'unknown',
  lift: 'unknown',
  hasReported: false,
  sent: undefined,
  unsureSince: undefined,
  occupied: undefined,
  emptySince: undefined,
})
const unknownFridge = (): FridgeState => ({
  celsius: undefined,
  min: undefined,
  max: undefined,
  readSince: undefined,
  noted: 'never',
  isInherited: false,
})
