import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../support/ports.ts'
import { demoPorts } from '../../simulator/demo/settings.ts'
import { Place, type Facing } from './notified/place.ts'

/**
 * Result of the first order if another row has the product. A unit that may have dropped is not dispensed
 * again from the other row.
 */
const firsts = [
  ['jam', 'had it'],
  ['missed_drop', 'was refunded'],
  ['empty_turn', 'had it'],
] as const

/** Each fault has its own place, because the tests mostly wait. */
const places = new Map(firsts.map(([type]) => [type, new Place()]))

/** Used rows by place; a retried test uses other rows. */
const used = new Map(firsts.map(([type]) => [type, new Set<number>()]))

beforeAll(async () => {
  const ports = await freePorts(places.size * demoPorts.length)
  const ownPorts = () => Object.fromEntries(demoPorts.map((name) => [name, String(ports.pop())]))
  await Promise.all([...places.values()].map((place) => place.open(ownPorts())))
}, 300_000)

afterAll(() => Promise.all([...places.values()].map((place) => place.close())))

test.concurrent.each(firsts)(
  'after a %s no customer is charged for a unit that cannot be dispensed, and the owner is notified of it and of its end',
  async (type, ofTwoRows) => {
    const place = places.get(type)!
    const all = await place.facings()
    const rowsOf = (product: number): Facing[] => all.filter(({ product_id }) => product_id === product)
    const products = [...new Set(all.map(({ product_id }) => product_id))].filter(
      (product) => !used.get(type)!.has(product),
    )
    const inFirst = (product: number): boolean => rowsOf(product)[0]!.cabinet === 1
    const alone = products.find((product) => inFirst(product) && rowsOf(product).length === 1)!
    const twice = products.find(
      (product) => inFirst(product) && rowsOf(product).length === 2 && rowsOf(product)[1]!.cabinet !== 1,
    )!
    expect([alone, twice], 'a try needs rows that no earlier try has used').not.toContain(undefined)
    used.get(type)!.add(alone).add(twice)
    const endFault = await place.fault(type, 'cabinet-1')
    // The orders run one after the other: a failed cabinet rests, and the hub asks another one first.
    expect([await place.buy(twice), await place.buy(alone)]).toEqual([ofTwoRows, 'was refunded'])
    await endFault()
    const failed = [rowsOf(alone)[0]!, rowsOf(twice)[0]!]
    const delays = await Promise.all(failed.map((facing) => place.ownerKnows(facing, 'alarm.raised')))
    await place.emptyBins()
    const later = await Promise.all([place.buy(alone), place.buy(alone), place.buy(twice)])
    expect([...later, await place.buy(twice)]).toEqual([
      'was not charged',
      'was not charged',
      'had it',
      'had it',
    ])
    for (const facing of failed) await place.count(facing)
    delays.push(...(await Promise.all(failed.map((facing) => place.ownerKnows(facing, 'alarm.cleared')))))
    expect(Math.max(...delays)).toBeLessThan(30_000)
    expect(await place.buy(alone)).toBe('had it')
    expect(place.wrong).toEqual([])
  },
  240_000,
)
