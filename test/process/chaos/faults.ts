import { sleep, type Cancel, type Clock } from '../../../protocol/model/runtime.ts'
import type { Chance } from '../../simulation/chance.ts'
import type { Copies, Copy } from './copies.ts'
import type { Plant } from './plant.ts'
import type { ProgramName } from './plant-settings.ts'
import type { Tally } from './tally.ts'

export interface FaultsWorld {
  plant: Plant
  chance: Chance
  clock: Clock
  tally: Tally
  /** Copies of the clouds' database, if it is on PostgreSQL. */
  copies: Copies | undefined
  /** Resolves when the next request that may change something is sent, or after a moment. */
  nextRequest: () => Promise<void>
}

/** Faults of the installation other than kills, with their relative frequency and a description. */
export const faultKinds = {
  restore: { weight: 5, text: 'the database is replaced by a copy that is seconds to minutes old' },
  failover: { weight: 2, text: 'the database loses its last seconds while the processes run' },
  connections: { weight: 3, text: 'every connection to the database ends' },
  clock: {
    weight: 4,
    text: 'clocks of clouds or hub are wrong by up to two hours (the hub: in 1970), and are corrected',
  },
} as const satisfies Record<string, { weight: number; text: string }>

export type FaultKind = keyof typeof faultKinds
export const allFaults = Object.keys(faultKinds) as FaultKind[]

/** Whether a fault needs a copy of a database on PostgreSQL. */
const needsCopies = (kind: FaultKind): boolean => kind !== 'clock'

const MINUTE = 60_000
const KEPT_COPIES = 3

export interface Faults {
  /** Whether any fault can strike. */
  readonly canStrike: boolean
  /** Called before the programs run: clocks may be wrong from the first start. */
  startWithFaults(): void
  /** Runs one fault to its end. Only clocks are corrected later. */
  strike(): Promise<void>
  /** Corrects all clocks. */
  end(): void
}

/** The faults in `kinds` that can strike this installation, chosen at random. */
export function createFaults(world: FaultsWorld, kinds: readonly FaultKind[]): Faults {
  const { plant, chance, clock, tally, copies } = world
  const possible = kinds.filter((kind) => copies || !needsCopies(kind))
  const clouds = plant.programs.filter((name) => name.startsWith('cloud-'))
  const wrong = new Map<string, Cancel>()
  let kept: Copy[] = []

  const strikes: Record<FaultKind, () => Promise<void>> = {
    async restore() {
      if (kept.length === 0 || chance.happens(0.4)) return storeCopy(copies!)
      const copy = chance.pick(kept)
      tally.hit('fault restore')
      tally.hit('also seconds lost by restores', Math.round((clock.monotonic() - copy.madeAt) / 1000))
      await Promise.all(clouds.map((name) => plant.halt(name)))
      await copies!.putBack(copy)
      for (const name of clouds) plant.start(name)
    },
    async failover() {
      tally.hit('fault failover')
      const copy = await copies!.copy()
      await world.nextRequest()
      await sleep(clock, chance.between(100, 3000))
      await copies!.putBack(copy)
      await copies!.drop(copy)
    },
    async connections() {
      const byServer = chance.happens(0.6)
      tally.hit(`fault connections ${byServer ? 'ended by the server' : 'cut'}`)
      await world.nextRequest()
      await sleep(clock, chance.between(0, 300))
      if (byServer) await copies!.endConnections()
      else plant.databaseLine!.cut()
    },
    clock() {
      const [who, names] = chance.pick([
        ['the hub', ['hub']],
        ['all clouds', clouds],
        ['one cloud', [chance.pick(clouds)]],
      ] as const)
      // The clock changes at the next start, or while the program runs.
      const isStart = chance.happens(0.5)
      setWrong(who, names)
      if (isStart) for (const name of names) if (plant.kill(name)) tally.hit(`kill ${name}`)
      return Promise.resolve()
    },
  }

  async function storeCopy(from: Copies): Promise<void> {
    tally.hit('fault copy for a restore')
    kept.push(await from.copy())
    if (kept.length <= KEPT_COPIES) return
    const victim = chance.pick(kept)
    kept = kept.filter((copy) => copy !== victim)
    await from.drop(victim)
  }

  function setWrong(who: string, names: readonly ProgramName[]): void {
    const offsetMs = chance.between(-120, 120) * MINUTE + chance.between(0, MINUTE)
    const isEpoch = who === 'the hub' && chance.happens(0.4)
    tally.hit(`fault clock of ${who} ${isEpoch ? 'in 1970' : offsetMs < 0 ? 'behind' : 'ahead'}`)
    for (const name of names) plant.skew(name, isEpoch ? -clock.now() : offsetMs)
    wrong.get(who)?.()
    wrong.set(
      who,
      clock.after(chance.between(3000, 25_000), () => correctClock(who, names)),
    )
  }

  function correctClock(who: string, names: readonly ProgramName[]): void {
    wrong.delete(who)
    for (const name of names) plant.skew(name, 0)
  }

  return {
    canStrike: possible.length > 0,
    startWithFaults() {
      if (!possible.includes('clock')) return
      if (chance.happens(0.5)) setWrong('the hub', ['hub'])
      if (chance.happens(0.3)) setWrong('all clouds', clouds)
    },
    async strike() {
      const total = possible.reduce((sum, kind) => sum + faultKinds[kind].weight, 0)
      let draw = chance.fraction() * total
      await strikes[possible.find((one) => (draw -= faultKinds[one].weight) < 0)!]()
    },
    end() {
      for (const cancel of wrong.values()) cancel()
      wrong.clear()
      for (const name of plant.programs) plant.skew(name, 0)
    },
  }
}
