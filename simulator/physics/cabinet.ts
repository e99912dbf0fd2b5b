import type { Random } from '../../protocol/model/runtime.ts'
import { locationKey } from '../../protocol/model/location.ts'
import { rowSubject } from '../../protocol/model/subject.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { ActDetail } from './world-state.ts'
import { standstill, type Bin, type MechanismOptions } from './bin.ts'
import { cut } from './chronicle.ts'
import type { Motion, OnMotionEnd } from './motion.ts'

/** A facing, and the bin that the chute leads to. */
export interface DispensePlace {
  shelf: number
  row: number
  bin: number
}

interface CabinetOptions extends MechanismOptions {
  device: string
  number: number
  binOf: (number: number) => Bin | undefined
  random: Random
}

/** The part of the turn at which the unit falls. */
const FALL_AT = 0.7
const HANG_MS = { least: 2000, most: 15_000 }

/** A cabinet of vending rows as its controller sees it: a motor for each row, one drop sensor in the chute. */
export class Cabinet {
  readonly device: string
  readonly #number: number
  readonly #binOf: (number: number) => Bin | undefined
  readonly #random: Random
  readonly #options: MechanismOptions
  readonly #listeners = new Set<(units: number) => void>()

  constructor(options: CabinetOptions) {
    this.device = options.device
    this.#number = options.number
    this.#binOf = options.binOf
    this.#random = options.random
    this.#options = options
  }

  turn(meant: DispensePlace, operationId: string, onEnd: OnMotionEnd): Motion {
    const place = this.#wiredTo(meant)
    const { device } = this
    const { chronicle, clock, timing } = this.#options
    const isHit = (type: FaultType): boolean => this.#strikesRow(type, place)
    if (isHit('jam_without_motion')) return standstill(clock, timing, onEnd)
    const jammed = isHit('jam')
    const empty = isHit('empty_turn')
    const hangs = !jammed && !empty && isHit('late_drop') && this.#unitsIn(place) > 0
    const wanted = jammed || empty || hangs ? 0 : isHit('double_drop') ? 2 : 1
    const turnMs = timing.turnMs * (isHit('slow_motion') ? 4 : 1)
    const durationMs = jammed ? turnMs / 2 + timing.stallMs : turnMs
    let open = true
    chronicle.began({ device, action: 'dispense', operation_id: operationId, detail: { ...place } })

    const conclude = (detail: ActDetail): void => {
      if (!open) return
      open = false
      chronicle.happened({ device, action: 'dispense', operation_id: operationId, detail })
    }
    let isPast = false
    const letFall = (): void => {
      if (isPast) return
      isPast = true
      const fallen = Math.min(wanted, this.#unitsIn(place))
      if (jammed || fallen === 0) return
      conclude({ ...this.#around(place), fallen, completed: true })
      this.#fall(fallen, place)
    }
    const cancelFall = clock.after(turnMs * FALL_AT, letFall)
    const cancelEnd = clock.after(durationMs, () => {
      // In a process that was suspended, the later timer may fire first.
      letFall()
      conclude({
        ...this.#around(place),
        fallen: 0,
        completed: !jammed,
        ...(jammed && { jammed }),
        ...(hangs && { hangs }),
      })
      if (hangs) this.#hang(place, operationId)
      onEnd(jammed ? 'stalled' : 'arrived')
    })
    this.#options.onMotion(device, durationMs)
    return {
      stop: () => {
        cancelFall()
        cancelEnd()
        conclude(cut({ action: 'dispense', detail: this.#around(place) }))
      },
      moved: () => true,
    }
  }

  /** Calls `listener` with the units that the drop sensor saw. */
  onDrop(listener: (units: number) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Whether a fault strikes a row: it may be raised for the row, for its cabinet or for all. */
  #strikesRow(type: FaultType, { shelf, row }: DispensePlace): boolean {
    return this.#options.strikes(type, rowSubject({ cabinet: this.#number, shelf, row }))
  }

  /** Units pass the sensor and land. */
  #fall(fallen: number, place: DispensePlace): void {
    const { clock, timing } = this.#options
    const seen = !this.#strikesRow('missed_drop', place)
    clock.after(timing.fallMs, () => {
      this.#binOf(place.bin)?.touched()
      if (seen) for (const listener of this.#listeners) listener(fallen)
    })
  }

  #unitsIn({ shelf, row }: DispensePlace): number {
    const { rows } = this.#options.chronicle.state
    return rows.get(locationKey({ cabinet: this.#number, shelf, row }))?.units ?? 0
  }

  /** The bin's present position, as evidence for the interlocks. */
  #around(place: DispensePlace): ActDetail {
    const bin = this.#options.chronicle.state.bins.get(`bin-${place.bin}`)
    return { ...place, bin_door: bin?.door ?? null, bin_lift: bin?.lift ?? null }
  }

  /** The row with the motor that is wired in place of this row's motor. */
  #wiredTo(place: DispensePlace): DispensePlace {
    const other = place.row === 1 ? 2 : place.row === 2 ? 1 : place.row
    const { chronicle, strikes } = this.#options
    const isThere = chronicle.state.rows.has(
      locationKey({ cabinet: this.#number, shelf: place.shelf, row: other }),
    )
    return isThere && strikes('crossed_rows', this.device) ? { ...place, row: other } : place
  }

  /** The unit hangs in the spiral and falls later. */
  #hang(place: DispensePlace, after: string): void {
    const { chronicle, clock } = this.#options
    clock.after(HANG_MS.least + this.#random.fraction() * (HANG_MS.most - HANG_MS.least), () => {
      const fallen = Math.min(1, this.#unitsIn(place))
      if (fallen === 0) return
      const detail = { ...this.#around(place), fallen, after }
      chronicle.happened({ device: this.device, action: 'drop', detail })
      this.#fall(fallen, place)
    })
  }
}
