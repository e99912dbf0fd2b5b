import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { makeBundle, redactorOf } from '../../../edge/diagnosis/bundle.ts'
import { filesOfTar, tarOf } from '../../../protocol/model/tar.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { TestHub } from '../../world/hub.ts'

test('a tar program and the reader find the same files in an archive', () => {
  const archive = tarOf({ 'a.json': '{}', 'empty.txt': '', 'b.txt': 'ä'.repeat(600) }, 1_700_000_000_000)
  expect(execFileSync('tar', ['-t'], { input: archive, encoding: 'utf8' })).toBe('a.json\nempty.txt\nb.txt\n')
  expect(execFileSync('tar', ['-xO', 'b.txt'], { input: archive, encoding: 'utf8' })).toBe('ä'.repeat(600))
  expect(filesOfTar(archive)).toEqual(
    new Map([
      ['a.json', '{}'],
      ['empty.txt', ''],
      ['b.txt', 'ä'.repeat(600)],
    ]),
  )
})

test('the archive has doctor, versions, crashes, settings, journal, wire and log, and no secret', async () => {
  const { core, outbox } = TestHub.ready()
  const secret = 'pass"word'
  const archive = await makeBundle({
    clock: virtualRuntime().clock,
    settings: { MQTT_URL: 'mqtts://user:hunter2@broker.example:8883' },
    lines: {
      read: () => ({ lines: [JSON.stringify({ message: `wrong password: ${secret}` })], cursor: '' }),
    },
    recent: () => ({
      log: [],
      wire: [{ at: 1, controller: 'bins', direction: 'in', line: '~0001 PING t=5*465a' }],
    }),
    hub: () => ({
      core,
      outbox,
      sync: {
        state: () => ({
          phase: 'waiting',
          session: null,
          receivedMsAgo: null,
          ledger: outbox.position('ledger'),
        }),
      },
      controllers: { links: () => [], losses: () => new Map() },
    }),
    fault: () => ({ reason: 'full', setting: 'STORE', path: '/x', detail: 'ENOSPC' }),
    doctor: () => Promise.reject(new Error('no doctor')),
    redact: redactorOf(() => [secret, undefined]),
  })
  const files = filesOfTar(archive)
  expect([...files.keys()]).toEqual([
    'versions.json',
    'doctor.json',
    'crashes.json',
    'settings.json',
    'journal.json',
    'wire.json',
    'wire.jsonl',
    'log.jsonl',
  ])
  const text = [...files.values()].join('\n')
  expect(text).not.toMatch(/hunter2|pass\\*"word/)
  expect(text).toContain('mqtts://broker.example:8883')
  expect(text).toContain('ENOSPC')
  expect(text).toContain('no doctor')
  expect(text).toContain('PING')
})
