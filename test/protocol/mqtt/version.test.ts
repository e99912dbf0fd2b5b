import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import * as hubCommands from '../../../protocol/model/hub-commands.ts'
import * as hubHealth from '../../../protocol/model/hub-health.ts'
import * as betweenClouds from '../../../protocol/mqtt/between-clouds.ts'
import * as cloudEntries from '../../../protocol/mqtt/cloud-entries.ts'
import * as command from '../../../protocol/mqtt/command.ts'
import * as diagnosis from '../../../protocol/mqtt/diagnosis.ts'
import * as hubEntries from '../../../protocol/mqtt/hub-entries.ts'
import * as session from '../../../protocol/mqtt/session.ts'
import * as topics from '../../../protocol/mqtt/topics.ts'
import { MQTT_PROTOCOL_VERSION, MQTT_SCHEMA_HASH } from '../../../protocol/mqtt/version.ts'

/** Everything that is sent over MQTT, as data without its descriptions: each schema, and the topics. */
function wire(): string {
  const modules = {
    ...betweenClouds,
    ...cloudEntries,
    ...command,
    ...diagnosis,
    ...hubCommands,
    ...hubEntries,
    ...hubHealth,
    ...session,
  }
  const schemas = Object.entries(modules as Record<string, unknown>)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .flatMap(([name, value]) => (value instanceof z.ZodType ? [[name, z.toJSONSchema(value)]] : []))
  const up = topics.upChannels.map((channel) => topics.upTopic(1, channel))
  const down = topics.downChannels.map((channel) => topics.downTopic(1, channel))
  const cloud = topics.cloudChannels.map((channel) => topics.cloudTopic(channel))
  return JSON.stringify({ schemas, up, down, cloud }, (key, value: unknown) =>
    key === 'description' ? undefined : value,
  )
}

test('every change of the wire needs a higher version, an entry in its history, and a new hash', () => {
  const hash = createHash('sha256').update(wire()).digest('hex').slice(0, 16)
  expect({ version: MQTT_PROTOCOL_VERSION, hash }).toEqual({ version: 11, hash: MQTT_SCHEMA_HASH })
})

test('the specification names the current version', () => {
  const spec = readFileSync(new URL('../../../protocol/mqtt/SPEC.md', import.meta.url), 'utf8')
  expect(/^Protocol version (\d+),/m.exec(spec)?.[1]).toBe(String(MQTT_PROTOCOL_VERSION))
})
