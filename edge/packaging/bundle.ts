import { existsSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'

/** Packages with a native part, which is found by where their files lie: they stay files of their own, with all that they need. */
export const isNative = (name: string): boolean =>
  /^(better-sqlite3|better-sqlite3-node20|@serialport\/bindings-cpp|onoff|ssh2)$/.test(name)

/**
 * What a start need not read, of a hub's half of it: what libraries bring along for browsers and older Nodes, and Node has itself;
 * and mqtt.js's ways over websockets and proxies, which no address of a broker takes (`mqtt-transport.ts`).
 */
const lighter = {
  'readable-stream': 'node:stream',
  'worker-timers': 'node:timers',
  ws: false,
  socks: false,
} as const

/**
 * Puts each program and what it imports into one file at its place below `out`, and what they share or load later beside them:
 * most of a start was finding, reading and linking 400 files. Names stay as they were written, for stacks in logs.
 * Returns the folders, below `root`, of the packages that are in these files.
 */
export async function bundlePrograms(
  root: string,
  compiled: string,
  out: string,
  programs: readonly string[],
): Promise<string[]> {
  const { rolldown } = await import('rolldown')
  const bundle = await rolldown({
    input: Object.fromEntries(programs.map((path) => [path.replace(/\.js$/, ''), join(compiled, path)])),
    platform: 'node',
    resolve: { modules: [join(root, 'node_modules')], alias: lighter },
    cwd: compiled,
    logLevel: 'warn',
    external: (id) => isBuiltin(id) || isNative(id),
    plugins: [
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
      // Settings of a library come before what is made by them, as in the sources.
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
 * A program in letters of one byte: of its text, which V8 keeps, it takes two bytes for every letter as soon as one needs them. Three
 * arrows and dots cost a hub 0.6 MB. In a string, a template or an expression an escape says the same.
 */
export const ascii = (code: string): string =>
  code.replace(/[^\0-\x7f]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The folder, below `root`, of the package that a file belongs to. */
function packageOf(root: string, file: string): string | undefined {
  const [, folder] = /^(node_modules\/.*?)\/[^/]*$/.exec(relative(root, file)) ?? []
  for (let at = folder; at?.includes('node_modules'); at = at.replace(/\/[^/]*$/, '')) {
    const manifest = join(root, at, 'package.json')
    if (!existsSync(manifest)) continue
    // A folder of modules may have a file of this name that says of which kind they are.
    if ('version' in (JSON.parse(readFileSync(manifest, 'utf8')) as object)) return at
  }
  return undefined
}
