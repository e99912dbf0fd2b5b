import { expect, test } from 'vitest'
import { followFiles } from '../../../protocol/model/fresh-files.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { virtualClock } from '../../world/clock.ts'

const MINUTE = 60_000

function setUp() {
  const clock = virtualClock()
  const disk: Record<string, string> = { '/cert': 'cert 1', '/key': 'key 1' }
  const used: unknown[] = []
  const warned: string[] = []
  const stop = followFiles({
    paths: { CERT: '/cert', KEY: '/key', CA: undefined },
    texts: { CERT: 'cert 1', KEY: 'key 1', CA: undefined },
    read(path) {
      if (disk[path] === undefined) throw new Error(`ENOENT ${path}`)
      return disk[path]
    },
    clock,
    log: { ...silentLog, warn: (_, message) => void warned.push(message) },
    use(texts) {
      if (texts.CERT!.slice(5) !== texts.KEY!.slice(4)) throw new Error('key values mismatch')
      used.push({ ...texts })
    },
  })
  return { clock, disk, used, warned, stop }
}

test('files that do not change are not reloaded', () => {
  const { clock, used } = setUp()
  clock.advance(60 * MINUTE)
  expect(used).toEqual([])
})

test('a renewed file is loaded once within a minute, together with the unchanged files', () => {
  const { clock, disk, used } = setUp()
  disk['/cert'] = 'cert 2'
  disk['/key'] = 'key 2'
  clock.advance(MINUTE)
  clock.advance(10 * MINUTE)
  expect(used).toEqual([{ CERT: 'cert 2', KEY: 'key 2', CA: undefined }])
})

test('a certificate without its matching key gives one warning, and is loaded when the key matches', () => {
  const { clock, disk, used, warned } = setUp()
  disk['/cert'] = 'cert 2'
  clock.advance(20 * MINUTE)
  expect([used, warned.length]).toEqual([[], 1])
  disk['/key'] = 'key 2'
  clock.advance(MINUTE)
  expect(used).toHaveLength(1)
})

test('a file that is missing for a while changes nothing', () => {
  const { clock, disk, used } = setUp()
  delete disk['/cert']
  clock.advance(10 * MINUTE)
  disk['/cert'] = 'cert 1'
  clock.advance(10 * MINUTE)
  expect(used).toEqual([])
})

test('files are not read any more after the end', () => {
  const { clock, disk, used, stop } = setUp()
  stop()
  disk['/cert'] = 'cert 2'
  disk['/key'] = 'key 2'
  clock.advance(10 * MINUTE)
  expect(used).toEqual([])
})
