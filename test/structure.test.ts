import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const rooms = ['edge', 'cloud', 'protocol', 'simulator', 'test'] as const
/** Workspaces that a workspace may import, besides itself. */
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
    return /\.tsx?$/.test(name) ? [path] : []
  })
}

const files = rooms.flatMap((room) => sources(join(root, room)).map((path) => ({ room, path })))
const importsOf = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) =>
    resolve(dirname(path), match[1]!),
  )

test('imports run one way between the workspaces', () => {
  const wrong = files.flatMap(({ room, path }) =>
    importsOf(path)
      .map((target) => ({ path, target, to: relative(root, target).split('/')[0]! }))
      .filter(({ to }) => to !== room && !mayImport[room].includes(to))
      .map(({ target }) => `${relative(root, path)} imports ${relative(root, target)}`),
  )
  expect(wrong).toEqual([])
})

/** Files by their path from the root, with their imports. */
const graph = new Map(
  files.map(({ path }) => [relative(root, path), importsOf(path).map((target) => relative(root, target))]),
)

/**
 * Imports between a folder's children: files and folders alike, each named by its first step below the
 * folder.
 */
function between(folder: string): Map<string, Set<string>> {
  const below = folder === '' ? '' : `${folder}/`
  const childOf = (path: string) =>
    path.startsWith(below) ? path.slice(below.length).split('/')[0]! : undefined
  const arrows = new Map<string, Set<string>>()
  for (const [path, targets] of graph) {
    const from = childOf(path)
    if (from === undefined) continue
    const to = targets.flatMap((target) => childOf(target) ?? []).filter((child) => child !== from)
    arrows.set(from, new Set([...(arrows.get(from) ?? []), ...to]))
  }
  return arrows
}

/** A cycle among the nodes, or undefined. */
function circle(arrows: Map<string, Set<string>>): string[] | undefined {
  const done = new Set<string>()
  function visit(node: string, trail: readonly string[]): string[] | undefined {
    if (trail.includes(node)) return [...trail.slice(trail.indexOf(node)), node]
    if (done.has(node)) return undefined
    for (const next of arrows.get(node) ?? []) {
      const found = visit(next, [...trail, node])
      if (found) return found
    }
    done.add(node)
    return undefined
  }
  for (const node of arrows.keys()) {
    const found = visit(node, [])
    if (found) return found
  }
  return undefined
}

const folders = new Set(
  [...graph.keys()].flatMap((path) =>
    path.split('/').map((_, depth, steps) => steps.slice(0, depth).join('/')),
  ),
)

test('no cycle exists between files or between folders at any depth', () => {
  const circles = [...folders].flatMap((folder) => {
    const found = folder.startsWith('test') ? undefined : circle(between(folder))
    return found ? [`${folder || '.'}: ${found.join(' → ')}`] : []
  })
  expect(circles).toEqual([])
})

test('imports run one way between the domains of the cloud', () => {
  const order = ['platform', 'gateway', 'events', 'commerce', 'operations', 'people']
  const rank = (path: string) => order.indexOf(path.split('/')[1]!)
  const wrong = [...graph].flatMap(([path, targets]) =>
    targets
      .filter((target) => path.startsWith('cloud/') && target.startsWith('cloud/'))
      .filter((target) => rank(path) >= 0 && (rank(target) < 0 || rank(target) > rank(path)))
      .map((target) => `${path} imports ${target}`),
  )
  expect(wrong).toEqual([])
})

/** Files bundled for browsers. */
const isPage = (path: string): boolean =>
  /^(protocol\/ui|simulator\/console\/page|edge\/local-api\/page|cloud\/(docs|shop|console)\/page)\//.test(
    path,
  )

test('no program imports browser code, and JSX exists only there', () => {
  const wrong = [...graph].flatMap(([path, targets]) =>
    isPage(path)
      ? []
      : [...targets.filter(isPage), ...(path.endsWith('.tsx') ? [path] : [])].map(
          (what) => `${path}: ${what}`,
        ),
  )
  expect(wrong.filter((line) => !line.startsWith('test/'))).toEqual([])
})

/** The entry files of programs. */
const entry = /(^|\/)(([a-z-]+-)?main|seed)\.ts$/

test('every program refuses an unsupported Node before it imports anything else', () => {
  const wrong = files
    .filter(({ path }) => entry.test(path))
    .filter(
      ({ path }) => !/^import '(\.\.?\/)+(protocol\/)?require-node\.ts'\n/.test(readFileSync(path, 'utf8')),
    )
    .map(({ path }) => relative(root, path))
  expect(wrong).toEqual([])
})

/** Programs that create files for others: packages, a mount of another's folder, figures, test runs. */
const makers = /^(test|(edge|cloud)\/packaging|simulator\/mounts)\//

test('every program makes its files unreadable for other users', () => {
  const wrong = files
    .map(({ path }) => relative(root, path))
    .filter((path) => entry.test(path) && !makers.test(path))
    .filter(
      (path) =>
        !/\nimport '(\.\.?\/)+protocol\/private-files\.ts'\n/.test(readFileSync(join(root, path), 'utf8')),
    )
  expect(wrong).toEqual([])
})

test('only main files use the system clock, and wire the programs', () => {
  const wrong = files
    .filter(({ room, path }) => room !== 'test' && !entry.test(path))
    .filter(({ path }) => importsOf(path).some((target) => target.endsWith('protocol/system-runtime.ts')))
    .map(({ path }) => relative(root, path))
  expect(wrong).toEqual([])
})

/** Files that read the system's clock, and the browser's. */
const clockReaders = ['protocol/system-runtime.ts', 'protocol/ui/page-clock.ts']

test('no file below the main files reads a clock or random numbers itself', () => {
  const bare = /\b(Date\.now\(|Date\(\)|setTimeout\(|setInterval\(|Math\.random\(|randomUUID\()/
  const wrong = files
    .filter(({ room, path }) => room !== 'test' && !clockReaders.includes(relative(root, path)))
    .filter(({ path }) => bare.test(readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')))
    .map(({ path }) => relative(root, path))
  expect(wrong).toEqual([])
})

/** The file that reads a program's build information at its start. */
const buildReader = 'protocol/build.ts'

test('the protocol does no I/O, except that it reads the build information', () => {
  const builtin =
    /from '(node:(?!crypto|perf_hooks|timers)[a-z_/]+|mqtt|serialport|better-sqlite3|onoff|hono)'/
  const wrong = files
    .filter(({ room, path }) => room === 'protocol' && builtin.test(readFileSync(path, 'utf8')))
    .filter(({ path }) => relative(root, path) !== buildReader)
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

test('the top level contains only workspaces, their shared files, and dotfiles', () => {
  const made = ['node_modules', 'data']
  const standing = readdirSync(root).filter((name) => !name.startsWith('.') && !made.includes(name))
  expect(standing.sort()).toEqual(
    'README.md cloud edge package-lock.json package.json protocol simulator test tsconfig.json'.split(' '),
  )
})

test('every source file that a README names exists', () => {
  const readmes = [...rooms.map((room) => `${room}/README.md`), 'README.md', '.github/CONTRIBUTING.md']
  const paths = files.map(({ path }) => `/${relative(root, path)}`)
  const absent = readmes.flatMap((readme) =>
    [...readFileSync(join(root, readme), 'utf8').matchAll(/`([\w./-]+\.tsx?)`/g)]
      .filter(([, name]) => !paths.some((path) => path.endsWith(`/${name!}`)))
      .map(([, name]) => `${readme}: ${name!}`),
  )
  expect(absent).toEqual([])
})
