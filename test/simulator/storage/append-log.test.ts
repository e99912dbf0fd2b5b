import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { folderStorage, type SimulatorStorage } from '../../../simulator/storage/append-log.ts'
import { memoryStorage } from '../../world/memory-storage.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-log-'))))
afterEach(() => rmSync(folder, { recursive: true }))

describe.each([
  ['in memory', (): SimulatorStorage => memoryStorage()],
  ['in a folder', (): SimulatorStorage => folderStorage(join(folder, 'below'))],
])('an append log %s', (_, create) => {
  test('an append log reads entries in order, also after it is reopened', () => {
    const storage = create()
    const log = storage.open<number>('one')
    expect(log.read()).toEqual([])
    for (const entry of [3, 1, 2]) log.append(entry)
    expect(log.read()).toEqual([3, 1, 2])
    storage.close()
    expect(storage.open<number>('one').read()).toEqual([3, 1, 2])
    expect(storage.open<number>('other').read()).toEqual([])
  })

  test('an append log is replaced at one instant, and can be appended to afterwards', () => {
    const storage = create()
    const log = storage.open<string>('one')
    log.append('old')
    log.replace(['new', 'newer'])
    log.append('newest')
    expect(log.read()).toEqual(['new', 'newer', 'newest'])
    expect(storage.open<string>('one').read()).toEqual(['new', 'newer', 'newest'])
  })
})

test('an append log cuts off a half-written entry after a kill, and the next entry is intact', () => {
  const path = join(folder, 'one.jsonl')
  const log = folderStorage(folder).open<object>('one')
  log.append({ name: 'jalapeño' })
  appendFileSync(path, '{"name":"ha')
  const again = folderStorage(folder).open<object>('one')
  expect(again.read()).toEqual([{ name: 'jalapeño' }])
  again.append({ name: 'whole' })
  expect(readFileSync(path, 'utf8')).toBe('{"name":"jalapeño"}\n{"name":"whole"}\n')
})

test('an append to a closed log fails, and writes to no file', () => {
  const storage = folderStorage(folder)
  const log = storage.open<string>('one')
  storage.close()
  // One of these files gets the number of the closed one.
  const paths = ['a', 'b', 'c'].map((name) => join(folder, name))
  const numbers = paths.map((path) => openSync(path, 'w'))
  try {
    expect(() => log.append('late')).toThrow('closed')
    expect(paths.map((path) => readFileSync(path, 'utf8')).join('')).toBe('')
  } finally {
    for (const number of numbers) closeSync(number)
  }
})
