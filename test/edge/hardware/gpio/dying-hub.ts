import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Sqlite } from '../../../../edge/journal/sqlite-driver.ts'

/**
 * A hub's program with a journal of newer software: it ends at each start. Its first life, before the journal
 * exists, dies with the main door unlocked.
 */
const hardware = process.argv[2]!
const store = join(dirname(hardware), 'hub.sqlite')
Object.assign(process.env, {
  HARDWARE: hardware,
  STORE: store,
  GPIO: 'onoff',
  PORT: '0',
  MQTT_URL: 'mqtt://127.0.0.1:9',
  MQTT_PASSWORD: 'secret',
})

if (existsSync(store)) {
  process.argv.length = 2
  await import('../../../../edge/main.ts')
} else {
  new Sqlite(store).exec('PRAGMA user_version = 999').close()
  await import('./lines-agent.ts')
}
