import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { desiredFile } from '../../../../edge/desired/desired-states.ts'
import { enrolmentFiles } from '../../../../edge/enrolment/enrolment.ts'
import { completeMove } from '../../../../edge/enrolment/complete-move.ts'
import type { Next } from '../../../../edge/enrolment/install.ts'
import { openStore } from '../../../../edge/journal/store.ts'
import { updateFiles } from '../../../../edge/update/files.ts'
import { noCheckpoint } from '../../../../protocol/model/checkpoint.ts'
import { silentLog, type Log } from '../../../../protocol/model/log.ts'
import type { Clock } from '../../../../protocol/model/runtime.ts'
import { demoHub } from '../../../support/demo-hub.ts'
import { virtualClock } from '../../../world/clock.ts'

/** Of the hub in the other cell, for 90 days until 2026-06-01. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIBHzCBx6ADAgECAgEBMAoGCCqGSM49BAMCMBgxFjAUBgNVBAMTDWh1Yi0xMDAw
MDAwMDEwHhcNMjYwMzAzMDAwMDAwWhcNMjYwNjAxMDAwMDAwWjAYMRYwFAYDVQQD
Ew1odWItMTAwMDAwMDAxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEgmyxgtW4
E5Qu2suXxL2B+xRo4W5uM8M1nm4rAPUbvFgNGK24Yf+IAUc8z5y7ls/Za+sVyf5D
G5UJIsLATYfEAKMCMAAwCgYIKoZIzj0EAwIDRwAwRAIgW8RMf5nzuBbjC0LnEhYA
u4jxClVLqz3OqAKTtcgbMUACIBFQJOIJPSQLAKwFUAOytV17Bf5bM0wJ/+avhWLI
RGCz
-----END CERTIFICATE-----
`

export const next: Next = {
  order: 5,
  code: 'K7QM2XRA',
  key: 'the next key',
  former_hub_id: 1,
  answer: {
    hub_id: 100_000_001,
    name: 'Lobby',
    certificate,
    ca: 'the next authority',
    mqtt_url: 'mqtts://c1.example:8883',
    expires_at: '2026-06-01T00:00:00.000Z',
    hardware: { ...demoHub, hubId: 100_000_001 },
    settings: {},
    desired_version: 4,
    update_root: 'the root of the next cell',
  },
}

/** An enrolled hub 1 with a journal, whose board is enrolled in another cell. `isOrdered`: the cloud has ordered it to leave. */
export function board({ isOrdered = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-move-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const store = join(folder, 'hub.sqlite')
  openStore({ path: store, checkpoint: noCheckpoint, log: silentLog, hubId: 1 }).close()
  const paths = enrolmentFiles(store)
  const updates = updateFiles(store)
  mkdirSync(updates.metadata, { recursive: true })
  const [metadata, timestamp] = ['root.json', 'timestamp.json'].map((name) =>
    join(updates.metadata, name),
  ) as [string, string]
  const former = {
    [paths.enrolment]: '{"hub_id":1,"mqtt_url":"mqtts://c0.example:8883"}',
    [paths.key]: 'the key',
    [paths.certificate]: 'the certificate',
    [paths.ca]: 'the authority',
    [paths.hardware]: JSON.stringify({ ...demoHub, hubId: 1 }),
    [desiredFile(store)]: '{"applied":null}',
    [updates.root]: 'the root',
    [updates.desired]: 'a release of the former cell',
    [`${store}.token`]: 'a token',
    ...(isOrdered && { [paths.moving]: JSON.stringify(next) }),
    [paths.next]: JSON.stringify(next),
    [metadata]: 'verified with the root',
    [timestamp]: 'the list of the former cell',
  }
  for (const [path, text] of Object.entries(former)) writeFileSync(path, text)
  const read = (path: string): string | undefined =>
    existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const place = { store, hardware: undefined }
  const errors: string[] = []
  const details: unknown[] = []
  const warnings: string[] = []
  const log: Log = {
    ...silentLog,
    error(detail, message) {
      errors.push(message)
      details.push(detail)
    },
    warn: (_, message) => void warnings.push(message),
  }
  return {
    store,
    paths,
    read,
    folder,
    complete: (limits: { starts?: number } = {}, clock: Pick<Clock, 'now'> = virtualClock()) =>
      completeMove(place, clock, log, limits),
    errors,
    warnings,
    details,
    log,
    /** Everything that the hub of the next cell uses. */
    state: () => ({
      enrolment: read(paths.enrolment),
      key: read(paths.key),
      certificate: read(paths.certificate),
      ca: read(paths.ca),
      hub: (JSON.parse(read(paths.hardware) ?? '{}') as { hubId?: number }).hubId,
      desired: read(desiredFile(store)),
      root: read(updates.root),
      release: read(updates.desired),
      metadata: read(metadata),
      list: read(timestamp),
      token: read(`${store}.token`),
      journal: [existsSync(store), existsSync(`${store}.former`)],
      next: read(paths.next),
      moving: read(paths.moving),
    }),
  }
}
