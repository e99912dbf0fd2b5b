import { expect, test } from 'vitest'
import { dropChance, networkOf } from '../../../edge/management/strangers.ts'

test('of a crowd nobody is turned away at first, some then, and all at last', () => {
  const crowd = { start: 10, full: 110 }
  expect([0, 9, 10, 60, 109, 110, 500].map((present) => dropChance(present, crowd))).toEqual([
    0,
    0,
    0.3,
    expect.closeTo(0.65, 3),
    expect.closeTo(0.993, 3),
    1,
    1,
  ])
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::1:2:3:6', '2001:db8:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s shares its places with all of %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
