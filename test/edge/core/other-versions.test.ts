import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

/** Stores a fact of the journal under this name, as another version of the service would. */
function storeAs(bench: TestHub, key: string, value: unknown): void {
  bench.kill()
  bench.journal
    .prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)')
    .run(key, JSON.stringify(value))
}

test('a configuration of another version is read as far as possible, sales stop, and the cloud is asked for it', () => {
  const bench = TestHub.ready()
  const { prepare_timeout_ms: _, ...older } = { ...config, disabled_bins: [2], disabled_fridges: 'none' }
  storeAs(bench, 'config', older)
  bench.begin()
  bench.run(5000)
  expect(bench.alive).toBe(true)
  expect(bench.inboxResets).toBe(1)
  expect(bench.core.health()).toMatchObject({
    accepting_orders: false,
    bins: [{ status: 'healthy' }, { status: 'maintenance' }],
  })
  bench.apply(bench.snapshot())
  expect(bench.core.health().accepting_orders).toBe(true)
  bench.restart()
  bench.welcome()
  expect(bench.inboxResets).toBe(1)
  bench.queue(1, { 4: 1 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
})

test.each([0, 1])(
  'a command of an unknown kind that another version started has an unknown outcome (local: %s)',
  (isLocal) => {
    const bench = TestHub.ready()
    const { id } = bench.command({ name: 'open_bin', bin: 1 })
    bench.kill()
    const body = JSON.stringify({ name: 'shake_bin', bin: 1 })
    bench.journal.prepare('UPDATE commands SET body = ?, is_local = ? WHERE id = ?').run(body, isLocal, id)
    const other = uuid(77)
    bench.journal
      .prepare('INSERT INTO commands (id, body, is_local) VALUES (?, ?, ?)')
      .run(other, body, isLocal)
    bench.begin()
    bench.run(30_000)
    expect(bench.alive).toBe(true)
    for (const each of [id, other])
      expect(bench.command({ name: 'get_bin_status', bin: 1 }, each).results).toMatchObject([
        { outcome: 'unknown', reason: 'interrupted' },
      ])
  },
)
