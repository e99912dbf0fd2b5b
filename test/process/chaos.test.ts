import { expect, test } from 'vitest'
import { missing, service } from '../support/services.ts'
import { runToEnd } from './chaos/run-to-end.ts'

const chaos = (...args: string[]) => runToEnd('test/process/chaos/main', args)

const title = 'after random kills every paid unit is delivered or refunded, and nothing moves twice'

const atScale = missing('postgres') === undefined ? service('mosquitto') : service('postgres')
atScale(
  `${title}, with two cloud processes, PostgreSQL and Mosquitto`,
  async () => {
    const { status, text } = await chaos('--kills', '12', '--seed', '3', '--pace', '2200', '--shoppers', '5')
    expect(text, text).toContain('no violation')
    expect(text).toContain('COMPLETED')
    expect(status).toBe(0)
  },
  300_000,
)

test(`${title}, with SQLite and the embedded broker`, async () => {
  const { status, text } = await chaos('--bare', '--kills', '6', '--seed', '4', '--shoppers', '4')
  expect(text, text).toContain('no violation')
  expect(text).toContain('COMPLETED')
  expect(status).toBe(0)
}, 300_000)
