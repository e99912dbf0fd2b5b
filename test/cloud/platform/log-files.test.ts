import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { LogFile } from '../../../cloud/platform/log-files.ts'

test('a failing log file is reported once, and is reopened after a minute with the number of missing lines', () => {
  let now = 0
  const said: string[] = []
  const streams: (EventEmitter & { lines: string[]; write: (line: string) => void })[] = []
  const file = new LogFile(
    () => {
      const lines: string[] = []
      const stream = Object.assign(new EventEmitter(), {
        lines,
        write: (line: string) => void lines.push(line),
      })
      streams.push(stream)
      return stream
    },
    (text) => said.push(text),
    () => now,
  )
  file.write('one')
  for (let time = 0; time < 3; time += 1)
    streams[0]!.emit('error', new Error('ENOSPC: no space left on device'))
  for (const line of ['two', 'three']) file.write(line)
  expect(said).toEqual(['the log file (LOG_DIR) cannot be written: ENOSPC: no space left on device'])
  now += 60_000
  file.write('four')
  expect(streams.map(({ lines }) => lines)).toEqual([['one'], ['four']])
  expect(said[1]).toBe('the log file (LOG_DIR) is opened again; it lacks 2 lines')
})
