import { readFileSync } from 'node:fs'
import { assert, constantFrom, integer, property } from 'fast-check'
import { expect, test } from 'vitest'
import {
  downChannels,
  downTopic,
  parseDownTopic,
  parseUpTopic,
  upChannels,
  upTopic,
} from '../../../protocol/mqtt/topics.ts'

const hubId = integer({ min: 1, max: 2 ** 31 })

test('a parsed topic is the topic that was formatted', () => {
  assert(
    property(hubId, constantFrom(...upChannels), constantFrom(...downChannels), (id, up, down) => {
      expect(parseUpTopic(upTopic(id, up))).toEqual({ hubId: id, channel: up })
      expect(parseDownTopic(id, downTopic(id, down))).toBe(down)
      expect(parseDownTopic(id + 1, downTopic(id, down))).toBeUndefined()
      expect(parseUpTopic(downTopic(id, down))).toBeUndefined()
    }),
  )
})

test.each([
  'larder/v1/hub-0/up/hello',
  'larder/v1/hub-01/up/hello',
  'larder/v1/hub-1/up/hello/more',
  'larder/v1/hub-1/up/',
  'larder/v1/hub-1/up/unheard',
  'larder/v2/hub-1/up/hello',
  'other/larder/v1/hub-1/up/hello',
  'larder/v1/+/up/hello',
])('the topic %s is not a topic of a hub', (topic) => {
  expect(parseUpTopic(topic)).toBeUndefined()
})

test('the specification names every topic', () => {
  const spec = readFileSync('protocol/mqtt/SPEC.md', 'utf8')
  const rows = [...spec.matchAll(/^\| `(?:…|larder\/v1\/hub-<id>)\/([a-z]+\/[a-z]+)`/gm)].map((row) => row[1])
  const channels = [...upChannels.map((name) => `up/${name}`), ...downChannels.map((name) => `down/${name}`)]
  expect(new Set(rows)).toEqual(new Set(channels))
})
