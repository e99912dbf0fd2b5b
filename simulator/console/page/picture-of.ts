import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import type { HubPicture, PictureCabinet, PictureDoor } from '../../../protocol/ui/picture-model.ts'
import type { HubState } from '../../hub-state.ts'

/** The state of a simulated hub without the time, which differs at each poll. */
export type LiveState = Omit<HubState, 'time'>

/** The picture of a simulated hub: its true state, whatever its sensors report. */
export function pictureOf(
  hardware: HardwareDescription,
  state: LiveState,
  traffic: ReadonlyMap<string, number>,
): HubPicture {
  const faults = new Map<string, string[]>()
  for (const { type, target } of state.faults)
    if (target !== null) faults.set(target, [...(faults.get(target) ?? []), type])
  const troubleOf = (id: string): string | null => {
    const names = faults.get(id)
    return names ? `Fault: ${names.join(', ')}` : null
  }
  const door = ({ door: id, open, locked }: HubState['doors'][number]): PictureDoor => ({
    id,
    open,
    locked,
    trouble: troubleOf(id),
  })
  const main = state.doors.find((one) => one.door === 'main')
  return {
    bins: state.bins.map(({ bin: id, door: position, lift, units }) => ({
      id,
      number: numberOf(id),
      door: position,
      lift,
      units,
      occupied: units > 0,
      note: null,
      trouble: troubleOf(id),
    })),
    cabinets: cabinetsOf(state, troubleOf),
    fridges: state.fridges.map(({ fridge: id, celsius }) => ({
      id,
      number: numberOf(id),
      celsius,
      trouble: troubleOf(id),
      doors: state.doors.filter((one) => one.door.startsWith(`fridge_${numberOf(id)}_`)).map(door),
    })),
    main: main ? door(main) : null,
    controllers: state.controllers.map(({ controller: id, powered, connected }) => ({
      id,
      powered,
      connected,
      devices: hardware.controllers
        .filter((one) => one.id === id)
        .flatMap(({ devices }) => devices.map(({ kind, number }) => `${kind}-${number}`)),
      traffic: traffic.get(id) ?? 0,
      trouble: troubleOf(id) ?? (powered ? null : 'It has no power'),
    })),
  }
}

const numberOf = (id: string): number => Number(id.slice(id.indexOf('-') + 1))

function cabinetsOf({ rows }: LiveState, troubleOf: (id: string) => string | null): PictureCabinet[] {
  const cabinets = new Map<number, PictureCabinet>()
  for (const { cabinet, shelf, row, units, depth, product_id } of rows) {
    const id = `cabinet-${cabinet}`
    const one = cabinets.get(cabinet) ?? { id, number: cabinet, shelves: [], trouble: troubleOf(id) }
    cabinets.set(cabinet, one)
    let board = one.shelves.find((other) => other.shelf === shelf)
    if (!board) one.shelves.push((board = { shelf, rows: [] }))
    const product = product_id === null ? null : `product ${product_id}`
    board.rows.push({ shelf, row, units, depth, product, blocked: null })
  }
  return [...cabinets.values()]
}
