import { existsSync, readFileSync, cpSync, readdirSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative, basename } from 'node:path'
import type { Plugin } from 'rolldown'

/**
 * Packages with a native part, which is located relative to their own files. They and their dependencies stay
 * separate files.
 */
export const isNative = (name: string): boolean =>
  /^(better-sqlite3|better-sqlite3-node20|@serialport\/bindings-cpp|onoff|ssh2)$/.test(name)

/**
 * Modules that a hub's start does not need: substitutes for browsers and older Nodes, which Node has itself,
 * mqtt.js's websockets and proxies (no broker address uses these, `mqtt-transport.ts`), and the fetcher of tuf-js
 * (`update/fetch-release.ts` has its own).
 */
const lighter = {
  'readable-stream': 'node:stream',
  'worker-timers': 'node:timers',
  ws: false,
  'make-fetch-happen': false,
  socks: false,
} as const

/**
 * Bundles each program with its imports into one file at its place below `out`. Shared and later loaded code
 * goes into separate files next to it. Most of a start was the time to find, read and link 400 files. Names
 * are not mangled, so that stacks in logs stay readable. `plugins`: further ones of the caller. Returns the
 * folders, below `root`, of the packages that the files contain.
 */
export async function bundlePrograms(
  root: string,
  compiled: string,
  out: string,
  programs: readonly string[],
  plugins: readonly Plugin[] = [],
): Promise<string[]> {
  const { rolldown } = await import('rolldown')
  const bundle = await rolldown({
    input: Object.fromEntries(programs.map((path) => [path.replace(/\.js$/, ''), join(compiled, path)])),
    platform: 'node',
    resolve: { modules: [join(root, 'node_modules')], alias: lighter },
    cwd: compiled,
    logLevel: 'warn',
    external: (id) => (isBuiltin(id) && id !== 'node:http') || isNative(id),
    plugins: [
      ...plugins,
      {
        // An import of `node:http` reads each of its exports. One of them loads all of `fetch`: 8 MB, a fifth of a start.
        name: 'light-http',
        resolveId: (id) => (id === 'node:http' ? '\0http' : undefined),
        load: (id) =>
          id === '\0http' ? `module.exports = process.getBuiltinModule('node:http')` : undefined,
      },
      {
        name: 'ascii',
        generateBundle(_options, files) {
          for (const file of Object.values(files)) if (file.type === 'chunk') file.code = ascii(file.code)
        },
      },
    ],
  })
  try {
    const { output } = await bundle.write({
      dir: out,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: `${programs[0]!.split('/')[0]!}/parts/[name].js`,
      // A library's settings run before the code that uses them, as in the sources.
      strictExecutionOrder: true,
      minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    })
    const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
    return [...new Set(modules.flatMap((id) => packageOf(root, id) ?? []))]
  } finally {
    await bundle.close()
  }
}

/**
 * A program in one-byte characters. V8 stores the source text with two bytes per character as soon as one
 * character needs them. Three arrows and dots cost a hub 0.6 MB. In a string, a template or an expression an
 * escape has the same meaning.
 */
export const ascii = (code: string): string =>
  code.replace(/[^\0-\x7f]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The folder, below `root`, of the package that a file belongs to. */
function packageOf(root: string, file: string): string | undefined {
  const [, folder] = /^(node_modules\/.*?)\/[^/]*$/.exec(relative(root, file)) ?? []
  for (let at = folder; at?.includes('node_modules'); at = at.replace(/\/[^/]*$/, '')) {
    const manifest = join(root, at, 'package.json')
    if (!existsSync(manifest)) continue
    // A subfolder may contain a `package.json` that only sets the module type.
    if ('version' in (JSON.parse(readFileSync(manifest, 'utf8')) as object)) return at
  }
  return undefined
}

/** The entry of a package or workspace in package-lock.json. */
interface Locked {
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** Packages that only build or download native modules, and the driver for a Node that packages do not bring. */
const unused = new Set(['prebuild-install', 'node-addon-api', 'nan', 'cpu-features', 'better-sqlite3-node20'])

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
      if (unused.has(name)) continue
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

/**
 * Copies a package from `source` to its folder below `to`, without nested packages, and without files that are not
 * needed at run time on the processor `arch`.
 */
export function copyPackage(source: string, to: string, folder: string, arch: string): void {
  cpSync(source, join(to, folder), {
    recursive: true,
    dereference: true,
    filter: (path) => isNeeded(nameOf(folder), relative(source, path), arch),
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
  /^(\..*|.*\.(md|markdown|map|ts|mts|cts|flow|gyp|gypi|c|cc|cpp|h|hpp|o|a|yml|yaml|tsbuildinfo)|makefile|binding\.gyp)$/i
/** Folders of single packages that Larder does not load: sources of native parts. */
const idleIn: Readonly<Record<string, RegExp>> = {
  'better-sqlite3': /^(src|deps)$/,
  epoll: /^(src|build)$/,
  '@serialport/bindings-cpp': /^src$/,
  ssh2: /^lib\/protocol\/crypto\/(src|build)$/,
}

/** Whether a file or folder of a package is needed at run time; `path` is relative to the package. */
function isNeeded(name: string, path: string, arch: string): boolean {
  if (path === '') return true
  const file = basename(path)
  if (idleIn[name]?.test(path)) return false
  if (licence.test(file)) return true
  if (!path.includes('/') && idleFolders.test(file)) return false
  const [, platform] = /^prebuilds\/([^/]+)/.exec(path) ?? []
  if (platform !== undefined) return basename(platform, '.node') === `linux-${arch}`
  return !idleFiles.test(file)
}
