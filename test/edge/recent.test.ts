import { expect, test } from 'vitest'
import { createRecent } from '../../edge/recent.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { LinePortHandlers } from '../../protocol/serial/line-port.ts'
import { simulatedHardware } from '../simulation/hardware.ts'
import { virtualClock } from '../world/clock.ts'

const bench = (kept = 100) => {
  const clock = virtualClock()
  return { clock, recent: createRecent({ clock, hardware: simulatedHardware, kept }) }
}

test('the log is written as before, and its lines above debug level are also kept, errors with their message', () => {
  const { recent } = bench()
  const told: string[] = []
  const note = (_: object, message: string): void => void told.push(message)
  const log = recent.log({ debug: note, info: note, warn: note, error: note })
  log.debug({}, 'one')
  log.info({ bin: 1 }, 'two')
  log.error({ error: new Error('no port') }, 'three')
  expect(told).toEqual(['one', 'two', 'three'])
  expect(recent.read().log.map(({ level, message, fields }) => [level, message, fields])).toEqual([
    ['info', 'two', { bin: 1 }],
    ['error', 'three', { error: 'no port' }],
  ])
})

test('recent lines of both directions are kept by controller, except unsent ones', () => {
  const { recent } = bench()
  let isOpen = true
  let there: LinePortHandlers | undefined
  const heard: string[] = []
  const open = recent.port((_, handlers) => {
    there = handlers
    return { write: () => isOpen, close() {} }
  })
  const port = open(
    { path: 'bins', baudRate: 9600 },
    { onOpen() {}, onLine: (line) => void heard.push(line), onClose() {} },
  )
  port.write('~out')
  there!.onLine('~in')
  isOpen = false
  expect(port.write('~lost')).toBe(false)
  expect(heard).toEqual(['~in'])
  expect(recent.read().wire.map(({ controller, direction, line }) => [controller, direction, line])).toEqual([
    ['bins', 'out', '~out'],
    ['bins', 'in', '~in'],
  ])
})

test('only the newest lines are kept, for any number of lines', () => {
  const { recent } = bench(10)
  const log = recent.log(silentLog)
  for (let n = 1; n <= 1000; n++) log.info({}, String(n))
  expect(recent.read().log.map(({ message }) => Number(message))).toEqual(
    Array.from({ length: 10 }, (_, index) => 991 + index),
  )
})
