import { countStock } from '../../cloud/commerce/catalogue/shelf-stock.ts'
import { type Configuration, configure, withNumber } from '../../cloud/operations/controls/configuration.ts'
import { settleFromAfar } from '../../cloud/operations/controls/unknown-operations.ts'
import { ApiError } from '../../cloud/platform/api-error.ts'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import { fridgeSides } from '../../protocol/model/hardware.ts'
import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { facingsOf } from './hardware.ts'
import type { Scheduler } from './scheduler.ts'
import type { Site } from './stage.ts'

export interface TechnicianWorld extends Site {
  /** A running process of the cloud. */
  services(): CommerceServices | undefined
  scheduler: Scheduler
  chance: Chance
  coverage: Coverage
  sleep(ms: number): Promise<void>
  isStormy(): boolean
  /** Whether messages are slow at present. */
  isLineSlow(): boolean
}

/** A person who operates controls at random during the storm: commands from the cloud, doors at the hub. */
export async function operateAtRandom(world: TechnicianWorld): Promise<void> {
  const { chance, hub, coverage } = world
  while (world.isStormy()) {
    // A person without a visible result presses the button again.
    const isImpatient = world.isLineSlow()
    await world.sleep(chance.between(500, isImpatient ? 2500 : 25_000))
    takeOverBoards(world)
    const draw = chance.fraction()
    if (draw < 0.15) {
      await reconfigure(world, chance.pick(CHANGES))
      // If the hub were closed for long, nothing would happen.
      if (chance.happens(0.8)) await world.sleep(chance.between(500, 12_000))
      await reconfigure(world, () => SERVING)
    } else if (draw < 0.28) {
      const outcome = hub.hub?.core.unlockDoor(
        chance.pick(['main', 'fridge_1_left']),
        chance.between(1000, 20_000),
      )
      coverage.hit(`technician unlocks ${outcome?.ok}`)
    } else {
      const answered = command(world, chance.pick(COMMANDS)(chance))
      if (!isImpatient) await answered
    }
  }
}

/** Boards of another hub were installed on purpose; a person in front of them sees where the cables lead. */
function takeOverBoards({ room, hub, coverage }: TechnicianWorld): void {
  for (const controller of hub.hub?.core.foreignControllers() ?? [])
    if (!room.isCrossed(controller))
      coverage.hit(`technician takes over ${hub.hub?.core.takeOverController(controller).ok}`)
}

const COMMANDS: readonly ((chance: Chance) => CommandBody)[] = [
  ...(['open_bin', 'close_bin', 'raise_bin', 'lower_bin', 'get_bin_status', 'reconnect_bin'] as const).map(
    (name) => (chance: Chance) => ({ name, bin: chance.between(1, 2) }),
  ),
  (chance) => ({ name: 'cycle_bin', bin: chance.between(1, 2), cycles: chance.between(1, 4) }),
  (chance) => ({ name: 'open_fridge', fridge: 1, side: chance.pick(fridgeSides) }),
  () => ({ name: 'close_fridge', fridge: 1 }),
  () => ({ name: 'reconnect_fridge', fridge: 1 }),
  () => ({ name: 'open_main_door' }),
]

const SERVING: Configuration = { acceptingOrders: true, disabledBins: [], disabledFridges: [] }

const CHANGES: readonly ((before: Configuration) => Configuration)[] = [
  (before) => ({ ...before, acceptingOrders: !before.acceptingOrders }),
  (before) => ({ ...before, disabledFridges: before.disabledFridges.length > 0 ? [] : [1] }),
  ...[1, 2].map((bin) => (before: Configuration) => ({
    ...before,
    disabledBins: withNumber(before.disabledBins, bin, !before.disabledBins.includes(bin)),
  })),
]

/** Calls the cloud with a time-out: the cloud or its process may die during the call. */
async function ask(
  world: TechnicianWorld,
  name: string,
  work: (cloud: CommerceServices) => Promise<string>,
): Promise<string> {
  const services = world.services()
  if (!services) return 'no cloud'
  const answer = work(services).catch((error: unknown) => {
    world.scheduler.report(error, NOBODY)
    return 'silence'
  })
  const outcome = await Promise.race([answer, world.sleep(60_000).then(() => 'silence')])
  world.coverage.hit(`${name} ${outcome}`)
  return outcome
}

const command = (world: TechnicianWorld, body: CommandBody): Promise<string> =>
  ask(world, `command ${body.name}`, async ({ commands }) => {
    const { kind } = await commands.send({ hubId: world.hubId, body, actor: 'technician' })
    return kind
  })

