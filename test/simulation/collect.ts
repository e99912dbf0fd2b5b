import { collectCloud } from '../invariants/collect-cloud.ts'
import { collectHub } from '../invariants/collect-hub.ts'
import { collectRoom } from '../invariants/collect-room.ts'
import type { Act } from '../../simulator/physics/world-state.ts'
import type { Evidence } from '../invariants/evidence.ts'
import { facingsOf } from './hardware.ts'
import type { Site } from './stage.ts'
import type { World } from './world.ts'

/** Evidence for the invariants: one hub's room, its journal, and the cloud's books of it. */
export async function collect({ hubId, room, hub }: Site, { store, bank, watch }: World): Promise<Evidence> {
  hub.noteCommands()
  const motions = room.hub.actuations()
  const found = collectRoom(room.hub.state(), facingsOf(hubId))
  const shelves = found.shelves.map((shelf) => ({
    ...shelf,
    restocked: restockedAt(motions, shelf.location),
  }))
  return {
    world: {
      motions,
      ...found,
      shelves,
      refOfOperation: room.refOfOperation,
      doubleDropsRaised: true,
      unjournaled: room.unjournaled,
      hasty: room.hasty,
      overran: room.overran,
      reachable: room.doors.seen,
      soldUnproven: room.cold.unproven,
    },
    hub: collectHub(hub.journal),
    cloud: await collectCloud(store.reader.kysely, hubId, bank.db.kysely),
    staleCommands: hub.line.staleOnly(),
    commandOfOperation: hub.commandOfOperation,
    watched: watch.of(hubId),
    lost: store.lost,
  }
}

/** Units that technicians have put into a row. */
function restockedAt(motions: readonly Act[], location: string): number {
  let units = 0
  for (const { action, device, detail } of motions)
    if (
      action === 'restock' &&
      `${device.replace('cabinet-', '')}-${detail['shelf']}-${detail['row']}` === location
    )
      units += Number(detail['units'])
  return units
}
