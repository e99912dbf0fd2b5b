import { faultKinds, faultTypes, type FaultType } from '../../simulator/faults/fault-types.ts'
import type { FaultRequest } from '../../simulator/faults/faults.ts'
import type { Chance } from './chance.ts'
import type { HubNode } from './hub-node.ts'
import type { Site, Stage } from './stage.ts'

/** Faults of a hub, its board, and the room around it. */

const TARGETS: Record<string, readonly string[]> = {
  bin: ['bin-1', 'bin-2'],
  cabinet: ['cabinet-1', 'cabinet-2'],
  fridge: ['fridge-1'],
  door: ['main', 'fridge_1_left'],
  controller: ['bins', 'vending'],
  device: ['bin-1', 'cabinet-1'],
}

/** Faults of the hardware. Crossed cables are not among them: people cause and correct those. */
export const mishaps = faultTypes.filter((type) => !faultKinds[type].isWiring)

/** After these faults a controller does not know its operations. */
const FORGETS: readonly FaultType[] = ['memory_loss', 'used_board']

export function hardwareFault(stage: Stage, { room }: Site): void {
  const { chance, coverage, mayLose } = stage
  const type = chance.pick(mishaps)
  const forgets = FORGETS.includes(type)
  if (forgets && mayLose !== 'controller memory') return
  if (type === 'memory_loss' && mayBeTakenForNew(stage)) return
  const kind = faultKinds[type]
  coverage.hit(`fault hardware ${type}`)
  room.hub.faults.raise({
    type,
    target: chance.pick(TARGETS[chance.pick(kind.targets)]!),
    for_ms: type === 'brown_out' || forgets ? chance.between(300, 3000) : chance.between(2000, 40_000),
    ...(!('instant' in kind) && !('once' in kind) && { probability: chance.pick([0.2, 0.5, 1]) }),
  })
}

/** For minutes a cabinet fails all dispenses. */
export function failingCabinet({ chance }: Stage, { room }: Site): void {
  room.hub.faults.raise({
    type: chance.pick(['jam', 'jam_without_motion', 'empty_turn', 'missed_drop']),
    target: chance.pick(TARGETS['cabinet']!),
    for_ms: chance.between(60_000, 400_000),
  })
}

const PROBE_FAULTS = [
  { type: 'silent_port', target: 'cold' },
  { type: 'silent_port', target: 'cold' },
  { type: 'broken_probe', target: 'fridge-1' },
  { type: 'frozen_probe', target: 'fridge-1' },
  { type: 'probe_outliers', target: 'fridge-1', probability: 0.4 },
  { type: 'probe_outliers', target: 'fridge-1', probability: 0.4 },
] as const

/**
 * For minutes a probe is broken, frozen or wrong, or its board is silent; the fridge may be warm at the same
 * time.
 */
export function failingProbe({ chance }: Stage, { room }: Site): void {
  for (const fault of probeFaults(chance)) room.hub.faults.raise(fault)
}

/** A failing probe, after the hub has had proof of cold. */
export function probeThatWillFail({ plan, chance }: Stage, { room }: Site): void {
  const faults = probeFaults(chance)
  plan(60_000, () => faults.forEach((fault) => room.hub.faults.raise(fault)))
}

function probeFaults(chance: Chance): FaultRequest[] {
  const for_ms = chance.between(120_000, 480_000)
  const fault: FaultRequest = { ...chance.pick(PROBE_FAULTS), for_ms }
  return chance.happens(0.6) ? [fault, { type: 'warm_fridge', target: 'fridge-1', for_ms }] : [fault]
}

/** A contact flickers for a while. */
export function blinkingContact({ chance }: Stage, { room }: Site): void {
  const target = chance.pick(['bin-1', 'bin-2', 'main', 'fridge_1_left'])
  room.hub.faults.raise({ type: 'blinking_contact', target, for_ms: chance.between(1000, 60_000) })
}

