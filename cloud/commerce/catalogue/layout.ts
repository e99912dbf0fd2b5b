import {
  fridgeDoor,
  fridgeSides,
  MAIN_DOOR,
  type HardwareDescription,
} from '../../../protocol/model/hardware.ts'
import type { NamedProduct } from '../../../protocol/mqtt/cloud-entries.ts'
import type { Location } from '../../../protocol/model/location.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'

interface ShelfLayout {
  shelf_number: number
  total_rows: number
}
/** By cabinet number (O §2). */
type HubLayout = Record<string, { shelves: ShelfLayout[] }>

export async function readLayout(q: Queries, hubId: number): Promise<HubLayout> {
  const rows = await q
    .selectFrom('hub_shelves')
    .select(['cabinet', 'shelf', 'total_rows'])
    .where('hub_id', '=', hubId)
    .orderBy('cabinet')
    .orderBy('shelf')
    .execute()
  const layout: HubLayout = {}
  for (const { cabinet, shelf, total_rows } of rows)
    (layout[String(cabinet)] ??= { shelves: [] }).shelves.push({ shelf_number: shelf, total_rows })
  return layout
}

/** The part of a location that the hub does not have: its cabinet, or else the shelf, or else the row. */
export async function missingPart(
  q: Queries,
  hubId: number,
  { cabinet, shelf, row }: Location,
): Promise<keyof Location | undefined> {
  const shelves = (await readLayout(q, hubId))[String(cabinet)]?.shelves
  if (!shelves) return 'cabinet'
  const rows = shelves.find(({ shelf_number }) => shelf_number === shelf)?.total_rows
  if (rows === undefined) return 'shelf'
  return row > rows ? 'row' : undefined
}

/** Every row of a hub with its capacity, in the order of their locations. */
export async function readRows(q: Queries, hubId: number): Promise<(Location & { capacity: number })[]> {
  const shelves = await q
    .selectFrom('hub_shelves')
    .select(['cabinet', 'shelf', 'total_rows', 'depth'])
    .where('hub_id', '=', hubId)
    .orderBy('cabinet')
    .orderBy('shelf')
    .execute()
  return shelves.flatMap(({ cabinet, shelf, total_rows, depth }) =>
    Array.from({ length: total_rows }, (_, index) => ({ cabinet, shelf, row: index + 1, capacity: depth })),
  )
}

interface FridgeLayout {
  fridge: number
  left: number
  middle: number
  right: number
}

/** The fridges of a hub, and the cabinets behind their doors. */
export async function readFridges(q: Queries, hubId: number): Promise<FridgeLayout[]> {
  const rows = await q
    .selectFrom('hub_fridges')
    .select(['fridge', 'left_cabinet', 'middle_cabinet', 'right_cabinet'])
    .where('hub_id', '=', hubId)
    .orderBy('fridge')
    .execute()
  return rows.map(({ fridge, left_cabinet, middle_cabinet, right_cabinet }) => ({
    fridge,
    left: left_cabinet,
    middle: middle_cabinet,
    right: right_cabinet,
  }))
}

/** The doors of a hub's layout. */
export const doorsOf = (fridges: readonly FridgeLayout[]): string[] => [
  MAIN_DOOR,
  ...fridges.flatMap(({ fridge }) => fridgeSides.map((side) => fridgeDoor(fridge, side))),
]

/** Shelves and fridges in the form of the layout's tables. */
export interface Built {
  shelves: readonly { cabinet: number; shelf: number; total_rows: number; depth: number }[]
  fridges: readonly FridgeLayout[]
  bins: readonly { bin: number; capacity: number }[]
}

/** The layout of a hub's hardware. */
export const builtOf = ({
  controllers,
  fridgeDoors,
}: Pick<HardwareDescription, 'controllers' | 'fridgeDoors'>): Built => ({
  shelves: controllers
    .flatMap(({ devices }) => devices)
    .flatMap((device) =>
      device.kind === 'cabinet'
        ? device.shelves.map(({ shelf, rows, depth }) => ({
            cabinet: device.number,
            shelf,
            total_rows: rows,
            depth,
          }))
        : [],
    ),
  fridges: fridgeDoors,
  bins: controllers
    .flatMap(({ devices }) => devices)
    .flatMap((device) => (device.kind === 'bin' ? [{ bin: device.number, capacity: device.capacity }] : [])),
})

/** Replaces the layout of a hub. */
export async function writeLayout(tx: Tx, hubId: number, { shelves, fridges, bins }: Built): Promise<void> {
  await writeBins(tx, hubId, bins)
  await tx.q.deleteFrom('hub_shelves').where('hub_id', '=', hubId).execute()
  await tx.q.deleteFrom('hub_fridges').where('hub_id', '=', hubId).execute()
  if (shelves.length > 0)
    await tx.q
      .insertInto('hub_shelves')
      .values(shelves.map((shelf) => ({ hub_id: hubId, ...shelf })))
      .execute()
  if (fridges.length > 0)
    await tx.q
      .insertInto('hub_fridges')
      .values(
        fridges.map(({ fridge, left, middle, right }) => ({
          hub_id: hubId,
          fridge,
          left_cabinet: left,
          middle_cabinet: middle,
          right_cabinet: right,
        })),
      )
      .execute()
}

/** A new bin is offline until its hub reports its state. */
async function writeBins(tx: Tx, hubId: number, bins: Built['bins']): Promise<void> {
  let gone = tx.q.deleteFrom('hub_bins').where('hub_id', '=', hubId)
  if (bins.length > 0)
    gone = gone.where(
      'bin',
      'not in',
      bins.map(({ bin }) => bin),
    )
  await gone.execute()
  for (const { bin, capacity } of bins)
    await tx.q
      .insertInto('hub_bins')
      .values({ hub_id: hubId, bin, capacity, state: 'offline', order_uuid: null, fault: null, since: 0 })
      .onConflict((conflict) => conflict.columns(['hub_id', 'bin']).doUpdateSet({ capacity }))
      .execute()
}

/** The names of the products in a hub, for people at the hub. */
export const namedProducts = (q: Queries, hubId: number): Promise<NamedProduct[]> =>
  q
    .selectFrom('products')
    .select(['id as product_id', 'name', 'upc'])
    .where('hub_id', '=', hubId)
    .where('id', 'in', (facings) =>
      facings.selectFrom('facings').select('product_id').where('hub_id', '=', hubId),
    )
    .orderBy('id')
    .execute()
