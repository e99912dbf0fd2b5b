import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { builtOf, writeLayout, type Built } from '../commerce/catalogue/layout.ts'
import type { Tx } from '../platform/store/database.ts'
import { ROOM } from './hub-data.ts'

/** Writes how a hub is built: as its hardware says, or with as many shelves and rows as the demo's planogram needs. */
export const insertLayout = (
  tx: Tx,
  hubId: number,
  hardware: Pick<HardwareDescription, 'controllers' | 'fridgeDoors'> | undefined,
): Promise<void> => writeLayout(tx, hubId, hardware ? builtOf(hardware) : plain)

const plain: Built = {
  shelves: Array.from({ length: ROOM.cabinets * ROOM.shelves }, (_, index) => ({
    cabinet: 1 + Math.floor(index / ROOM.shelves),
    shelf: 1 + (index % ROOM.shelves),
    total_rows: ROOM.rows,
  })),
  fridges: [{ fridge: 1, left: 1, middle: 2, right: 3 }],
}
