import { expect, test } from 'vitest'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'

test('an unlisted host name is refused wherever it resolves to; addresses and localhost are allowed', () => {
  const isAllowed = hostCheck(['Hub1.local', ' hub1 '])
  for (const host of [
    '127.0.0.1:8082',
    '10.0.0.7',
    '[::1]:8081',
    'localhost:8082',
    'demo.localhost',
    undefined,
  ])
    expect([host, isAllowed(host)]).toEqual([host, true])
  for (const host of ['hub1.local:8081', 'HUB1']) expect([host, isAllowed(host)]).toEqual([host, true])
  for (const host of [
    'evil.example:8082',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'hub1.local.',
    'a b',
    '',
  ])
    expect([host, isAllowed(host)]).toEqual([host, false])
})
