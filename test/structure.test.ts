import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const rooms = ['edge', 'cloud', 'protocol', 'simulator', 'test'] as const
/** Which rooms a room may import, besides itself (design §1). */
const mayImport: Record<(typeof rooms)[number], readonly string[]> = {
  protocol: [],
  edge: ['protocol'],
  cloud: ['protocol'],
  simulator: ['protocol'],
  test: rooms,
}

function sources(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) return sources(path)
    return name.endsWith('.ts') ? [path] : []
  })
}

const files = rooms.flatMap((room) => sources(join(root, room)).map((path) => ({ room, path })))
const importsOf = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) =>
    resolve(dirname(path), match[1]!),
  )

test('imports run one way between the rooms', () => {
  const wrong = files.flatMap(({ room, path }) =>
    importsOf(path)
      .map((target) => ({ path, target, to: relative(root, target).split('/')[0]! }))
      .filter(({ to }) => to !== room && !mayImport[room].includes(to))
      .map(({ target }) => `${relative(root, path)} imports ${relative(root, target)}`),
  )
  expect(wrong).toEqual([])
})

test('the programs are wired in main files alone: nothing else takes the system clock', () => {
  const entry = /(^|\/)([a-z-]*main|seed)\.ts$/
  const wrong = files
    .filter(({ room, path }) => room !== 'test' && !entry.test(path))
    .filter(({ path }) => importsOf(path).some((target) => target.endsWith('protocol/system-runtime.ts')))
    .map(({ path }) => relative(root, path))
  expect(wrong).toEqual([])
})

/** The one place where the system's clock is read. */
const clockReader = 'protocol/system-runtime.ts'

test('nothing below the main files reads a clock or chance of its own', () => {
  const bare = /\b(Date\.now\(|new Date\(\)|setTimeout\(|setInterval\(|Math\.random\(|randomUUID\()/
  const wrong = files
    .filter(({ room, path }) => room !== 'test' && relative(root, path) !== clockReader)
    .filter(({ path }) => bare.test(readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')))
    .map(({ path }) => relative(root, path))
  expect(wrong).toEqual([])
})

test('the protocol does no I/O', () => {
  const builtin =
    /from '(node:(?!crypto|perf_hooks|timers)[a-z_/]+|mqtt|serialport|better-sqlite3|onoff|hono)'/
  const wrong = files
    .filter(({ room, path }) => room === 'protocol' && builtin.test(readFileSync(path, 'utf8')))
    .map(({ path }) => relative(root, path))
  expect(wrong).toEqual([])
})

test('no file is longer than 400 lines', () => {
  const long = files
    .map(({ path }) => ({
      path: relative(root, path),
      lines: readFileSync(path, 'utf8').split('\n').length - 1,
    }))
    .filter(({ lines }) => lines > 400)
  expect(long).toEqual([])
})
