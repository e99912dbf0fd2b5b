import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, extname, join, relative } from 'node:path'

/** The entry of a package or workspace in package-lock.json. */
interface Locked {
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** Packages that only build or download native modules, which are already present when a package is made. */
const buildTools = new Set(['prebuild-install', 'node-addon-api', 'nan', 'cpu-features'])

/**
 * The folders below `node_modules` that the workspaces or top-level packages need at run time, from the lock
 * file. Each dependency is resolved as Node would resolve it. An optional dependency that is not installed is
 * skipped.
 */
export function productionFolders(root: string, needing: readonly string[]): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  const found = new Set<string>()
  function visit(from: string): void {
    const { dependencies, optionalDependencies } = lock.packages[from]!
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      if (buildTools.has(name)) continue
      const folder = resolve(from, name)
      if (folder === undefined || !existsSync(join(root, folder))) {
        if (optionalDependencies?.[name] !== undefined) continue
        throw new Error(`${name}, which ${from} needs, is not installed: run npm ci first`)
      }
      if (found.has(folder)) continue
      found.add(folder)
      visit(folder)
    }
  }
  /** The nearest `node_modules` above that contains the package. */
  function resolve(from: string, name: string): string | undefined {
    for (let folder = from; ; folder = folder.replace(/(^|\/)[^/]*$/, '')) {
      const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
      if (path in lock.packages) return path
      if (folder === '') return undefined
    }
  }
  for (const from of needing) visit(from)
  return [...found].sort()
}

/** The name of the package in a folder. */
export const nameOf = (folder: string): string => folder.replace(/^.*node_modules\//, '')

/** Copies a package's folder, without files that are not needed at run time and without nested packages. */
export function copyPackage(root: string, folder: string, to: string): void {
  const source = join(root, folder)
  cpSync(source, join(to, folder), {
    recursive: true,
    dereference: true,
    filter: (path) => isNeeded(nameOf(folder), relative(source, path)),
  })
}

/** Copies the files that a package's licence requires for redistribution. */
export function copyLicences(root: string, folder: string, to: string): void {
  for (const file of readdirSync(join(root, folder)).filter((name) => licence.test(name)))
    cpSync(join(root, folder, file), join(to, nameOf(folder), file))
}

const licence = /^(licen[cs]e|copying|notice|authors)/i
const idleFolders =
  /^(node_modules|tests?|__tests__|docs?|examples?|benchmarks?|bench|coverage|\.github|typings|types)$/
const idleFiles =
  /^(\..*|.*\.(md|markdown|map|ts|mts|cts|flow|gyp|gypi|c|cc|cpp|h|hpp|o|a|yml|yaml|tsbuildinfo)|makefile|binding\.gyp|test_extension\.node)$/i
/** Folders of single packages that Larder does not load: sources of native parts. */
const idleIn: Readonly<Record<string, RegExp>> = {
  'better-sqlite3': /^(src|deps)$/,
  'better-sqlite3-node20': /^(src|deps)$/,
  epoll: /^src$/,
  '@serialport/bindings-cpp': /^src$/,
}

/** Whether a file or folder of a package is needed at run time; `path` is relative to the package. */
function isNeeded(name: string, path: string): boolean {
  if (path === '') return true
  const file = basename(path)
  if (idleIn[name]?.test(path)) return false
  if (licence.test(file)) return true
  if (!path.includes('/') && idleFolders.test(file)) return false
  const [, platform] = /^prebuilds\/([^/]+)/.exec(path) ?? []
  if (platform !== undefined) return basename(platform, '.node') === `${process.platform}-${process.arch}`
  if (path.startsWith('build/Release/')) return extname(file) === '.node' && file !== 'test_extension.node'
  if (/^build\/(node_gyp_bins$|.*\.mk$)/.test(path)) return false
  return !idleFiles.test(file)
}
