import type { CommandBody } from '../../protocol/mqtt/command.ts'
import type { Chance } from './chance.ts'
import type { CloudNode } from './cloud-node.ts'
import type { Coverage } from './coverage.ts'
import { stockedFacings } from './hardware.ts'
import type { HubNode } from './hub-node.ts'
import type { Room } from './room.ts'
import type { Scheduler } from './scheduler.ts'

export interface TechnicianWorld {
  room: Room
  hub: HubNode
  cloud: CloudNode
  scheduler: Scheduler
  chance: Chance
  coverage: Coverage
  sleep(ms: number): Promise<void>
  isStormy(): boolean
}

const HUB = 1

/** Somebody who plays with the controls while the storm goes on: commands from afar, doors from beside. */
export async function meddle(world: TechnicianWorld): Promise<void> {
  const { chance, hub, coverage } = world
  while (world.isStormy()) {
    await world.sleep(chance.between(1000, 25_000))
    if (chance.happens(0.15)) {
      const outcome = hub.hub?.core.unlockDoor(
        chance.pick(['main', 'fridge_1_left']),
        chance.between(1000, 20_000),
      )
      coverage.hit(`technician unlocks ${outcome?.ok}`)
    } else {
      const name = chance.pick(['open_bin', 'close_bin', 'raise_bin', 'lower_bin', 'get_bin_status'] as const)
      await command(world, { name, bin: chance.between(1, 2) })
    }
  }
}

async function command(world: TechnicianWorld, body: CommandBody): Promise<string> {
  const services = world.cloud.services
  if (!services) return 'no cloud'
  const answer = services.commands.send({ hubId: HUB, body, actor: 'technician' }).then(
    ({ kind }) => kind as string,
    (error: unknown) => {
      world.scheduler.report(error, NOBODY)
      return 'silence'
    },
  )
  const outcome = await Promise.race([answer, world.sleep(60_000).then(() => 'silence')])
  world.coverage.hit(`command ${body.name} ${outcome}`)
  return outcome
}

/** Reports of crashes are for their own lives; any other error is a defect. */
const NOBODY = { name: 'technician', alive: true, onCrash() {} }

/** When all is calm again, somebody comes: empties the bins, closes the doors, counts where the hub is in doubt. */
export async function putInOrder(world: TechnicianWorld): Promise<void> {
  const { room, hub } = world
  for (const { door, open } of room.hub.state().doors)
    if (open) room.hub.act({ action: 'close_door', target: door })
  for (let round = 0; round < 6; round++) {
    const left = room.hub.state().bins.filter(({ units, door }) => units > 0 || door !== 'closed')
    if (left.length === 0) break
    for (const { bin, units } of left) {
      const number = Number(bin.slice('bin-'.length))
      if (units > 0) {
        await command(world, { name: 'open_bin', bin: number })
        await world.sleep(1000)
        room.hub.act({ action: 'take_items', target: bin })
      }
      await command(world, { name: 'close_bin', bin: number })
      await world.sleep(10_000)
    }
  }
  const doubtful = new Set(
    hub.hub?.core
      .stock()
      .filter(({ blocked }) => blocked)
      .map(({ location }) => key(location)),
  )
  for (const facing of stockedFacings) {
    const { cabinet, shelf, row } = facing
    const location = { cabinet, shelf, row }
    if (!doubtful.has(key(location))) continue
    const truth = room.hub.state().rows.find((one) => key(one) === key(location))!
    const outcome = hub.hub?.core.count(location, truth.units)
    world.coverage.hit(`technician counts ${outcome?.ok}`)
  }
  for (const { operation_id } of hub.hub?.core.unknownOperations() ?? []) {
    const happened = room.hub.actuations().some((act) => act.operation_id === operation_id)
    hub.hub?.core.settle(operation_id, happened)
    world.coverage.hit('technician settles')
  }
}

const key = ({ cabinet, shelf, row }: { cabinet: number; shelf: number; row: number }): string =>
  `${cabinet}-${shelf}-${row}`
