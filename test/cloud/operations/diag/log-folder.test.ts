import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readlink,
  realpath,
  rename,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { ApiError } from '../../../../cloud/platform/api-error.ts'
import { type LogFolder, openLogFolder, streamLines } from '../../../../cloud/operations/diag/logs.ts'
import { virtualRuntime } from '../../../world/clock.ts'

interface Folder {
  logs: LogFolder
  path: string
  outside: string
}

async function folder(): Promise<Folder> {
  const root = await mkdtemp(join(tmpdir(), 'larder-log-'))
  const path = join(root, 'logs')
  await mkdir(join(path, 'old'), { recursive: true })
  await writeFile(join(root, 'secret.txt'), 'secret\n')
  await mkdir(join(root, 'logs-of-another'))
  await writeFile(join(root, 'logs-of-another', 'a.log'), 'secret\n')
  await writeFile(join(path, 'a.log'), 'one\ntwo\nthree\n')
  await writeFile(join(path, 'b.log'), 'x'.repeat(5000))
  await writeFile(join(path, 'old', 'c.log'), 'old\n')
  await utimes(join(path, 'a.log'), 1000, 1000)
  await utimes(join(path, 'b.log'), 500, 500)
  await utimes(join(path, 'old'), 2000, 2000)
  return { logs: openLogFolder(path), path, outside: join(root, 'secret.txt') }
}

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
  return 'found'
}

test('a path that leads out of the folder is not found: parents, absolute paths, links, folders with a similar name', async () => {
  const { logs, path, outside } = await folder()
  await symlink(outside, join(path, 'link.log'))
  await symlink(join(path, '..'), join(path, 'up'))
  await symlink('/etc', join(path, 'old', 'etc'))
  const ways = [
    '../secret.txt',
    'old/../../secret.txt',
    './../secret.txt',
    '..\\secret.txt',
    '../logs-of-another/a.log',
    outside,
    '/etc/passwd',
    'link.log',
    'up/secret.txt',
    'old/etc/passwd',
    '%2e%2e/secret.txt',
    '..%2fsecret.txt',
    'a.log\0',
    '\0',
    'a'.repeat(999),
    '~/a.log',
  ]
  for (const way of ways) {
    expect([way, await refusal(logs.view(way, 0))]).toEqual([way, 'not_found'])
    expect([way, await refusal(logs.list({ path: way, order: 'name', reverse: false }))]).toEqual([
      way,
      'not_found',
    ])
    expect([way, await refusal(logs.find(way))]).toEqual([way, 'not_found'])
  }
})

test('no path shows files outside of the folder', async () => {
  const { logs } = await folder()
  const part = fc.constantFrom('..', '.', 'old', 'a.log', 'secret.txt', 'logs', '', '/', 'logs-of-another')
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 8 }), async (parts) => {
      const seen = await logs.view(parts.join('/') || '.', 0).catch((error: unknown) => {
        if (error instanceof ApiError) return undefined
        throw error
      })
      expect(seen?.lines ?? []).not.toContain('secret')
    }),
  )
})

test('a link to a file in the folder is followed, and listed as its target', async () => {
  const { logs, path } = await folder()
  await symlink(join(path, 'a.log'), join(path, 'current.log'))
  expect(await logs.view('current.log', 1)).toEqual({ file: 'a.log', lines: ['three'], truncated: true })
  const names = (await logs.list({ path: '.', order: 'name', reverse: false })).map(({ name }) => name)
  expect(names).toEqual(['a.log', 'b.log', 'old'])
})

test('a folder can be listed by date, name or size, in both directions', async () => {
  const { logs } = await folder()
  const names = async (order: 'date' | 'name' | 'size', reverse: boolean) =>
    (await logs.list({ path: '.', order, reverse })).map(({ name }) => name)
  expect(await names('date', true)).toEqual(['old', 'a.log', 'b.log'])
  expect(await names('date', false)).toEqual(['b.log', 'a.log', 'old'])
  expect(await names('name', true)).toEqual(['old', 'b.log', 'a.log'])
  expect(await names('size', true)).toEqual(['b.log', 'a.log', 'old'])
  expect(await logs.list({ path: 'old', order: 'date', reverse: true })).toMatchObject([
    { name: 'c.log', path: 'old/c.log', is_dir: false, size: 4 },
  ])
})

