import type { Chance } from './chance.ts'
import type { Fleet } from './fleet.ts'
import type { World } from './world.ts'

const BAD = ['crashes', 'never becomes ready', 'loses a controller'] as const

/** During a storm the hubs get releases, good and bad, and a board is stolen and replaced. */
export async function liveUnattended(world: World, fleet: Fleet, chance: Chance): Promise<void> {
  const { sites, mayLose, sleep, isStormy } = world
  const isBadFirst = chance.happens(0.5)
  await sleep(chance.between(10_000, 60_000))
  for (let release = 0; isStormy(); release += 1) {
    const isBad = release % 2 === (isBadFirst ? 0 : 1)
    await fleet.rollOut(isBad ? chance.pick(BAD) : 'healthy', chance.pick([['1', '100%'], ['1']]))
    await sleep(chance.between(60_000, 240_000))
    if (!isStormy() || !chance.happens(0.4)) continue
    const site = chance.pick(sites)
    if (site.hub.takenOut) continue
    await fleet.revoke(site)
    await sleep(chance.between(6000, 90_000))
    if (isStormy()) await fleet.replace(site, { losesJournal: mayLose === 'journal' })
  }
}
