import { faultKinds, faultTypes, type FaultType } from '../../simulator/faults/fault-types.ts'
import type { Chance } from './chance.ts'
import type { Site, Stage } from './stage.ts'

/** What befalls a hub, its board, and the room around it. */

const TARGETS: Record<string, readonly string[]> = {
  bin: ['bin-1', 'bin-2'],
  cabinet: ['cabinet-1', 'cabinet-2'],
  fridge: ['fridge-1'],
  door: ['main', 'fridge_1_left'],
  controller: ['bins', 'vending'],
  device: ['bin-1', 'cabinet-1'],
}

/** After these a controller does not know what it did. */
const FORGETS: readonly FaultType[] = ['memory_loss', 'used_board']

export function hardwareFault({ chance, coverage, mayLose }: Stage, { room }: Site): void {
  const type = chance.pick(faultTypes)
  const forgets = FORGETS.includes(type)
  if (forgets && mayLose !== 'controller memory') return
  const kind = faultKinds[type]
  coverage.hit(`fault hardware ${type}`)
  room.hub.faults.raise({
    type,
    target: chance.pick(TARGETS[chance.pick(kind.targets)]!),
    for_ms: type === 'brown_out' || forgets ? chance.between(300, 3000) : chance.between(2000, 40_000),
    ...(!('instant' in kind) && !('once' in kind) && { probability: chance.pick([0.2, 0.5, 1]) }),
  })
}

/** Whoever buys what stands in one cabinet is disappointed, for minutes. */
export function failingCabinet({ chance }: Stage, { room }: Site): void {
  room.hub.faults.raise({
    type: chance.pick(['jam', 'jam_without_motion', 'empty_turn', 'missed_drop']),
    target: chance.pick(TARGETS['cabinet']!),
    for_ms: chance.between(60_000, 400_000),
  })
}

/** The whole room goes dark: the board and the controllers at one instant. */
export function powerCut({ plan, chance }: Stage, { room, hub }: Site): void {
  hub.heldDown = true
  hub.kill('power cut')
  room.hub.power('off')
  plan(chance.between(500, 20_000), () => {
    room.hub.power('on')
    hub.heldDown = false
    hub.start()
  })
}

export function wrongClock(chance: Chance): number {
  const YEAR = 365 * 24 * 3600 * 1000
  return chance.pick([0, -56 * YEAR, -3_600_000, 45_000, 3_600_000, YEAR])
}

export function putHubClockRight(_: Stage, { hub }: Site): void {
  hub.shiftWall(0)
}

export function fullDisk({ plan, chance }: Stage, { hub }: Site): void {
  hub.fillDisk(true)
  plan(chance.between(1000, 30_000), () => hub.fillDisk(false))
}

/** Until somebody comes, or the storm ends. */
export function fullDiskForGood({ plan, chance }: Stage, { hub }: Site): void {
  hub.fillDisk(true)
  plan(chance.between(120_000, 600_000), () => hub.fillDisk(false))
}

export function restoreStore({ mayLose, coverage }: Stage, { hub }: Site): void {
  if (mayLose === 'journal' && hub.restore()) coverage.hit('fault store restored from a copy')
}

export function loseStore({ mayLose, coverage }: Stage, { hub }: Site): void {
  if (mayLose !== 'journal') return
  hub.loseStore()
  coverage.hit('fault store lost indeed')
}

/** Two cables change places: in one room, or between the two. */
export function crossLines({ sites, plan, chance }: Stage, { room }: Site): void {
  const other = sites.find((site) => site.room !== room)!.room
  const ends = chance.pick([
    [
      { room, path: 'bins' },
      { room, path: 'vending' },
    ],
    [
      { room, path: 'vending' },
      { room: other, path: 'vending' },
    ],
    [
      { room, path: 'bins' },
      { room: other, path: 'bins' },
    ],
  ])
  const [one, another] = [ends[0]!, ends[1]!]
  one.room.plug(one.path, another)
  another.room.plug(another.path, one)
  plan(chance.between(5000, 90_000), () => {
    for (const end of ends) end.room.plug(end.path)
  })
}
