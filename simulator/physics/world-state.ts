import { deviceId, type HardwareDescription } from '../../protocol/model/hardware.ts'
import { type Location, locationKey } from '../../protocol/model/location.ts'

export interface BinState {
  door: DoorPosition
  lift: LiftPosition
  /** Product ids of the contents; null for a unit of unknown product. */
  contents: (number | null)[]
}

export interface RowState extends Location {
  product_id: number | null
  units: number
  depth: number
}

export interface WorldState {
  /** By device id. */
  bins: Map<string, BinState>
  /** By `locationKey`. */
  rows: Map<string, RowState>
  /** Doors on GPIO lines, by name (`main`, `fridge_1_left`): true if open. */
  doors: Map<string, boolean>
}

/** The doors that have a lock or a sensor in the hardware description. */
export function doorNames(hardware: HardwareDescription): string[] {
  const names = hardware.gpio.lines.map((line) => line.name.replace(/_(lock|door)$/, ''))
  return [...new Set(names)]
}

/** A new hub: doors closed, lifts down, rows empty. */
function builtState(hardware: HardwareDescription): WorldState {
  const state: WorldState = { bins: new Map(), rows: new Map(), doors: new Map() }
  for (const { devices } of hardware.controllers)
    for (const device of devices) {
      if (device.kind === 'bin')
        state.bins.set(deviceId(device), { door: 'closed', lift: 'down', contents: [] })
      if (device.kind === 'cabinet')
        for (const { shelf, rows, depth } of device.shelves)
          for (let row = 1; row <= rows; row++) {
            const place = { cabinet: device.number, shelf, row }
            state.rows.set(locationKey(place), { ...place, product_id: null, units: 0, depth })
          }
    }
  for (const name of doorNames(hardware)) state.doors.set(name, false)
  return state
}

/** Every row full, with units of unknown product. */
export function fullRows(hardware: HardwareDescription): LoadedRow[] {
  return [...builtState(hardware).rows.values()].map(({ cabinet, shelf, row, depth }) => ({
    cabinet,
    shelf,
    row,
    product_id: null,
    units: depth,
  }))
}

/** Applies one record to the state. Ignores records of mechanisms that the hardware no longer has. */
export function applyRecord(state: WorldState, record: WorldRecord): void {
  switch (record.kind) {
    case 'loaded':
      for (const { product_id, units, ...place } of record.rows) {
        const row = state.rows.get(locationKey(place))
        if (row) Object.assign(row, { product_id, units })
      }
      return
    case 'began':
      return
    case 'act':
      applyAct(state, record.act)
  }
}

function applyAct(state: WorldState, { device, action, detail }: Act): void {
  const bin = state.bins.get(device)
  switch (action) {
    case 'open_door':
    case 'close_door':
    case 'force_open':
      if (bin) bin.door = detail.to as DoorPosition
      else if (state.doors.has(device)) state.doors.set(device, detail.to === 'open')
      return
    case 'raise_lift':
    case 'lower_lift':
      if (bin) bin.lift = detail.to as LiftPosition
      return
    case 'take_items':
      bin?.contents.splice(0, detail.units as number)
      return
    case 'put_items':
      for (let unit = 0; unit < (detail.units as number); unit++) bin?.contents.push(null)
      return
    case 'dispense':
    case 'drop': {
      const row = rowOf(state, device, detail)
      const fallen = detail.fallen as number
      if (!row || fallen === 0) return
      row.units -= fallen
      const target = state.bins.get(`bin-${detail.bin}`)
      for (let unit = 0; unit < fallen; unit++) target?.contents.push(row.product_id)
      return
    }
    case 'restock': {
      const row = rowOf(state, device, detail)
      if (!row) return
      row.units += detail.units as number
      if (detail.product_id !== null) row.product_id = detail.product_id as number
    }
  }
}

function rowOf(state: WorldState, device: string, detail: Act['detail']): RowState | undefined {
  const cabinet = Number(device.slice(device.indexOf('-') + 1))
  return state.rows.get(locationKey({ cabinet, shelf: detail.shelf as number, row: detail.row as number }))
}

export function foldRecords(hardware: HardwareDescription, records: readonly WorldRecord[]): WorldState {
  const state = builtState(hardware)
  for (const record of records) applyRecord(state, record)
  return state
}

/**
 * The records of the world: the independent observer of every test of I1. The state follows only from these records.
 */

/** Position of a mechanism. `between`: at neither end (stopped or jammed on the way). */
export type DoorPosition = 'closed' | 'open' | 'between'
export type LiftPosition = 'up' | 'down' | 'between'

/** The initial units of one facing. */
export interface LoadedRow {
  cabinet: number
  shelf: number
  row: number
  product_id: number | null
  units: number
}

export type ActDetail = Record<string, string | number | boolean | null>

/**
 * One real motion, by a motor, a falling unit, or a hand. Recorded when its effect takes place. `n` counts from 1
 * without a gap. At most one act has a given `operation_id`.
 */
export interface Act {
  n: number
  /** ISO 8601, by the world's clock. */
  at: string
  /** `bin-1`, `cabinet-2`, `fridge-1`, or a door: `main`, `fridge_1_left`. */
  device: string
  action: string
  operation_id?: string
  detail: ActDetail
}

/** A motor was switched on. If no act follows before the process dies, the motion was cut there. */
export interface Beginning {
  device: string
  action: string
  operation_id: string
  detail: ActDetail
}

export type WorldRecord =
  { kind: 'loaded'; rows: LoadedRow[] } | { kind: 'began'; motion: Beginning } | { kind: 'act'; act: Act }
