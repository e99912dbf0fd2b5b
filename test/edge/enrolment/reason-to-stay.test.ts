import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { reasonToStay, reasonToWait } from '../../../edge/enrolment/reason-to-stay.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import { uuid } from '../../support/uuid.ts'

function storePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'larder-stay-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  mkdirSync(dirname(updateFiles(store).state), { recursive: true })
  return store
}

const idle = { trial: () => undefined, isWaiting: () => false }

test('a hub stays during an update, during a trial of settings, with a broker or a password of its own, and without its journal', () => {
  const store = storePath()
  const core = () => ({ reasonToStay: () => undefined })
  const leaving = { config: { store, canMove: true }, desired: idle, core }
  expect(reasonToStay(leaving)).toBeUndefined()
  expect(reasonToStay({ ...leaving, config: { store, canMove: false } })).toMatch('MQTT_PASSWORD or MQTT_URL')
  expect(reasonToStay({ ...leaving, desired: { ...idle, isWaiting: () => true } })).toMatch('being tried')
  expect(reasonToStay({ ...leaving, core: () => undefined })).toMatch('cannot use its journal')
  expect(reasonToStay({ ...leaving, core: () => ({ reasonToStay: () => 'bin 1' }) })).toBe('bin 1')
  const to = { version: '1.2.3', rollout: uuid(1), url: 'https://shop.example/1.2.3', sha256: 'a'.repeat(64) }
  writeFileSync(updateFiles(store).state, JSON.stringify({ now: { step: 'waiting', to }, last: null }))
  expect(reasonToStay(leaving)).toBe('an update is in progress')
  writeFileSync(updateFiles(store).state, '\0\0\0')
  expect(reasonToStay(leaving)).toBeUndefined()
})

test('a hub does not leave before the cloud has confirmed all its reports', () => {
  const store = storePath()
  const position = { epoch: '', base: 3, baseTag: 0, last: 3 }
  const core = () => ({ reasonToStay: () => undefined })
  const at = (last: number) => () => ({ position: () => ({ ...position, last }) })
  const hub = { config: { store, canMove: true }, desired: idle, core }
  expect(reasonToWait({ ...hub, outbox: at(3) })).toBeUndefined()
  expect(reasonToWait({ ...hub, outbox: at(4) })).toBe('the cloud has not confirmed all reports of this hub')
  const isBusy = () => ({ reasonToStay: () => 'bin 1' })
  expect(reasonToWait({ ...hub, core: isBusy, outbox: at(3) })).toBe('bin 1')
})
