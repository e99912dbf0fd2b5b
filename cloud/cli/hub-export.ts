import * as files from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { hubBrokerUrl } from '../enrolment/broker-url.ts'
import { readDesired } from '../gateway/desired-state.ts'
import { readNamed } from '../platform/settings/config.ts'
import type { Queries } from '../platform/store/database.ts'
import type { Invocation } from './command-line.ts'

/** The files of a new card or board of a hub, without secrets. */
export interface ExportedHub {
  hub_id: number
  /** The description that the cloud has stored; null if there is none. */
  hardware: Readonly<Record<string, unknown>> | null
  /** Settings of the hub that the cloud stores. */
  settings: Readonly<Record<string, string>>
  desired_version: number
  mqtt_url: string
  /** PEM; null if the system's authorities are used. */
  mqtt_ca: string | null
}

/** Throws if there is no such hub. */
export async function exportHub(
  q: Queries,
  settings: Invocation['settings'],
  hubId: number,
): Promise<ExportedHub> {
  const hub = await q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
  if (!hub) throw new Error(`no such hub: ${hubId}`)
  const { version, settings: stored, hardware } = await readDesired(q, hubId)
  return {
    hub_id: hubId,
    hardware,
    settings: stored,
    desired_version: version,
    mqtt_url: hubBrokerUrl(settings),
    mqtt_ca: settings.MQTT_CA === undefined ? null : readNamed('MQTT_CA', settings.MQTT_CA),
  }
}

/**
 * Writes `hub.json` and `hardware.json` for `/etc/larder` into a folder, and `mqtt-ca.pem` if there is one. Returns their
 * paths. Throws a
 * sentence if a file cannot be written.
 */
export function writeExport(
  { hub_id, hardware, settings, desired_version, mqtt_url, mqtt_ca }: ExportedHub,
  folder: string,
): { hub_id: number; desired_version: number; files: string[] } {
  const written: string[] = []
  const attempt = (path: string, work: () => void): void => {
    try {
      work()
    } catch (error) {
      throw new Error(`--to: ${path} cannot be written: ${fileProblem(error)}`, { cause: error })
    }
  }
  const write = (name: string, text: string): void => {
    const path = join(folder, name)
    attempt(path, () => files.writeFileSync(path, text))
    written.push(path)
  }
  attempt(folder, () => makeFolder(files, folder))
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
  const ca = mqtt_ca === null ? {} : { MQTT_CA: '/etc/larder/mqtt-ca.pem' }
  // The package's places: a service has no working directory.
  const places = { HARDWARE: '/etc/larder/hardware.json', STORE: '/var/lib/larder/hub.sqlite' }
  write('hub.json', json({ MQTT_URL: mqtt_url, ...ca, ...places, ...settings }))
  if (hardware !== null) write('hardware.json', json(hardware))
  if (mqtt_ca !== null) write('mqtt-ca.pem', mqtt_ca)
  return { hub_id, desired_version, files: written }
}
