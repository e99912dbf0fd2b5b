import { locationKey } from '../../protocol/model/location.ts'
import type { World } from './world.ts'

/** The action of a person in the room. */
export type PersonAction =
  | { action: 'take_items'; target: string; units?: number | undefined }
  /** A person puts something into an open bin. */
  | { action: 'put_items'; target: string; units?: number | undefined }
  | { action: 'open_door' | 'close_door'; target: string }
  | {
      action: 'restock'
      /** `cabinet-1` with `shelf` and `row`. */
      target: string
      shelf: number
      row: number
      units: number
      product_id?: number | undefined
    }

export type ActionResult = { ok: true; detail: Record<string, unknown> } | { ok: false; reason: string }

const refuse = (reason: string): ActionResult => ({ ok: false, reason })

/** Executes the action if the world allows it; otherwise returns the obstacle. */
export function act(world: World, wanted: PersonAction): ActionResult {
  switch (wanted.action) {
    case 'take_items':
      return takeItems(world, wanted.target, wanted.units)
    case 'put_items':
      return putItems(world, wanted.target, wanted.units ?? 1)
    case 'open_door':
    case 'close_door':
      return moveDoor(world, wanted.target, wanted.action)
    case 'restock':
      return restock(world, wanted)
  }
}

function takeItems({ chronicle, bins }: World, target: string, wanted?: number): ActionResult {
  const state = chronicle.state.bins.get(target)
  const bin = bins.get(target)
  if (!state || !bin) return refuse(`there is no bin ${target}; take_items needs a target such as bin-1`)
  if (state.door !== 'open') return refuse(`the door of ${target} is ${state.door}, not open`)
  const units = Math.min(wanted ?? state.contents.length, state.contents.length)
  if (units === 0) return refuse(`${target} is empty`)
  chronicle.happened({ device: target, action: 'take_items', detail: { units, by: 'hand' } })
  bin.touched()
  return { ok: true, detail: { units, left: state.contents.length } }
}

function putItems({ chronicle, bins }: World, target: string, units: number): ActionResult {
  const state = chronicle.state.bins.get(target)
  const bin = bins.get(target)
  if (!state || !bin) return refuse(`there is no bin ${target}; put_items needs a target such as bin-1`)
  if (state.door !== 'open') return refuse(`the door of ${target} is ${state.door}, not open`)
  chronicle.happened({ device: target, action: 'put_items', detail: { units, by: 'hand' } })
  bin.touched()
  return { ok: true, detail: { units, left: state.contents.length } }
}

function moveDoor({ doors, bins }: World, target: string, action: 'open_door' | 'close_door'): ActionResult {
  const bin = bins.get(target)
  if (bin) {
    if (action === 'open_door')
      return refuse(`the door of ${target} is moved by its motor; the fault door_forced opens it by force`)
    if (bin.door() === 'closed') return refuse(`the door of ${target} is closed already`)
    bin.forceDoor('closed', 'close_door')
    return { ok: true, detail: { door: 'closed' } }
  }
  if (!doors.names.includes(target))
    return refuse(`there is no door ${target}; doors: ${[...doors.names, ...bins.keys()].join(', ')}`)
  const open = action === 'open_door'
  if (doors.isOpen(target) === open) return refuse(`door ${target} is ${open ? 'open' : 'closed'} already`)
  if (open && doors.isLocked(target)) return refuse(`door ${target} is locked`)
  doors.move(target, open ? 'open' : 'closed', action)
  return { ok: true, detail: { door: open ? 'open' : 'closed' } }
}

function restock({ chronicle }: World, wanted: Extract<PersonAction, { action: 'restock' }>): ActionResult {
  const { shelf, row } = wanted
  const cabinet = /^cabinet-(\d)$/.exec(wanted.target)?.[1]
  const state = chronicle.state.rows.get(locationKey({ cabinet: Number(cabinet), shelf, row }))
  if (!state) return refuse(`there is no shelf ${shelf}, row ${row} in ${wanted.target}`)
  const free = state.depth - state.units
  if (wanted.units > free) return refuse(`only ${free} more units fit into that row`)
  chronicle.happened({
    device: wanted.target,
    action: 'restock',
    detail: { shelf, row, units: wanted.units, product_id: wanted.product_id ?? null, by: 'hand' },
  })
  return { ok: true, detail: { units: state.units } }
}