test('a file is read from its end: a number of lines, or up to 1 MiB', async () => {
  const { logs, path } = await folder()
  expect(await logs.view('a.log', 2)).toEqual({ file: 'a.log', lines: ['two', 'three'], truncated: true })
  expect(await logs.view('a.log', 0)).toEqual({
    file: 'a.log',
    lines: ['one', 'two', 'three'],
    truncated: false,
  })
  expect((await logs.view(undefined, 1)).file).toBe('a.log')
  const line = `${'y'.repeat(1023)}\n`
  await writeFile(join(path, 'big.log'), line.repeat(2000))
  const big = await logs.view('big.log', 0)
  expect([big.truncated, big.lines.length]).toEqual([true, 1023])
  expect(big.lines.every(({ length }) => length === 1023)).toBe(true)
  await writeFile(join(path, 'empty.log'), '')
  expect(await logs.view('empty.log', 0)).toEqual({ file: 'empty.log', lines: [], truncated: false })
})

const readers: { cancel(): Promise<void> }[] = []
afterEach(() => Promise.all(readers.splice(0).map((reader) => reader.cancel())))

/** Reads the events of a stream; time passes while there are none. */
async function follower(path: string) {
  const runtime = virtualRuntime()
  const reader = streamLines(path, runtime.clock).getReader()
  readers.push(reader)
  const decoder = new TextDecoder()
  let text = ''
  async function read(): Promise<string> {
    const next = reader.read()
    const state = { done: false }
    void next.finally(() => (state.done = true))
    for (let turn = 0; turn < 4000 && !state.done; turn += 1) {
      await runtime.clock.pass(250)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return decoder.decode((await next).value, { stream: true })
  }
  return {
    reader,
    /** Reads `count` lines. */
    lines: async (count: number): Promise<string[]> => {
      while (text.split('data: ').length - 1 < count) text += await read()
      const lines = [...text.matchAll(/^data: (.*)$/gm)].map((match) => match[1]!)
      text = ''
      return lines
    },
    read,
  }
}

test('a stream starts at the end of the file, sends each line once, and a half line when it is complete', async () => {
  const { path } = await folder()
  const file = join(path, 'a.log')
  const { read, lines } = await follower(file)
  expect(await read()).toBe(': ok\n\n')
  const first = lines(1)
  await appendFile(file, 'four\nfi')
  expect(await first).toEqual(['four'])
  const second = lines(2)
  await appendFile(file, 've\nsechs \u{1F600}\n')
  expect(await second).toEqual(['five', 'sechs \u{1F600}'])
})

test('a stream continues with the new file after a rotation, and with a truncated one', async () => {
  const { path } = await folder()
  const file = join(path, 'a.log')
  const { read, lines } = await follower(file)
  await read()
  const first = lines(1)
  await appendFile(file, 'before\n')
  expect(await first).toEqual(['before'])
  await appendFile(file, 'last of the old\n')
  await rename(file, join(path, 'a.log.1'))
  await writeFile(file, 'first of the new\n')
  expect(await lines(2)).toEqual(['last of the old', 'first of the new'])
  await truncate(file)
  const after = lines(1)
  await appendFile(file, 'cut\n')
  expect(await after).toEqual(['cut'])
})

test('a slow reader loses nothing, and at most two chunks wait for it', async () => {
  const { path } = await folder()
  const file = join(path, 'a.log')
  const { read, lines } = await follower(file)
  await read()
  const first = lines(1)
  await appendFile(file, 'start\n')
  await first
  const all = Array.from({ length: 40_000 }, (_, index) => `line ${index}`)
  const before = process.memoryUsage().arrayBuffers
  await appendFile(file, `${all.join('\n')}\n`)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1024 * 1024)
  expect(await lines(all.length)).toEqual(all)
})

test('a silent stream sends keep-alives, and an abandoned stream is closed', async () => {
  const { path } = await folder()
  const { read, reader } = await follower(join(path, 'a.log'))
  expect(await read()).toBe(': ok\n\n')
  expect(await read()).toBe(': still here\n\n')
  await reader.cancel()
  expect(await reader.read()).toEqual({ done: true, value: undefined })
})

test('a stream closes its file, whether its reader leaves while it opens, while it waits for lines, or after a failed read', async () => {
  const { path } = await folder()
  const file = join(path, 'a.log')
  const { clock } = virtualRuntime()
  const isOpen = async (): Promise<boolean> => {
    const links = (await readdir('/proc/self/fd')).map((fd) =>
      readlink(`/proc/self/fd/${fd}`).catch(() => ''),
    )
    return (await Promise.all(links)).includes(await realpath(file))
  }

  await streamLines(file, clock).cancel()
  expect(await isOpen()).toBe(false)

  const waiting = streamLines(file, clock).getReader()
  await waiting.read()
  const line = waiting.read()
  expect(await isOpen()).toBe(true)
  await waiting.cancel()
  expect(await line).toEqual({ done: true, value: undefined })
  expect(await isOpen()).toBe(false)

  const failing = streamLines(file, {
    ...clock,
    after() {
      throw new Error('no timer')
    },
  }).getReader()
  await failing.read()
  await expect(failing.read()).rejects.toThrow('no timer')
  expect(await isOpen()).toBe(false)
})