/** The whole room loses power: the board and the controllers at one instant. */
export function powerCut({ plan, chance }: Stage, { room, hub }: Site): void {
  hub.heldDown = true
  hub.board?.powerOff()
  hub.kill('power cut')
  room.hub.power('off')
  plan(chance.between(500, 20_000), () => {
    room.hub.power('on')
    hub.heldDown = false
    hub.board?.boot()
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

/** The disk is full until a person comes, or the storm ends. */
export function fullDiskForGood({ plan, chance }: Stage, { hub }: Site): void {
  hub.fillDisk(true)
  plan(chance.between(120_000, 600_000), () => hub.fillDisk(false))
}

/**
 * The card fails for a while, from any commit on: its file system turns read-only, it reports errors, or
 * another process locks the journal.
 */
export function failingCard({ plan, chance, coverage }: Stage, { hub }: Site): void {
  const fault = chance.pick(['read_only', 'io_error', 'locked'] as const)
  coverage.hit(`fault card: ${fault}`)
  const mend = hub.failStorage(fault)
  const forMs = chance.happens(0.2) ? chance.between(120_000, 600_000) : chance.between(500, 60_000)
  plan(forMs, mend)
}

export function restoreStore({ mayLose, coverage }: Stage, { hub }: Site): void {
  if (mayLose === 'journal' && hub.restore()) coverage.hit('fault store restored from a copy')
}

export function loseStore({ mayLose, coverage }: Stage, { hub }: Site): void {
  if (mayLose !== 'journal') return
  hub.loseStore()
  coverage.hit('fault store lost indeed')
}

/**
 * A copy of a hub's card runs on another board. The board is on a bench without devices, or in the other
 * hub's room in place of that hub's board, before foreign controllers. Before its own or new controllers it
 * would be the hub, and the other board would have no valid history. It is switched off in the end.
 */
export function cloneCard(stage: Stage, { hubId, hub }: Site): void {
  const { plan, chance, impostors, coverage, isStormy } = stage
  const card = hub.card()
  if (card === undefined) return
  plan(chance.pick([0, 0, 60_000]), () => {
    if (!isStormy() || impostors.size > 0) return
    const isElsewhere = chance.happens(0.3) && !areLinesCrossed(stage)
    const beside = siteBeside(stage, hubId)
    const there = isElsewhere && hasMetItsBoards(beside) ? beside : undefined
    coverage.hit(`fault card cloned ${there ? 'into another room' : 'onto a bench'}`)
    if (there) there.hub.takenOut = true
    there?.hub.kill('taken out')
    const impostor = stage.openImpostor(hubId, card, there?.room ?? stage.openWorkshop(hubId))
    impostors.add(impostor)
    impostor.start()
    plan(chance.between(2000, 300_000), () => retire(impostor, stage))
  })
}

/** Switches the board off and discards its card; the board that it replaced is put back. */
export function retire(impostor: HubNode, { impostors, sites }: Stage): void {
  if (!impostors.delete(impostor)) return
  impostor.heldDown = true
  impostor.kill('switched off')
  for (const { hub } of sites) {
    if (!hub.takenOut) continue
    hub.takenOut = false
    hub.start()
  }
}

/**
 * Swaps two cables, in one room or between the two rooms. Not if neither hub has met its own board yet: new
 * boards in the other room are its own to a hub that is set up with them, until a technician tries them.
 */
export function crossLines(stage: Stage, { hubId, room }: Site): void {
  const { sites, plan, chance } = stage
  if (sites.some(({ hub }) => hub.takenOut)) return
  const other = siteBeside(stage, hubId).room
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
  if (one.room !== another.room && !sites.some(({ hub }) => hub.knowsBoard(one.path))) return
  one.room.plug(one.path, another)
  another.room.plug(another.path, one)
  plan(chance.between(5000, 90_000), () => {
    for (const end of ends) end.room.plug(end.path)
  })
}

const LINES = ['bins', 'vending'] as const

const hasMetItsBoards = ({ hub }: Site): boolean =>
  ['bins', 'vending', 'cold'].every((controller) => hub.knowsBoard(controller))

const crossedLines = ({ sites }: Stage): { hub: HubNode; path: string }[] =>
  sites.flatMap(({ hub, room }) =>
    LINES.filter((path) => room.isCrossed(path)).map((path) => ({ hub, path })),
  )

const areLinesCrossed = (stage: Stage): boolean => crossedLines(stage).length > 0

/**
 * Whether a line leads to a foreign board, and its hub has not met its own one. A board there that forgets
 * its owner would be new to that hub, which is set up with it (`crossLines`).
 */
const mayBeTakenForNew = (stage: Stage): boolean =>
  crossedLines(stage).some(({ hub, path }) => !hub.knowsBoard(path))

const siteBeside = ({ sites }: Stage, hubId: number): Site => sites.find((site) => site.hubId !== hubId)!