const reconfigure = (
  world: TechnicianWorld,
  change: (before: Configuration) => Configuration,
): Promise<string> =>
  ask(world, 'technician configures', async ({ context }) => {
    const { applied } = await configure(context, {
      hubId: world.hubId,
      actor: 'technician',
      action: 'controls.configure',
      object: 'hub',
      change,
      isShown: () => true,
    })
    return applied ? 'applied' : 'accepted'
  })

/** Counts a product with one facing, through the cloud. */
const countFromAfar = (world: TechnicianWorld, productId: number, quantity: number): Promise<string> =>
  ask(world, 'owner counts', async ({ context }) => {
    await context.db.transact((tx) =>
      countStock(tx, context, { hubId: world.hubId, productId, location: null, quantity }),
    )
    return 'ok'
  })

/** Reports of crashes belong to their own lives; any other error is a defect. */
const NOBODY = { name: 'technician', alive: true, onCrash() {} }

/** After the storm a person empties the bins, closes the doors, and counts rows with unconfirmed units. */
export async function putInOrder(world: TechnicianWorld): Promise<void> {
  const { room, hub, chance } = world
  await reconfigure(world, () => SERVING)
  takeOverBoards(world)
  await world.sleep(5000)
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
  const facings = facingsOf(world.hubId)
  for (const facing of facings) {
    const { cabinet, shelf, row } = facing
    const location = { cabinet, shelf, row }
    if (!doubtful.has(key(location))) continue
    const truth = room.hub.state().rows.find((one) => key(one) === key(location))!
    const isAlone = facings.filter(({ product_id }) => product_id === facing.product_id).length === 1
    if (isAlone && chance.happens(0.5)) await countFromAfar(world, facing.product_id, truth.units)
    else {
      const outcome = hub.hub?.core.count(location, truth.units)
      world.coverage.hit(`technician counts ${outcome?.ok}`)
    }
  }
  for (const { fridge_number, shutoff } of hub.hub?.core.health().fridges ?? [])
    if (shutoff) {
      world.coverage.hit(`technician confirms ${hub.hub?.core.confirmFridge(fridge_number).ok}`)
      room.cold.trust(world.scheduler.time)
    }
  await world.sleep(20_000)
  for (const { operation_id } of hub.hub?.core.unknownOperations() ?? []) {
    const happened = room.hub.actuations().some((act) => act.operation_id === operation_id)
    hub.hub?.core.settle(operation_id, happened)
    world.coverage.hit('technician settles')
  }
  await settleForgotten(world)
}

/** Fills every row, and enters it at the hub. */
export async function refill(world: TechnicianWorld): Promise<void> {
  const { room, hub, hubId } = world
  for (const { cabinet, shelf, row, product_id } of facingsOf(hubId)) {
    const location = { cabinet, shelf, row }
    const { depth, units } = room.hub.state().rows.find((one) => key(one) === key(location))!
    const entered = hub.hub?.core.restock(location, depth - units)
    if (depth === units || entered?.ok !== true) continue
    const target = `cabinet-${cabinet}`
    room.hub.act({ action: 'restock', target, shelf, row, units: depth - units, product_id })
    await world.sleep(2000)
  }
}

/**
 * Alarms about operations that the hub lost with its journal: the row is counted, and the operation resolved
 * manually.
 */
async function settleForgotten(world: TechnicianWorld): Promise<void> {
  const { hubId, hub, room } = world
  const core = hub.hub?.core
  const doubts = await world
    .services()
    ?.context.db.kysely.selectFrom('unknown_operations')
    .selectAll()
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .execute()
  for (const doubt of doubts ?? []) {
    const { operation_id, cabinet, shelf, row } = doubt
    if (core?.unknownOperations().some((one) => one.operation_id === operation_id)) continue
    if (cabinet !== null && shelf !== null && row !== null) {
      const location = { cabinet, shelf, row }
      core?.count(location, room.hub.state().rows.find((one) => key(one) === key(location))!.units)
    }
    const happened = room.hub.actuations().some((act) => act.operation_id === operation_id)
    const by = { actor: 'technician', requestName: undefined }
    await ask(world, 'technician settles from afar', (services) =>
      settleFromAfar(services, doubt, happened, by).then(
        () => 'ok',
        (error: unknown) => {
          if (error instanceof ApiError) return error.code
          throw error
        },
      ),
    )
  }
}

const key = ({ cabinet, shelf, row }: { cabinet: number; shelf: number; row: number }): string =>
  `${cabinet}-${shelf}-${row}`
