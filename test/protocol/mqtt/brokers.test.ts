import { expect, test } from 'vitest'
import { anyBroker, BrokerUrls } from '../../../protocol/mqtt/brokers.ts'
import type { OpenTransport } from '../../../protocol/mqtt/transport.ts'

const handlers = { onConnect() {}, onDisconnect() {}, onMessage() {} }

/** The brokers of the first `connections` connections; `fraction` selects the first one. */
function openedAt(names: readonly string[], fraction: number, connections: number): string[] {
  const opened: string[] = []
  const at =
    (name: string): OpenTransport =>
    () => {
      opened.push(name)
      return { publish: () => Promise.resolve(true), close() {} }
    }
  const open = anyBroker(names.map(at), { fraction: () => fraction, bytes: (count) => new Uint8Array(count) })
  for (let n = 0; n < connections; n += 1) open({ subscribe: [] }, handlers)
  return opened
}

test('the first connection goes to a random broker of a cluster, each further one to the next broker', () => {
  expect(openedAt(['a', 'b', 'c'], 0, 4)).toEqual(['a', 'b', 'c', 'a'])
  expect(openedAt(['a', 'b', 'c'], 0.99, 3)).toEqual(['c', 'a', 'b'])
  expect(openedAt(['a'], 0.5, 2)).toEqual(['a', 'a'])
})

test('the brokers of a cluster are separated by commas, and an invalid address is reported', () => {
  expect(BrokerUrls.parse('mqtt://a')).toEqual(['mqtt://a'])
  expect(BrokerUrls.parse('mqtts://u:p@a:8884, mqtts://u:p@b:8884')).toEqual([
    'mqtts://u:p@a:8884',
    'mqtts://u:p@b:8884',
  ])
  for (const wrong of ['', 'mqtt://a,', 'http://a', 'mqtt://a,b', 'mqtts://', 'mqtt://a:x'])
    expect(BrokerUrls.safeParse(wrong).success, wrong).toBe(false)
})
