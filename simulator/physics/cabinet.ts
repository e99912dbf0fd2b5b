import type { Random } from '../../protocol/model/runtime.ts'
import { locationKey } from '../../protocol/model/location.ts'
import { rowSubject } from '../../protocol/model/subject.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { ActDetail } from './world-state.ts'
import { standstill, type Bin, type MechanismOptions } from './bin.ts'
import { cut } from './chronicle.ts'
import type { Motion, OnMotionEnd } from './motion.ts'

/** A facing, and the bin that its chute is switched to. */
export interface DispensePlace {
  shelf: number
  row: number
  bin: number
}

/** A cabinet of vending rows as its controller sees it: a motor for each row, one drop sensor in the chute. */
export interface Cabinet {
  readonly device: string
  /** Turns a row once. */
  turn(place: DispensePlace, operationId: string, onEnd: OnMotionEnd): Motion
  /** Calls `listener` with the units that the drop sensor just saw. */
  onDrop(listener: (units: number) => void): () => void
}

/** At which part of the turn the unit falls. */
const FALL_AT = 0.7
const HANG_MS = { least: 2000, most: 15_000 }

export function createCabinet(
  device: string,
  cabinet: number,
  binOf: (number: number) => Bin | undefined,
  random: Random,
  options: MechanismOptions,
): Cabinet {
  const { chronicle, clock, timing, strikes } = options
  const listeners = new Set<(units: number) => void>()

  /** Whether a fault strikes a row: raised for the row, for its cabinet or for all. */
  const strikesRow = (type: FaultType, { shelf, row }: DispensePlace): boolean =>
    strikes(type, rowSubject({ cabinet, shelf, row }))

  /** Units pass the sensor and land. */
  function fall(fallen: number, place: DispensePlace): void {
    const { bin } = place
    const seen = !strikesRow('missed_drop', place)
    clock.after(timing.fallMs, () => {
      binOf(bin)?.touched()
      if (seen) for (const listener of listeners) listener(fallen)
    })
  }

  const unitsIn = ({ shelf, row }: DispensePlace): number =>
    chronicle.state.rows.get(locationKey({ cabinet, shelf, row }))?.units ?? 0

  /** Where the bin stood at that instant: the witness of the interlocks. */
  function around(place: DispensePlace): ActDetail {
    const bin = chronicle.state.bins.get(`bin-${place.bin}`)
    return { ...place, bin_door: bin?.door ?? null, bin_lift: bin?.lift ?? null }
  }

  /** The row whose motor is wired where this one's should be. */
  function wiredTo(place: DispensePlace): DispensePlace {
    const other = place.row === 1 ? 2 : place.row === 2 ? 1 : place.row
    const isThere = chronicle.state.rows.has(locationKey({ cabinet, shelf: place.shelf, row: other }))
    return isThere && strikes('crossed_rows', device) ? { ...place, row: other } : place
  }

  function turn(meant: DispensePlace, operationId: string, onEnd: OnMotionEnd): Motion {
    const place = wiredTo(meant)
    const isHit = (type: FaultType): boolean => strikesRow(type, place)
    if (isHit('jam_without_motion')) return standstill(clock, timing, onEnd)
    const jammed = isHit('jam')
    const empty = isHit('empty_turn')
    const hangs = !jammed && !empty && isHit('late_drop') && unitsIn(place) > 0
    const wanted = jammed || empty || hangs ? 0 : isHit('double_drop') ? 2 : 1
    const turnMs = timing.turnMs * (isHit('slow_motion') ? 4 : 1)
    const durationMs = jammed ? turnMs / 2 + timing.stallMs : turnMs
    let open = true
    chronicle.began({ device, action: 'dispense', operation_id: operationId, detail: { ...place } })

    function conclude(detail: ActDetail): void {
      if (!open) return
      open = false
      chronicle.happened({ device, action: 'dispense', operation_id: operationId, detail })
    }
    let isPast = false
    function letFall(): void {
      if (isPast) return
      isPast = true
      const fallen = Math.min(wanted, unitsIn(place))
      if (jammed || fallen === 0) return
      conclude({ ...around(place), fallen, completed: true })
      fall(fallen, place)
    }
    const cancelFall = clock.after(turnMs * FALL_AT, letFall)
    const cancelEnd = clock.after(durationMs, () => {
      // A process that has been held up may be told of the later instant first.
      letFall()
      conclude({
        ...around(place),
        fallen: 0,
        completed: !jammed,
        ...(jammed && { jammed }),
        ...(hangs && { hangs }),
      })
      if (hangs) hang(place, operationId)
      onEnd(jammed ? 'stalled' : 'arrived')
    })
    options.onMotion(device, durationMs)
    return {
      stop() {
        cancelFall()
        cancelEnd()
        conclude(cut({ action: 'dispense', detail: around(place) }))
      },
      moved: () => true,
    }
  }

  /** The unit hangs in the spiral, and falls later by itself. */
  function hang(place: DispensePlace, after: string): void {
    clock.after(HANG_MS.least + random.fraction() * (HANG_MS.most - HANG_MS.least), () => {
      const fallen = Math.min(1, unitsIn(place))
      if (fallen === 0) return
      chronicle.happened({ device, action: 'drop', detail: { ...around(place), fallen, after } })
      fall(fallen, place)
    })
  }

  return {
    device,
    turn,
    onDrop(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
