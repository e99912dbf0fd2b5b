import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Sqlite } from '../../../../edge/journal/sqlite-driver.ts'

/**
 * A hub's program that ends at each start, because its journal is of newer software. Its first life, before the journal
 * exists, dies with the main door unlocked. The second argument is what else is wrong from the second life on.
 */
export interface Wrong {
  environment?: Record<string, string>
  /** Contents of files beside the journal, by name. */
  files?: Record<string, string>
}

const hardware = process.argv[2]!
const { environment = {}, files = {} } = JSON.parse(process.argv[3] ?? '{}') as Wrong
const folder = dirname(hardware)
const store = join(folder, 'hub.sqlite')
Object.assign(process.env, {
  HARDWARE: hardware,
  STORE: store,
  GPIO: 'onoff',
  PORT: '0',
  MQTT_URL: 'mqtt://127.0.0.1:9',
  MQTT_PASSWORD: 'secret',
  ...environment,
})

if (existsSync(store)) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  process.argv.length = 2
  await import('../../../../edge/main.ts')
} else {
  new Sqlite(store).exec('PRAGMA user_version = 999').close()
  await import('./lines-agent.ts')
}
