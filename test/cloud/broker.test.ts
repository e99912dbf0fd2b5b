import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openBroker } from '../../cloud/broker.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { readCloudConfig } from '../../cloud/platform/settings/config.ts'
import { MAX_AUTHORITIES } from '../../protocol/mqtt/session.ts'
import { virtualRuntime } from '../world/clock.ts'
import { testContext } from '../world/context.ts'
import { emptySqlite } from '../world/database.ts'
import { programFolder } from './support/program.ts'

test('a cloud does not start with authorities of the broker that hubs would refuse', async () => {
  const folder = programFolder()
  const MQTT_CA = join(folder, 'ca.pem')
  writeFileSync(MQTT_CA, '#'.repeat(MAX_AUTHORITIES))
  const read = readCloudConfig({ MQTT_CA, DATA_DIR: folder, MQTT_PORT: '0' })
  if (!read.ok) throw new Error(read.problems.join('\n'))
  const context = testContext(
    openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() }),
    virtualRuntime(),
  )
  await expect(openBroker(read.config, context)).rejects.toThrow(
    'MQTT_CA: the file has 262144 characters, and hubs take at most 258048: name only the authorities of the broker',
  )
})
