import { existsSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'

/**
 * Packages with a native part, which is located relative to their own files. They and their dependencies stay
 * separate files.
 */
export const isNative = (name: string): boolean =>
  /^(better-sqlite3|better-sqlite3-node20|@serialport\/bindings-cpp|onoff|ssh2)$/.test(name)

/**
 * Modules that a hub's start does not need: substitutes for browsers and older Nodes, which Node has itself,
 * and mqtt.js's websockets and proxies. No broker address uses these (`mqtt-transport.ts`).
 */
const lighter = {
  'readable-stream': 'node:stream',
  'worker-timers': 'node:timers',
  ws: false,
  socks: false,
} as const

/**
 * Bundles each program with its imports into one file at its place below `out`. Shared and later loaded code
 * goes into separate files next to it. Most of a start was the time to find, read and link 400 files. Names
 * are not mangled, so that stacks in logs stay readable. Returns the folders, below `root`, of the packages
 * that the files contain.
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
