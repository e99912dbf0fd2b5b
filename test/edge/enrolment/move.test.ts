import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { desiredFile } from '../../../edge/desired/desired-states.ts'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { erasing } from '../../../edge/enrolment/erase.ts'
import { completeMove, type Next } from '../../../edge/enrolment/install.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { TransportHandlers } from '../../../protocol/mqtt/transport.ts'
import { downTopic, upTopic } from '../../../protocol/mqtt/topics.ts'
import { seededChance } from '../../simulation/chance.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { virtualClock } from '../../world/clock.ts'
import { PowerCut } from '../../world/update-board.ts'
import { cutPower, startDisk } from '../update/mortal-disk.ts'

vi.mock('node:fs', async (original) => {
  const { mortal } = await import('../update/mortal-disk.ts')
  return mortal(await original<typeof import('node:fs')>())
})

const next: Next = {
  code: 'K7QM2XRA',
  key: 'the next key',
  former_hub_id: 1,
  answer: {
    hub_id: 100_000_001,
    name: 'Lobby',
    certificate: 'the next certificate',
    ca: 'the next authority',
    mqtt_url: 'mqtts://c1.example:8883',
    expires_at: '2026-06-01T00:00:00.000Z',
    hardware: { ...demoHub, hubId: 100_000_001 },
    settings: {},
    desired_version: 4,
    update_root: 'the root of the next cell',
  },
}

/** An enrolled hub 1 with a journal, whose board has exchanged a code of another cell. */
function board() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-move-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  openStore({ path: store, checkpoint: noCheckpoint, log: silentLog, hubId: 1 }).close()
  const paths = enrolmentFiles(store)
  const updates = updateFiles(store)
  mkdirSync(dirname(updates.root), { recursive: true })
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
    [paths.next]: JSON.stringify(next),
  }
  for (const [path, text] of Object.entries(former)) writeFileSync(path, text)
  const read = (path: string): string | undefined =>
    existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const place = { store, hardware: undefined }
  return {
    store,
    paths,
    read,
    folder,
    complete: () => completeMove(place),
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
      token: read(`${store}.token`),
      journal: [existsSync(store), existsSync(`${store}.former`)],
      next: read(paths.next),
    }),
  }
}

const moved = {
  enrolment: '{"hub_id":100000001,"mqtt_url":"mqtts://c1.example:8883","former_hub_id":1}\n',
  key: 'the next key',
  certificate: 'the next certificate',
  ca: 'the next authority',
  hub: 100_000_001,
  desired: expect.stringContaining('"version":4') as string,
  root: 'the root',
  release: undefined,
  token: undefined,
  journal: [false, true],
  next: undefined,
}

test('a board that moves keeps its former journal apart, erases the secrets of the former cell, and keeps the root of releases that it trusts', () => {
  const { complete, state } = board()
  complete()
  expect(state()).toEqual(moved)
  complete()
  expect(state()).toEqual(moved)
})

test('the next start completes a move after a power failure at any step, even if it undoes unsynced changes', () => {
  let failures = 0
  for (let cutAfter = 1; ; cutAfter += 1) {
    const { folder, complete, state } = board()
    const disk = startDisk(folder, [])
    disk.cutAfter = cutAfter
    try {
      complete()
      disk.cutAfter = Infinity
      break
    } catch (error) {
      if (!(error instanceof PowerCut) && !((error as Error).cause instanceof PowerCut)) throw error
      failures += 1
    }
    cutPower(disk, seededChance(cutAfter))
    complete()
    expect([cutAfter, state()]).toEqual([cutAfter, moved])
  }
  expect(failures).toBeGreaterThan(15)
})

/** A connection of hub 1 that obeys orders of its cloud; `move` answers in turn. */
function connection(answers: (() => Promise<{ hub_id: number }>)[]) {
  const { store, read, paths } = board()
  const told: unknown[] = []
  const moves: unknown[] = []
  let restarts = 0
  const clock = virtualClock()
  let handlers: TransportHandlers | undefined
  const open = erasing(
    {
      hubId: 1,
      store,
      clock,
      log: silentLog,
      move(to) {
        moves.push(to)
        return answers.shift()!()
      },
      restart: () => (restarts += 1),
    },
    (_options, given) => {
      handlers = given
      return {
        publish(topic, payload) {
          expect(topic).toBe(upTopic(1, 'erased'))
          told.push(JSON.parse(payload))
          return Promise.resolve(true)
        },
        close() {},
      }
    },
  )
  open({ subscribe: [] }, { onConnect() {}, onDisconnect() {}, onMessage() {} })
  return {
    told,
    moves,
    restarts: () => restarts,
    order: (order: unknown) => handlers!.onMessage(downTopic(1, 'erase'), JSON.stringify(order)),
    pass: (ms: number) => clock.advance(ms),
    isEnrolled: () => read(paths.enrolment) !== undefined,
  }
}

const to = { cloud: 'https://shop.example/c1', code: 'K7QM2XRA' }

test('a failed move reports its reason and changes nothing; a successful one reports the number of the hub and restarts the service', async () => {
  let enrolled = (_answer: { hub_id: number }): void => {}
  const hub = connection([
    () => Promise.reject(new Error('the cloud refused the enrolment')),
    () => new Promise((resolve) => (enrolled = resolve)),
  ])
  hub.order({ next: to })
  await expect.poll(() => hub.told).toEqual([{ error: 'the cloud refused the enrolment' }])
  // The cloud repeats the order with each hello.
  hub.pass(599_000)
  hub.order({ next: to })
  expect(hub.moves).toEqual([to])
  hub.pass(1000)
  hub.order({ next: to })
  hub.order({ next: { ...to, code: 'AAAAAAAA' } })
  expect(hub.moves).toEqual([to, to])
  expect(hub.restarts()).toBe(0)
  enrolled({ hub_id: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told[1], hub.isEnrolled()]).toEqual([{ hub_id: 100_000_001 }, true])
})

test('an order without another cell erases the secrets at once; a damaged order erases nothing', async () => {
  const hub = connection([])
  for (const damaged of ['text', { next: {} }, { next: { ...to, cloud: 'file:///etc/passwd' } }])
    hub.order(damaged)
  expect([hub.told, hub.isEnrolled()]).toEqual([[], true])
  hub.order({})
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told, hub.isEnrolled()]).toEqual([[{}], false])
})
