import type { Location } from '../../protocol/model/location.ts'
import type { SimulatedHub } from '../../simulator/simulated-hub.ts'
import type { WorldEvidence } from './evidence.ts'

/**
 * The state of a hub's room, as the simulator reports it. `shelves`: the units on the shelves at the start.
 */
export const collectRoom = (
  { rows, bins, doors }: Pick<ReturnType<SimulatedHub['state']>, 'rows' | 'bins' | 'doors'>,
  shelves: readonly (Location & { units: number })[],
): Pick<WorldEvidence, 'shelves' | 'moving' | 'unlocked'> => ({
  shelves: shelves.map(({ cabinet, shelf, row, units }) => ({
    location: `${cabinet}-${shelf}-${row}`,
    initial: units,
    restocked: 0,
    now: rows.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)!.units,
  })),
  moving: bins.filter(({ door, lift }) => door === 'moving' || lift === 'moving').map(({ bin }) => bin),
  unlocked: doors.filter(({ locked }) => !locked).map(({ door }) => door),
})
