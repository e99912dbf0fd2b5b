import { expect, test } from 'vitest'
import { goesInClear, isLoopback, refusedExposures } from '../../../protocol/model/exposure.ts'

test.each([
  ['127.0.0.1', true],
  ['127.8.0.9', true],
  ['localhost', true],
  ['::1', true],
  ['[::1]', true],
  ['::ffff:127.0.0.1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['192.168.1.4', false],
  ['127.0.0.1.example', false],
  ['hub.local', false],
])('the host %s is a loopback address: %s', (host, isOurs) => {
  expect(isLoopback(host)).toBe(isOurs)
})

test.each([
  ['mqtt://broker.example', true],
  ['mqtt://127.0.0.1:18830', false],
  ['mqtts://broker.example', false],
  ['http://[::1]:80', false],
  ['http://10.0.0.1', true],
  ['https://id.example', false],
])('the connection to %s is unencrypted on a network: %s', (url, isPlain) => {
  expect(goesInClear(url)).toBe(isPlain)
})

test('an insecure exposure is refused unless ALLOW_INSECURE names it', () => {
  const exposures = [
    { name: 'a', problems: ['HOST: bad', false] },
    { name: 'b', problems: [false] },
  ] as const
  expect(refusedExposures(exposures)).toEqual(['HOST: bad; ALLOW_INSECURE=a allows it'])
  expect(refusedExposures(exposures, ['b'])).toHaveLength(1)
  expect(refusedExposures(exposures, ['a'])).toEqual([])
})
