import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import type { Chance } from '../../simulation/chance.ts'
import { operationOf, unitsFallen } from '../../invariants/motion.ts'
import type { Client } from './client.ts'
import type { Room } from './room.ts'
import type { Tally } from './tally.ts'

export interface StaffWorld {
  client: Client
  room: Room
  clock: Clock
  chance: Chance
  tally: Tally
  hubId: number
  apiKey: string
  isOpen: () => boolean
}

const COMMANDS = ['open_bin', 'close_bin', 'raise_bin', 'lower_bin'] as const

/** A person of the owner who operates controls at random. */
export async function operateAtRandom({
  client,
  clock,
  chance,
  hubId,
  apiKey,
  isOpen,
}: StaffWorld): Promise<void> {
  while (isOpen()) {
    await sleep(clock, chance.between(2000, 6000))
    const name = chance.pick(COMMANDS)
    const path = `/api/v1/owners/controls/${name}?bin=${chance.between(1, 4)}&hub=${hubId}`
    await client.once({ name, method: 'POST', path, apiKey })
  }
}

/** States of an order that still needs its bins, or that a customer will collect. */
const ALIVE = ['preparing', 'ready', 'collecting']

/** A person at the hub who empties abandoned bins while customers buy. */
export async function emptyAbandonedBins(world: StaffWorld): Promise<void> {
  const { room, clock, chance, tally, isOpen } = world
  while (isOpen()) {
    await sleep(clock, chance.between(3000, 6000))
    const { orders } = await room.hub()
    const wanted = new Set(orders.filter(({ phase }) => ALIVE.includes(phase)).flatMap(({ bins }) => bins))
    for (const { bin, units } of (await room.state()).bins)
      if (units > 0 && !wanted.has(binNumber(bin))) {
        await emptyBin(world, bin)
        tally.hit('also bins emptied by staff')
      }
  }
}

async function emptyBin({ room, clock }: Pick<StaffWorld, 'room' | 'clock'>, bin: string): Promise<void> {
  await room.atHub(`/bins/${binNumber(bin)}/open`)
  await sleep(clock, 100)
  await room.act({ action: 'take_items', target: bin })
  await sleep(clock, 100)
  await room.atHub(`/bins/${binNumber(bin)}/close`)
}

const binNumber = (bin: string): number => Number(bin.slice('bin-'.length))

/** After the faults: empties and closes every bin. Returns false if that is impossible. */
export async function emptyAllBins(world: Pick<StaffWorld, 'room' | 'clock'>): Promise<boolean> {
  for (let round = 0; round < 20; round++) {
    const left = (await world.room.state()).bins.filter(({ units, door }) => units > 0 || door !== 'closed')
    if (left.length === 0) return true
    for (const { bin } of left) await emptyBin(world, bin)
    await sleep(world.clock, 500)
  }
  return false
}

/** Counts the rows with unconfirmed units, and resolves unknown operations by the simulator's own log. */
export async function resolveUnconfirmed({ room, tally }: Pick<StaffWorld, 'room' | 'tally'>): Promise<void> {
  const { stock } = await room.hub()
  const { rows } = await room.state()
  for (const { location, blocked } of stock) {
    const units = rows.find((row) => locationKey(row) === locationKey(location))?.units
    if (!blocked || units === undefined) continue
    tally.hit('also rows counted')
    await room.atHub('/stock/count', { location, units })
  }
  const acts = (await room.actuations()).filter((act) => act.action !== 'dispense' || unitsFallen(act) > 0)
  const happened = new Set(acts.map(operationOf))
  for (const { operation_id } of (await room.hub()).unknown_operations) {
    tally.hit('also operations settled')
    await room.atHub(`/operations/${operation_id}/settle`, { happened: happened.has(operation_id) })
  }
}
