import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Tx } from '../store/database.ts'
import { ROOM } from './hub-data.ts'
import { insertMany } from './insert-many.ts'

type Built = Pick<HardwareDescription, 'controllers' | 'fridgeDoors'>

/** Writes how a hub is built: as its hardware says, or with as many shelves and rows as the demo's planogram needs. */
export async function insertLayout(tx: Tx, hubId: number, hardware: Built | undefined): Promise<void> {
  await insertMany(
    tx,
    'hub_shelves',
    (hardware ? shelvesOf(hardware) : plainShelves()).map((shelf) => ({ hub_id: hubId, ...shelf })),
  )
  const fridges = hardware?.fridgeDoors ?? [{ fridge: 1, left: 1, middle: 2, right: 3 }]
  await insertMany(
    tx,
    'hub_fridges',
    fridges.map(({ fridge, left, middle, right }) => ({
      hub_id: hubId,
      fridge,
      left_cabinet: left,
      middle_cabinet: middle,
      right_cabinet: right,
    })),
  )
}

const shelvesOf = ({ controllers }: Built) =>
  controllers
    .flatMap(({ devices }) => devices)
    .flatMap((device) =>
      device.kind === 'cabinet'
        ? device.shelves.map(({ shelf, rows }) => ({ cabinet: device.number, shelf, total_rows: rows }))
        : [],
    )

const plainShelves = () =>
  Array.from({ length: ROOM.cabinets * ROOM.shelves }, (_, index) => ({
    cabinet: 1 + Math.floor(index / ROOM.shelves),
    shelf: 1 + (index % ROOM.shelves),
    total_rows: ROOM.rows,
  }))
